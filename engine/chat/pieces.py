"""The pieces that an answer comes in."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class AnswerKind(StrEnum):
    """What a piece of an answer is."""

    ANSWER = "answer"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"


def new_call_id() -> str:
    """Nine letters and digits: what the strictest templates (Mistral's) want."""
    return f"c{secrets.token_hex(4)}"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that the model wants called. `arguments` is the text of a JSON object."""

    name: str
    arguments: str
    id: str = field(default_factory=new_call_id)

    @classmethod
    def of(cls, name: str, arguments: Mapping[str, Any], call_id: str | None = None) -> ToolCall:
        """A call with these arguments; it gets an id if it has none."""
        text = json.dumps(arguments, ensure_ascii=False)
        return cls(name, text, call_id) if call_id else cls(name, text)

    def as_message(self, *, arguments_as_text: bool) -> dict[str, Any]:
        """The call as an entry of a message's `tool_calls`."""
        arguments = self.arguments if arguments_as_text else json.loads(self.arguments)
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


@dataclass(frozen=True, slots=True)
class Piece:
    """Some text of one kind, or a call. `problem` says why what looked like a call is only text."""

    kind: AnswerKind
    text: str = ""
    call: ToolCall | None = None
    problem: str = ""


class CallSyntaxError(ValueError):
    """Something that begins like a call of a tool and is none; the text says what was expected and found."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}, found {_shortened(found)!r}")


def _shortened(text: str) -> str:
    text = text.strip()
    return text if len(text) <= 120 else text[:120] + "…"
