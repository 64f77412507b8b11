"""Takes an answer apart while it is written: reasoning, text, calls of tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from engine.chat.marks import Scanner, control, has_control, ordinary, shown, spelled_out
from engine.chat.pieces import AnswerKind, CallSyntaxError, Piece
from engine.chat.spans import Span, Wrapper

UNREADABLE = "The model's call of a tool could not be read"


class AnswerParser(Protocol):
    """What a request feeds the text of its tokens to; the pieces are the same however the answer was cut."""

    @property
    def is_answering(self) -> bool:
        """Whether what comes next is the answer, rather than reasoning or the format's own."""
        ...

    @property
    def is_divided_by_control(self) -> bool:
        """Whether a control token parts the text before it from that behind, so that no stop string spans both."""
        ...

    def push(self, text: str) -> list[Piece]:
        """Take ordinary text."""
        ...

    def push_control(self, token: str) -> list[Piece]:
        """Take a control token."""
        ...

    def finish(self) -> list[Piece]:
        """Take the end of the answer."""
        ...


class SpanParser:
    """An AnswerParser for answers whose stretches lie between markers. White space around a span is nobody's."""

    is_divided_by_control = True

    def __init__(
        self,
        reasoning: Sequence[Span],
        calls: Sequence[Span],
        wrappers: Sequence[Wrapper],
        tools: Sequence[Any],
        *,
        begun: Span | None = None,
    ) -> None:
        """All markers as they stand in marked text. `begun`: the span that the prompt has opened."""
        self._reasoning, self._calls, self._wrappers, self._tools = reasoning, calls, wrappers, tools
        self._scanner = Scanner()
        self._span = begun
        self._body: list[str] = []  # of a call
        self._space = ""  # white space that counts if text of the same kind follows
        self._is_fresh = True  # nothing but white space since the beginning or the last marker
        self._is_first = True  # no marker yet
        self._has_said = False  # any text of the answer
        self._closers: list[str] = []  # of the wrappers that are open

    @property
    def is_answering(self) -> bool:
        """Whether no span is open."""
        return self._span is None

    def push(self, text: str) -> list[Piece]:
        """Take ordinary text."""
        return self._take(ordinary(text))

    def push_control(self, token: str) -> list[Piece]:
        """Take a control token; one that is no marker is hidden."""
        return self._take(control(token))

    def finish(self) -> list[Piece]:
        """The pieces that were held back."""
        pieces = list(self._add(self._scanner.flush()))
        if self._span is not None and self._span.parse is not None:
            pieces += self._end_call(self._span, "")
        elif self._span is None and self._space and (self._is_first or not self._is_fresh):
            pieces.append(Piece(AnswerKind.ANSWER, self._space))
        return pieces

    def _take(self, marked: str) -> list[Piece]:
        self._scanner.push(marked)
        pieces: list[Piece] = []
        while True:
            text, marker = self._scanner.next(self._markers())
            pieces += self._add(text)
            if marker is None:
                return pieces
            pieces += self._reach(marker)

    def _markers(self) -> list[str]:
        """Those that count at this point."""
        span = self._span
        if span is not None and span.parse is not None:
            return [span.closer] if span.closer else [call.opener for call in self._calls if not call.only_first]
        begins: tuple[Span | Wrapper, ...] = (*self._calls, *self._wrappers)
        if span is not None:  # a control token that begins something else ends reasoning that was left open
            return [span.closer, *(item.opener for item in begins if has_control(item.opener))]
        markers = [item.opener for item in begins if not (item.only_first and self._has_said)]
        for thought in self._reasoning:
            if self._is_fresh or has_control(thought.opener):
                markers += [thought.opener, thought.closer]
        return markers + self._closers

    def _reach(self, marker: str) -> Iterator[Piece]:
        span, self._span = self._span, None
        if span is not None and span.parse is not None:
            yield from self._end_call(span, marker)
        self._space, self._is_fresh, self._is_first = "", True, False
        self._closers += [wrapper.closer for wrapper in self._wrappers if wrapper.opener == marker]
        if span is not None and marker == span.closer:
            return
        if marker in self._closers:
            self._closers.remove(marker)
            return
        self._span = next((item for item in (*self._reasoning, *self._calls) if item.opener == marker), None)
        self._body = [marker] if self._span is not None and self._span.keeps_markers else []

    def _add(self, marked: str) -> Iterator[Piece]:
        span = self._span
        if span is not None and span.parse is not None:
            self._body.append(marked)
            return
        text = self._space + shown(marked)
        kept = text.rstrip()
        self._space = text[len(kept) :]
        if not kept:
            return
        if self._is_fresh and (span is not None or not self._is_first):
            kept = kept.lstrip()
        self._is_fresh = False
        self._has_said |= span is None
        yield Piece(AnswerKind.ANSWER if span is None else AnswerKind.REASONING, kept)

    def _end_call(self, span: Span, marker: str) -> Iterator[Piece]:
        closer = marker if span.closer else ""
        body, self._body = "".join(self._body), []
        assert span.parse is not None
        try:
            calls = span.parse(spelled_out(body + closer if span.keeps_markers else body), self._tools)
        except CallSyntaxError as error:
            opener = "" if span.keeps_markers else span.opener
            problem = "" if span.is_tentative else f"{UNREADABLE}: {error}. It stands in the answer as it was written."
            self._has_said = True
            yield Piece(AnswerKind.ANSWER, spelled_out(opener + body + closer), problem=problem)
        else:
            yield from (Piece(AnswerKind.TOOL_CALL, call=call) for call in calls)
