"""The Harmony format of gpt-oss: messages with a header that names a channel, and perhaps a recipient."""

from __future__ import annotations

import json
import re

from engine.chat.answer_parser import UNREADABLE
from engine.chat.marks import Scanner, Spelling, control, ordinary, shown, spelled_out
from engine.chat.pieces import AnswerKind, CallSyntaxError, Piece, ToolCall

START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
ENDS = ("<|end|>", "<|call|>", "<|return|>")
_LONGEST_HEADER = 400
_RECIPIENT = re.compile(r"\bto=([^\s<]+)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")


class HarmonyParser:
    """An AnswerParser. The channel analysis is reasoning; final, and commentary for nobody in particular, are the
    answer; what has a recipient is a call of a tool. The answer begins in a header that the prompt has opened.
    """

    is_divided_by_control = True

    def __init__(self, spelling: Spelling) -> None:
        self._scanner = Scanner()
        self._start, self._message = spelling.of(START), spelling.of(MESSAGE)
        self._ends = [spelling.of(marker) for marker in ENDS]
        self._header: list[str] | None = []  # None inside of a message
        self._recipient = ""
        self._kind = AnswerKind.ANSWER
        self._body: list[str] = []
        self._space = ""
        self._is_fresh = True  # no text of this message yet
        self._has_said: set[AnswerKind] = set()
        self._had_message = False

    @property
    def is_answering(self) -> bool:
        """Whether a message of the final channel is open, or of the commentary for nobody in particular."""
        return self._header is None and not self._recipient and self._kind is AnswerKind.ANSWER

    def push(self, text: str) -> list[Piece]:
        """Take ordinary text."""
        return self._take(ordinary(text))

    def push_control(self, token: str) -> list[Piece]:
        """Take a control token."""
        return self._take(control(token))

    def finish(self) -> list[Piece]:
        """The pieces that were held back; a call whose end token ended the answer is complete."""
        pieces = self._add(self._scanner.flush())
        if self._header is None and self._recipient:
            pieces += self._end_call()
        elif not self._had_message and self._header:
            pieces += self._without_format()
        return pieces

    def _take(self, marked: str) -> list[Piece]:
        self._scanner.push(marked)
        pieces: list[Piece] = []
        while True:
            text, marker = self._scanner.next((self._start, self._message, *self._ends))
            pieces += self._add(text)
            if marker is None:
                return pieces
            pieces += self._reach(marker)

    def _reach(self, marker: str) -> list[Piece]:
        pieces = self._end_call() if self._header is None and self._recipient else []
        if marker == self._message and self._header is not None:
            self._begin(spelled_out("".join(self._header)))
        else:
            self._header, self._recipient = [], ""
        return pieces

    def _begin(self, header: str) -> None:
        recipient, channel = _RECIPIENT.search(header), _CHANNEL.search(header)
        self._recipient = recipient[1] if recipient is not None and recipient[1] not in ("user", "assistant") else ""
        is_reasoning = channel is not None and channel[1] == "analysis"
        self._kind = AnswerKind.REASONING if is_reasoning else AnswerKind.ANSWER
        self._header, self._body, self._space = None, [], ""
        self._is_fresh = self._had_message = True

    def _add(self, marked: str) -> list[Piece]:
        if self._header is not None:
            self._header.append(marked)
            too_long = not self._had_message and sum(map(len, self._header)) > _LONGEST_HEADER
            return self._without_format() if too_long else []
        if self._recipient:
            self._body.append(marked)
            return []
        return self._say(shown(marked))

    def _say(self, text: str) -> list[Piece]:
        text = self._space + text
        kept = text.rstrip()
        self._space = text[len(kept) :]
        if not kept:
            return []
        if self._is_fresh:
            kept = ("\n\n" if self._kind in self._has_said else "") + kept.lstrip()
        self._is_fresh = False
        self._has_said.add(self._kind)
        return [Piece(self._kind, kept)]

    def _without_format(self) -> list[Piece]:
        """The model does not use the format at all: what it writes is its answer."""
        text = shown("".join(self._header or ()))
        self._begin("")
        return self._say(text)

    def _end_call(self) -> list[Piece]:
        name, text = self._recipient.removeprefix("functions."), spelled_out("".join(self._body)).strip()
        self._recipient, self._body = "", []
        try:
            return [Piece(AnswerKind.TOOL_CALL, call=_call(name, text))]
        except CallSyntaxError as error:
            problem = f"{UNREADABLE}: {error}. It stands in the answer as it was written."
            self._has_said.add(AnswerKind.ANSWER)
            return [Piece(AnswerKind.ANSWER, f"{name}: {text}", problem=problem)]


def _call(name: str, text: str) -> ToolCall:
    if name == "python":  # the built-in tool takes bare code
        return ToolCall.of(name, {"code": text})
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise CallSyntaxError(f"a JSON object with the arguments of {name}", text)
    return ToolCall.of(name, arguments)
