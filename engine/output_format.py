"""The form that an answer must have: a JSON schema, a regular expression, or a grammar."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import InvalidRequestError

_LONGEST = 1_000_000  # characters


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class OutputFormat:
    """Exactly one of these. Only the answer is held to it, not the reasoning before it.

    json_schema: the answer is JSON text that the schema describes; `{"type": "object"}` for any object.
    regex: the whole answer matches it (syntax of Rust's regex, without look-around). grammar: in Lark's syntax, from
    the rule `start`. Raises InvalidRequestError for none or several, and for what is no JSON.
    """

    json_schema: Mapping[str, Any] | None = None
    regex: str | None = None
    grammar: str | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("json_schema", "regex", "grammar") if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidRequestError(
                "An output format needs exactly one of json_schema, regex and grammar, "
                f"found {' and '.join(given) or 'none'}."
            )
        try:
            text = self.text
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidRequestError(f"A JSON schema must be JSON values only: {error}.") from None
        if not _is_unicode(text):
            raise InvalidRequestError(
                f"The {given[0]} holds half of a surrogate pair, which is no character; remove it."
            )
        if len(text) > _LONGEST:
            raise InvalidRequestError(f"The {given[0]} has {len(text):,} characters; the limit is {_LONGEST:,}.")

    @property
    def kind(self) -> str:
        """Which of the three it is."""
        return "JSON schema" if self.json_schema is not None else "regular expression" if self.regex else "grammar"

    @property
    def text(self) -> str:
        """The schema as JSON text, the expression, or the grammar."""
        if self.json_schema is not None:
            return json.dumps(self.json_schema, allow_nan=False)
        return self.regex if self.regex is not None else self.grammar or ""
