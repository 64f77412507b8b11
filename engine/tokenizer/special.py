"""Finds special tokens that are spelled in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping


class SpecialTokens:
    """Cuts a text at the special tokens in it: the leftmost first, and of several at one place the longest."""

    def __init__(self, ids: Mapping[str, int], strips_after: frozenset[int] = frozenset()) -> None:
        """`strips_after`: ids of tokens that swallow the white space behind them."""
        self._ids = ids
        self._strips_after = strips_after
        self._lengths: dict[str, list[int]] = {}
        for text in ids:
            lengths = self._lengths.setdefault(text[:2], [])
            if len(text) not in lengths:
                lengths.append(len(text))
        for lengths in self._lengths.values():
            lengths.sort(reverse=True)
        starts = sorted(self._lengths, key=len, reverse=True)
        self._start = re.compile("|".join(map(re.escape, starts))) if starts else None

    def split(self, text: str) -> Iterator[str | int]:
        """The text's stretches in order: plain ones as str, special tokens as their ids; no empty ones."""
        begin = position = 0
        while self._start is not None and (found := self._start.search(text, position)):
            match = self._match(text, found.start())
            if match is None:
                position = found.start() + 1
                continue
            token_id, end = match
            if begin < found.start():
                yield text[begin : found.start()]
            yield token_id
            begin = position = end
        if begin < len(text):
            yield text[begin:]

    def _match(self, text: str, position: int) -> tuple[int, int] | None:
        starts = (text[position : position + 2], text[position : position + 1])
        for length in sorted({n for start in starts for n in self._lengths.get(start, ())}, reverse=True):
            token_id = self._ids.get(text[position : position + length])
            if token_id is None:
                continue
            end = position + length
            if token_id in self._strips_after:
                end = len(text) - len(text[end:].lstrip())
            return token_id, end
        return None
