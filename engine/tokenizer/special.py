"""Finds special tokens that are spelled in a text."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence


class SpecialTokens:
    """Cuts a text at the special tokens in it: the leftmost first, and of several at one place the longest."""

    def __init__(
        self,
        ids: Mapping[str, int],
        strips_after: frozenset[int] = frozenset(),
        refusable: frozenset[int] = frozenset(),
    ) -> None:
        """`strips_after`: ids of tokens that swallow the white space behind them. `refusable`: those of tokens that
        are text where a mark stands."""
        self._ids = ids
        self._strips_after = strips_after
        self._refusable = refusable
        groups: dict[str, list[str]] = {}
        for text in ids:
            groups.setdefault(text[:2], []).append(text)
        self._lengths = {start: sorted({len(text) for text in texts}) for start, texts in groups.items()}
        self._found = _any_of(groups) if groups else None

    def split(self, text: str, marks: Sequence[int] = ()) -> Iterator[str | int]:
        """The text's stretches in order: plain ones as str, special tokens as their ids; no empty ones.

        `marks`: rising places; a refusable token that begins at one, or has one inside, is text.
        """
        begin = position = 0
        while self._found is not None and (found := self._found.search(text, position)):
            token_id, end = self._ids[found.group()], found.end()
            if marks and self._is_refused(token_id, found.start(), end, marks):
                shorter = self._shorter(text, found.start(), end, marks)
                if shorter is None:
                    position = found.start() + 1
                    continue
                token_id, end = shorter
            if token_id in self._strips_after:
                end = len(text) - len(text[end:].lstrip())
            if begin < found.start():
                yield text[begin : found.start()]
            yield token_id
            begin = position = end
        if begin < len(text):
            yield text[begin:]

    def _is_refused(self, token_id: int, start: int, end: int, marks: Sequence[int]) -> bool:
        if token_id not in self._refusable:
            return False
        following = bisect_left(marks, start)
        return following < len(marks) and marks[following] < end

    def _shorter(self, text: str, start: int, end: int, marks: Sequence[int]) -> tuple[int, int] | None:
        """The longest token at `start` that ends before `end` and is not refused, and its end."""
        lengths = {n for begin in (text[start : start + 2], text[start]) for n in self._lengths.get(begin, ())}
        for stop in sorted((start + n for n in lengths if start + n < end), reverse=True):
            token_id = self._ids.get(text[start:stop])
            if token_id is not None and not self._is_refused(token_id, start, stop, marks):
                return token_id, stop
        return None


def _any_of(groups: Mapping[str, list[str]]) -> re.Pattern[str]:
    """An expression for any of the texts, grouped by how they begin, that prefers longer ones."""
    alternatives = []
    for start, texts in sorted(groups.items(), key=lambda group: -len(group[0])):
        rests = "|".join(re.escape(text[len(start) :]) for text in sorted(texts, key=len, reverse=True))
        alternatives.append(f"{re.escape(start)}(?:{rests})")
    return re.compile("|".join(alternatives), re.DOTALL)
