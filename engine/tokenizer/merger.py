"""Words to token ids: a vocabulary's tables in memory and the kernels that read them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from engine.gguf.strings import StringArray
from engine.kernels.library import KernelLibrary
from engine.kernels.text_layout import (
    BY_MERGES,
    BY_SCORES,
    CACHE_ENTRIES,
    CACHE_ENTRY_BYTES,
    PADDING_BYTES,
    SYMBOL_BYTES,
    hash_slots,
)
from engine.tokenizer.vocabulary import BYTE_OF_CHARACTER, TokenKind, Vocabulary, byte_value

_NO_BYTE = 0xFFFF

Numbers = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class TokenTable:
    """The tokens that text is encoded to, found by what they spell; see engine/kernels/tokens.py."""

    texts: npt.NDArray[np.uint8]
    bounds: npt.NDArray[np.int32]
    slots: npt.NDArray[np.int32]
    longest_bytes: int

    @classmethod
    def of(cls, library: KernelLibrary, vocabulary: Vocabulary, left_out: Sequence[TokenKind]) -> TokenTable:
        """All tokens of the vocabulary that have none of the kinds `left_out`."""
        tokens = string_array(vocabulary.tokens)
        n_tokens = len(tokens)
        texts = np.zeros(len(tokens.data) + PADDING_BYTES, np.uint8)
        bounds, slots = np.zeros(n_tokens + 1, np.int32), np.zeros(hash_slots(n_tokens), np.int32)
        is_left_out, longest = np.isin(vocabulary.kinds, left_out), np.zeros(1, np.int64)
        data, byte_of = np.frombuffer(tokens.data, np.uint8), _byte_of_characters()
        library.run(
            "index_tokens",
            strings=data.ctypes.data,
            starts=tokens.starts.ctypes.data,
            n_tokens=n_tokens,
            is_left_out=is_left_out.ctypes.data,
            byte_of=byte_of.ctypes.data if vocabulary.byte_level else 0,
            texts=texts.ctypes.data,
            bounds=bounds.ctypes.data,
            slots=slots.ctypes.data,
            n_slots=len(slots),
            longest=longest.ctypes.data,
        )
        return cls(texts, bounds, slots, int(longest[0]))

    def operands(self) -> dict[str, int]:
        """The table as operands of kernels."""
        return {
            "texts": self.texts.ctypes.data,
            "bounds": self.bounds.ctypes.data,
            "slots": self.slots.ctypes.data,
            "n_slots": len(self.slots),
        }


class PairTable:
    """The merges of a byte-level vocabulary, found by the two tokens that are merged."""

    def __init__(self, library: KernelLibrary, tokens: TokenTable, merges: Sequence[str]) -> None:
        strings = string_array(merges)
        self.pairs = np.zeros((hash_slots(len(strings)), 2), np.int64)
        longest = int(np.diff(strings.starts).max(initial=0))
        joined, n_sound = np.zeros(longest + PADDING_BYTES, np.uint8), np.zeros(1, np.int64)
        data, byte_of = np.frombuffer(strings.data, np.uint8), _byte_of_characters()
        library.run(
            "index_merges",
            strings=data.ctypes.data,
            starts=strings.starts.ctypes.data,
            n_merges=len(strings),
            byte_of=byte_of.ctypes.data,
            **tokens.operands(),
            pairs=self.pairs.ctypes.data,
            n_pair_slots=len(self.pairs),
            joined=joined.ctypes.data,
            n_sound=n_sound.ctypes.data,
        )
        self.n_sound = int(n_sound[0])  # the number of the first merge that is no two texts; else how many there are


class Merger:
    """Encodes words by merging; may be used from any thread."""

    def __init__(
        self,
        library: KernelLibrary,
        tokens: TokenTable,
        byte_ids: npt.NDArray[np.int32],
        *,
        pairs: PairTable | None = None,
        ranks: npt.NDArray[np.int64] | None = None,
        unknown_id: int | None = None,
        takes_whole: bool = False,
    ) -> None:
        """`pairs`, or `ranks` (n_tokens,): the lower, the earlier a token is merged. `byte_ids` (256,): -1 for none.
        `unknown_id`: what a character becomes whose bytes have no tokens; without it, nothing.
        `takes_whole`: a word that is a token is taken whole, whatever the merges say."""
        self._library = library
        self._caches: list[npt.NDArray[np.uint8]] = []
        self._lock = threading.Lock()
        self._tables = (tokens, pairs, ranks, byte_ids)  # what the addresses below point into
        self._operands = {
            "kind": BY_MERGES if ranks is None else BY_SCORES,
            **tokens.operands(),
            "longest": tokens.longest_bytes,
            "pairs": 0 if pairs is None else pairs.pairs.ctypes.data,
            "n_pair_slots": 0 if pairs is None else len(pairs.pairs),
            "ranks": 0 if ranks is None else ranks.ctypes.data,
            "byte_ids": byte_ids.ctypes.data,
            "unknown": -1 if unknown_id is None else unknown_id,
            "takes_whole": int(takes_whole),
        }

    def encode(self, text: bytes, ends: npt.NDArray[np.int32], stretch_ends: npt.NDArray[np.int32]) -> list[list[int]]:
        """The ids of each of several texts, which stand one after another in `text`.

        `ends` (n_words,): the ends of words in bytes, those of the texts, `stretch_ends` (n_texts,), among them.
        """
        longest_word = int(np.diff(ends, prepend=0).max(initial=0))
        padded = np.frombuffer(text + bytes(PADDING_BYTES), np.uint8)
        symbols = np.empty((longest_word + 1) * SYMBOL_BYTES, np.uint8)
        ids, counts = np.empty(max(len(text), 1), np.int32), np.empty(len(ends), np.int32)
        cache = self._take_cache()
        self._library.run(
            "merge_words",
            **self._operands,
            text=padded.ctypes.data,
            ends=ends.ctypes.data,
            n_words=len(ends),
            cache=cache.ctypes.data,
            symbols=symbols.ctypes.data,
            longest_word=longest_word,
            ids=ids.ctypes.data,
            counts=counts.ctypes.data,
        )
        with self._lock:
            self._caches.append(cache)
        bounds = [0, *counts[np.searchsorted(ends, stretch_ends)].tolist()]
        found: list[int] = ids[: bounds[-1]].tolist()
        return [found[first:last] for first, last in pairwise(bounds)]

    def _take_cache(self) -> npt.NDArray[np.uint8]:
        """Remembered words, for one thread at a time."""
        with self._lock:
            if self._caches:
                return self._caches.pop()
        return np.zeros(CACHE_ENTRIES * CACHE_ENTRY_BYTES, np.uint8)


def string_array(strings: Sequence[str]) -> StringArray:
    """The strings as GGUF stores them; of strings out of a file nothing is copied."""
    return strings if isinstance(strings, StringArray) else StringArray.of(strings)


def byte_ids_of(tokens: Iterable[tuple[int, int]]) -> npt.NDArray[np.int32]:
    """(256,) int32: the token of each byte, from pairs of byte and token; -1 for none."""
    ids = np.full(256, -1, np.int32)
    for value, token_id in tokens:
        ids[value] = token_id
    return ids


def byte_tokens(vocabulary: Vocabulary) -> Iterable[tuple[int, int]]:
    """Byte and token of the tokens that stand for a byte that is no text, `<0x41>`."""
    for text, token_id in vocabulary.of_kind(TokenKind.BYTE).items():
        value = byte_value(text)
        if value is not None:
            yield value, token_id


def _byte_of_characters() -> npt.NDArray[np.uint16]:
    """(0x200,) uint16: the byte that each of GPT-2's characters stands for."""
    table = np.full(0x200, _NO_BYTE, np.uint16)
    table[[ord(character) for character in BYTE_OF_CHARACTER]] = list(BYTE_OF_CHARACTER.values())
    return table
