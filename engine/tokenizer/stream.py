"""Turns token ids into text while they arrive, whole characters only."""

from __future__ import annotations

import codecs
from typing import Protocol


class TokenSpelling(Protocol):
    """What a stream needs of a tokenizer."""

    def token_bytes(self, token_id: int, /) -> bytes: ...

    def is_special(self, token_id: int, /) -> bool: ...


class StreamDecoder:
    """Text from ids, one at a time. The parts joined equal the decoding of all ids at once.

    A character is given out when its last byte has come; U+FFFD stands for bytes that no later byte
    can make into a character.
    """

    def __init__(self, tokenizer: TokenSpelling, *, skip_special: bool, drops_first_space: bool) -> None:
        self._tokenizer = tokenizer
        self._skip_special = skip_special
        self._drops_space = drops_first_space
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_whole = True  # no character is incomplete

    def push(self, token_id: int) -> str:
        """The text that this token completes; "" while a character is incomplete."""
        if self._skip_special and self._tokenizer.is_special(token_id):
            return ""
        data = self._tokenizer.token_bytes(token_id)
        if self._drops_space and data:
            self._drops_space = False
            data = data.removeprefix(b" ")
        if self._is_whole and data.isascii():
            return data.decode("ascii")
        text = self._utf8.decode(data)
        self._is_whole = not self._utf8.getstate()[0]
        return text

    def flush(self) -> str:
        """What is left at the end: U+FFFD if a character stayed incomplete. The decoder can then be used anew."""
        rest = self._utf8.decode(b"", final=True)
        self._utf8.reset()
        self._is_whole = True
        return rest
