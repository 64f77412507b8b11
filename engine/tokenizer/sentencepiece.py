"""SentencePiece's BPE (`tokenizer.ggml.model` = llama): the pair whose joined token scores highest is merged first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from engine.kernels.library import KernelLibrary
from engine.tokenizer.merger import Merger, TokenTable, byte_ids_of, byte_tokens
from engine.tokenizer.vocabulary import SPACE_MARK, TokenKind, Vocabulary

_MARK = SPACE_MARK.encode()
_MARK_BYTES = len(_MARK)
_NOT_TEXT = (TokenKind.CONTROL, TokenKind.UNKNOWN, TokenKind.BYTE)


class SentencePieceEncoder:
    """Encodes plain text (special tokens are already taken out) with a scored vocabulary and byte fallback."""

    def __init__(
        self,
        library: KernelLibrary,
        vocabulary: Vocabulary,
        scores: npt.NDArray[np.float32],
        unknown_id: int | None,
        *,
        adds_space: bool,
    ) -> None:
        tokens = TokenTable.of(library, vocabulary, _NOT_TEXT)
        ranks = np.unique(-scores, return_inverse=True)[1].astype(np.int64)
        self._merger = Merger(library, tokens, byte_ids_of(byte_tokens(vocabulary)), ranks=ranks, unknown_id=unknown_id)
        self._adds_space = adds_space
        self._has_words = not _goes_on_past_a_word(tokens)

    def encode(self, stretches: Sequence[str]) -> list[list[int]]:
        """The ids of each stretch of text; at the start and after a special token a space may be put before it."""
        before = " " if self._adds_space else ""
        encoded = [(before + text).replace(" ", SPACE_MARK).encode() for text in stretches]
        data, stretch_ends = b"".join(encoded), np.cumsum([len(part) for part in encoded], dtype=np.int32)
        ends = (
            np.union1d(_word_starts(np.frombuffer(data, np.uint8)), stretch_ends) if self._has_words else stretch_ends
        )
        return self._merger.encode(data, ends[ends > 0].astype(np.int32), stretch_ends)


def _goes_on_past_a_word(tokens: TokenTable) -> bool:
    """Whether a token has a mark behind another character; if none has, words are independent (and are remembered)."""
    inside = np.ones(len(tokens.texts), np.bool_)
    inside[tokens.bounds[:-1]] = False
    return bool(inside[_word_starts(tokens.texts[: tokens.bounds[-1]])].any())


def _word_starts(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Where words start, which are marks and what follows them: at marks that do not follow another one."""
    places: npt.NDArray[np.int64] = np.flatnonzero(data[: max(len(data) - _MARK_BYTES + 1, 0)] == _MARK[0])
    for i in range(1, _MARK_BYTES):
        places = places[data[places + i] == _MARK[i]]
    follows = np.diff(places, prepend=-_MARK_BYTES) == _MARK_BYTES
    starts: npt.NDArray[np.int64] = places[~follows]
    return starts
