"""Splits Markdown that is still being written into finished blocks and the one that may yet change."""

from __future__ import annotations

import re
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

Block = list[Token]

_LONE_NUMBER = re.compile(r"(?:^|\n)[ ]{0,3}\d{1,9}$")


def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])


def top_level_blocks(tokens: list[Token]) -> list[Block]:
    """Group a flat token list by its outermost blocks."""
    blocks: list[Block] = []
    depth = 0
    for token in tokens:
        if depth == 0:
            blocks.append([])
        blocks[-1].append(token)
        depth += token.nesting
    return blocks


class MarkdownStream:
    """Feeds on a growing text; each block is handed out as finished exactly once.

    CommonMark is read from left to right, so a later line can only change the last block: everything before it is
    final, and only the text from the last block's first line is parsed again.
    """

    def __init__(self) -> None:
        self._parser = _parser()
        self._env: dict[str, Any] = {}
        self._text = ""
        self._open_from = 0  # offset of the open block's first character

    def update(self, text: str) -> tuple[list[Block], Block]:
        """Take the whole text so far; return the newly finished blocks and the open one.

        It must continue the earlier text: raises ValueError when what was handed out as finished differs.
        """
        if not self.continues(text):
            raise ValueError("the text does not continue what was fed before; start a new MarkdownStream")
        self._text = text
        tail = text[self._open_from :]
        blocks = top_level_blocks(self._parser.parse(tail, self._env))
        if not blocks:
            return [], []
        if len(blocks) > 1 and blocks[-2][0].type == "ordered_list_open" and _LONE_NUMBER.search(tail):
            blocks[-2:] = [blocks[-2] + blocks[-1]]  # with a full stop after it the number goes on with the list
        first_line = (blocks[-1][0].map or [0, 0])[0]
        self._open_from += _offset_of_line(tail, first_line)
        return blocks[:-1], blocks[-1]

    def continues(self, text: str) -> bool:
        """Whether ``text`` begins with everything that is already final."""
        return text.startswith(self._text[: self._open_from])


def _offset_of_line(text: str, line: int) -> int:
    offset = 0
    for _ in range(line):
        offset = text.index("\n", offset) + 1
    return offset
