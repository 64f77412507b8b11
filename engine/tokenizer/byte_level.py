"""Byte-level BPE (`tokenizer.ggml.model` = gpt2): every byte is a character, merges are listed in the file."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

import numpy as np

from engine.errors import ModelFormatError
from engine.kernels.library import KernelLibrary
from engine.tokenizer.merger import Merger, PairTable, TokenTable, byte_ids_of
from engine.tokenizer.pre_tokenizers import PreTokenizer
from engine.tokenizer.vocabulary import TokenKind, Vocabulary
from engine.tokenizer.words import WordCutter

MERGES_KEY = "tokenizer.ggml.merges"


class ByteLevelEncoder:
    """Encodes plain text (special tokens are already taken out) with a byte-level vocabulary."""

    def __init__(
        self, library: KernelLibrary, vocabulary: Vocabulary, merges: Sequence[str], pre: PreTokenizer
    ) -> None:
        """Raises ModelFormatError for a merge that is no two tokens with a space between them."""
        tokens = TokenTable.of(library, vocabulary, (TokenKind.CONTROL, TokenKind.UNKNOWN))
        pairs = PairTable(library, tokens, merges)
        if pairs.n_sound < len(merges):
            raise ModelFormatError(
                f"expected two tokens with a space between them in {MERGES_KEY}[{pairs.n_sound}], "
                f"found {merges[pairs.n_sound]!r}; the file is damaged"
            )
        self._merger = Merger(library, tokens, _single_bytes(tokens), pairs=pairs, takes_whole=pre.ignore_merges)
        self._cutter = WordCutter(library, pre.expressions)
        self._composes = pre.composes

    def encode(self, stretches: Sequence[str]) -> list[list[int]]:
        """The ids of each stretch of text."""
        if self._composes:
            stretches = [_composed(text) for text in stretches]
        encoded = [text.encode() for text in stretches]
        stretch_ends = np.cumsum([len(data) for data in encoded], dtype=np.int32)
        return self._merger.encode(b"".join(encoded), self._cutter.ends(stretches), stretch_ends)


def _composed(text: str) -> str:
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def _single_bytes(tokens: TokenTable) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """The tokens that spell one byte, (256,) int32, -1 for none."""
    ids = np.flatnonzero(np.diff(tokens.bounds) == 1)
    return byte_ids_of(zip(tokens.texts[tokens.bounds[ids]].tolist(), ids.tolist(), strict=True))
