"""Marks in a caller's text, so that what looks like a control token in it stays text through a chat template.

A mark is a character that occurs nowhere else. It stands before each place of a text where a control token could begin,
goes through the template with the text, and is taken out of what the template made: a control token that begins at a
mark, or has one inside, was not written by the template. What the template sees differs by the marks only, and only in
texts that hold the beginning of a control token; so searching, splitting, trimming and joining go on as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from engine.errors import InvalidRequestError

_SIGNS = (*range(0xFDD0, 0xFDF0), *range(0xE000, 0xF900))  # characters that stand for nothing, then private ones
_DEEPEST = 100

Mark = Callable[[str, str], str]  # text and mark -> the text with marks


class TrustedText(str):
    """Text of a message in which control tokens are meant, such as calls of tools that the engine wrote into it."""

    __slots__ = ()


class ControlMarks:
    """Sets marks before what could be one of a vocabulary's control tokens."""

    def __init__(self, tokens: Iterable[str]) -> None:
        """`tokens`: the control tokens as text."""
        texts = sorted((text for text in tokens if text), key=len, reverse=True)
        beginnings = "|".join(sorted({re.escape(text[:2]) for text in texts}))
        firsts = "|".join(sorted({re.escape(text[0]) for text in texts}))
        self._begins = re.compile(rf"(?={beginnings}|(?:{firsts})\s*\Z)") if texts else None
        self._occurs = re.compile(f"(?={'|'.join(map(re.escape, texts))})") if texts else None

    def needed(self, values: Any) -> bool:
        """Whether any text in nested values would be marked."""
        texts = (text for text in texts_in(values) if not isinstance(text, TrustedText))
        return self._begins is not None and any(self._begins.search(text) for text in texts)

    def stands_in(self, values: Any) -> bool:
        """Whether a whole control token is spelled in any text of nested values."""
        return self._occurs is not None and any(self._occurs.search(text) for text in texts_in(values))

    def wherever_one_may_begin(self, text: str, mark: str) -> str:
        """Marks before the first two characters of control tokens, and before a first one at the end: even parts that
        a template puts together then make no token."""
        return text if self._begins is None else self._begins.sub(mark, text)

    def where_one_stands(self, text: str, mark: str) -> str:
        """Marks only before whole control tokens."""
        return text if self._occurs is None else self._occurs.sub(mark, text)


def texts_in(value: Any) -> Iterator[str]:
    """All texts in nested mappings and lists, keys included."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, (list, tuple)):
            pending += item


def require_shallow(values: Any) -> None:
    """Raise InvalidRequestError for values nested so deeply that walking through them could end the program.

    Values that hold themselves are endlessly deep.
    """
    level = [values]
    for _ in range(_DEEPEST):
        level = [part for item in level for part in _parts(item)]
        if not level:
            return
    raise InvalidRequestError(
        f"The messages, tools and variables of a request may be nested {_DEEPEST} deep; something in these is deeper, "
        "or holds itself. Make it flatter."
    )


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, (list, tuple)) else ()


def marked(value: Any, set_marks: Mark, mark: str) -> Any:
    """The nested value with `set_marks` done to all texts in it, keys included, that are not trusted."""
    if isinstance(value, str):
        return value if isinstance(value, TrustedText) else set_marks(value, mark)
    if isinstance(value, Mapping):
        return {marked(key, set_marks, mark): marked(item, set_marks, mark) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [marked(item, set_marks, mark) for item in value]
    return value


def unused_mark(texts: Iterable[str]) -> str | None:
    """A character that is in none of the texts, not even as JSON writes it; None if there is none left."""
    everything = "\n".join(texts)
    codes = (code for code in _SIGNS if chr(code) not in everything and _in_json(chr(code)) not in everything.lower())
    return next((chr(code) for code in codes), None)


def take_out(text: str, mark: str) -> tuple[str, list[int]]:
    """The text without marks, also such as JSON wrote as an escape, and where they stood in it."""
    parts = text.replace(_in_json(mark), mark).split(mark)
    places, place = [], 0
    for part in parts[:-1]:
        place += len(part)
        places.append(place)
    return "".join(parts), places


def _in_json(mark: str) -> str:
    return f"\\u{ord(mark):04x}"
