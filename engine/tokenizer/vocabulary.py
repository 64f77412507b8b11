"""The vocabulary of a GGUF file: its tokens, their kinds, and what they spell."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import ModelFormatError

logger = logging.getLogger(__name__)

TOKENS_KEY = "tokenizer.ggml.tokens"
SPACE_MARK = "▁"


class TokenKind(IntEnum):
    """The values of `tokenizer.ggml.token_type`."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


_SIGNS = (int(TokenKind.CONTROL), int(TokenKind.UNKNOWN))


class Vocabulary:
    """The tokens of a model in the order of their ids.

    Only what every caller needs is read at once: the kinds and the texts of the few special tokens. The
    texts of all others stay in the (lazily decoded) sequence of the reader.
    """

    def __init__(self, tokens: Sequence[str], kinds: npt.NDArray[np.int32], *, byte_level: bool) -> None:
        self.tokens = tokens
        self.kinds = np.clip(kinds, 0, 255).astype(np.uint8)  # (n_tokens,) uint8, values of TokenKind
        self._kind_of = self.kinds.tobytes()  # the same; single values are read from bytes some 20 times faster
        self.byte_level = byte_level
        self._bytes: list[bytes | None] = [None] * len(tokens)

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], *, byte_level: bool) -> Vocabulary:
        """Take the tokens and their kinds from GGUF metadata; raises ModelFormatError where they do not fit."""
        tokens = metadata.get(TOKENS_KEY)
        if tokens is None or isinstance(tokens, str) or not isinstance(tokens, Sequence) or len(tokens) == 0:
            raise ModelFormatError(
                f"expected a list of tokens in {TOKENS_KEY}, found {_describe(tokens)}; "
                "the file was written without a vocabulary and cannot be used for text"
            )
        kinds = number_array(metadata, "tokenizer.ggml.token_type", len(tokens), np.int32)
        if kinds is None:
            kinds = np.full(len(tokens), TokenKind.NORMAL, np.int32)
        return cls(tokens, kinds, byte_level=byte_level)

    def __len__(self) -> int:
        return len(self.tokens)

    def of_kind(self, *kinds: TokenKind) -> dict[str, int]:
        """The tokens of these kinds, by text; tokens without text are left out."""
        ids = np.flatnonzero(np.isin(self.kinds, kinds)).tolist()
        return {text: token_id for token_id in ids if (text := self.tokens[token_id])}

    def is_special(self, token_id: int) -> bool:
        """Whether the token is a sign to the model (control, unknown) rather than text."""
        return self._kind_of[token_id] in _SIGNS

    def token_bytes(self, token_id: int) -> bytes:
        """The UTF-8 bytes (possibly a part of a character) that the token stands for."""
        known = self._bytes[token_id]
        if known is None:
            known = self._bytes[token_id] = self._spell(token_id)
        return known

    def _spell(self, token_id: int) -> bytes:
        text, kind = self.tokens[token_id], self._kind_of[token_id]
        if kind == TokenKind.BYTE and (value := byte_value(text)) is not None:
            return bytes((value,))
        if kind in _SIGNS or kind == TokenKind.USER_DEFINED:
            return text.encode()
        if self.byte_level:
            try:
                return bytes([BYTE_OF_CHARACTER[character] for character in text])
            except KeyError:
                return text.encode()
        return text.replace(SPACE_MARK, " ").encode()


def number_array(
    metadata: Mapping[str, Any], key: str, n_tokens: int, dtype: type[np.generic]
) -> npt.NDArray[Any] | None:
    """The numeric array under `key`, one value a token, or None; raises ModelFormatError if the lengths differ."""
    values = metadata.get(key)
    if values is None:
        return None
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iuf" or len(array) < n_tokens:
        raise ModelFormatError(
            f"expected {n_tokens} numbers in {key}, one for each token, found {_describe(values)}; the file is damaged"
        )
    return array[:n_tokens].astype(dtype)


def strings(metadata: Mapping[str, Any], key: str) -> Sequence[str]:
    """The strings under `key`; raises ModelFormatError if there are none."""
    values = metadata.get(key)
    if values is None or isinstance(values, str) or not isinstance(values, Sequence):
        raise ModelFormatError(f"expected a list of strings in {key}, found {_describe(values)}; the file is damaged")
    return values


def token_id_under(metadata: Mapping[str, Any], key: str, n_tokens: int) -> int | None:
    """The token id under `key`, or None where it is missing or no token has it (some writers put -1 there)."""
    value = metadata.get(key)
    if value is None:
        return None
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value < n_tokens:
        return int(value)
    logger.warning("%s is %r, which is no token of %d; it is ignored", key, value, n_tokens)
    return None


def byte_value(text: str) -> int | None:
    """The value of a byte token's text, `<0x41>` gives 65; None for other texts."""
    if len(text) != 6 or not (text.startswith("<0x") and text.endswith(">")):
        return None
    try:
        return int(text[3:5], 16)
    except ValueError:
        return None


def _describe(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, (Sequence, np.ndarray)) and not isinstance(value, str):
        return f"{len(value)} values"
    return type(value).__name__


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's printable character for each byte: itself where it is visible in Latin-1, else the next from U+0100."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [value for value in range(256) if value not in visible]
    return {chr(value): value for value in visible} | {chr(0x100 + n): value for n, value in enumerate(hidden)}


BYTE_OF_CHARACTER = _byte_alphabet()
