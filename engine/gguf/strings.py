"""Arrays of strings as GGUF stores them: walked once for their bounds, decoded when asked for."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np
import numpy.typing as npt

from engine.gguf.cursor import Cursor

# Vocabularies have up to some 300,000 tokens and merges; more than this is damage.
MAX_STRINGS = 4 * 1024 * 1024

_U64 = struct.Struct("<Q")
_LENGTH_BYTES = 8
_MIN_WINDOW_BYTES = 4096
_MAX_WINDOW_BYTES = 1024 * 1024
_MIN_STEPS = 32
_MAX_STEPS = 4096


class StringArray(Sequence[str]):
    """An immutable sequence of strings over their stored form; a string is decoded when it is asked for.

    Bytes that are not UTF-8 decode to U+FFFD; `raw` gives them as they are.
    """

    __slots__ = ("_data", "_starts")

    def __init__(self, data: bytes, starts: npt.NDArray[np.int32]) -> None:
        """`data`: lengths and bytes as in the file; `starts` (n + 1,): where each length is, and the end."""
        self._data = data
        self._starts = starts

    @classmethod
    def of(cls, strings: Sequence[str]) -> StringArray:
        """The stored form of these strings."""
        encoded = [string.encode(errors="replace") for string in strings]
        starts = np.zeros(len(encoded) + 1, np.int32)
        np.cumsum([_LENGTH_BYTES + len(string) for string in encoded], out=starts[1:])
        return cls(b"".join(part for string in encoded for part in (_U64.pack(len(string)), string)), starts)

    @property
    def data(self) -> bytes:
        """Lengths (8 bytes each) and bytes of all strings, as in the file."""
        return self._data

    @property
    def starts(self) -> npt.NDArray[np.int32]:
        """(n + 1,) int32: where the length of each string is in `data`, and the end."""
        return self._starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self.raw(index).decode(errors="replace")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StringArray):
            return self._data == other._data
        if isinstance(other, Sequence) and not isinstance(other, (str, bytes)):
            return len(self) == len(other) and self.tolist() == list(other)
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<StringArray of {len(self):,} strings>"

    def raw(self, index: int) -> bytes:
        """The bytes of string `index` as they are in the file."""
        n = len(self)
        if not -n <= index < n:
            raise IndexError(f"string {index} of {n}")
        index %= n
        return self._data[self._starts[index] + _LENGTH_BYTES : self._starts[index + 1]]

    def tolist(self) -> list[str]:
        """All strings. A vocabulary of 150,000 takes some 15 ms."""
        if not len(self):
            return []
        return self._split_at_once() or self._decode_one_by_one()

    def _split_at_once(self) -> list[str] | None:
        """Put one NUL in place of each length, decode and split; None if a string itself has a NUL or is not UTF-8."""
        text = np.frombuffer(self._data, np.uint8).copy()
        keep = np.ones(len(text), np.bool_)
        starts = self._starts[:-1]
        text[starts] = 0
        for i in range(1, _LENGTH_BYTES):
            keep[starts + i] = False
        try:
            strings = text[keep][1:].tobytes().decode().split("\0")
        except UnicodeDecodeError:
            return None
        return strings if len(strings) == len(self) else None

    def _decode_one_by_one(self) -> list[str]:
        data, bounds = self._data, self._starts.tolist()
        return [data[start + _LENGTH_BYTES : end].decode(errors="replace") for start, end in pairwise(bounds)]


def read_string_array(cursor: Cursor, n_strings: int, what: str) -> StringArray:
    """Take `n_strings` strings at the cursor; each length is checked against what is left of the file.

    Raises ModelFormatError that names the first string which does not fit.
    """
    if n_strings > MAX_STRINGS:
        raise cursor.error(f"the length of {what}", f"at most {MAX_STRINGS:,} strings", f"{n_strings:,}")
    cursor.require(n_strings * _LENGTH_BYTES, f"the {n_strings:,} lengths of {what}")
    starts = np.empty(n_strings + 1, np.int32)
    base = cursor.offset
    position, limit = base, base + cursor.left_bytes
    buffer, read_length = cursor.buffer, _U64.unpack_from
    done, window_bytes, n_steps = 0, _MIN_WINDOW_BYTES, _MIN_STEPS
    while done < n_strings:
        window = np.frombuffer(buffer[position : min(position + window_bytes, limit)], np.uint8)
        chain, end = _guess_chain(window, n_strings - done)
        starts[done : done + len(chain)] = chain + (position - base)
        done += len(chain)
        position += end
        if len(chain) >= _MIN_STEPS:
            window_bytes = min(window_bytes * 4, _MAX_WINDOW_BYTES) if end > window_bytes // 2 else _MIN_WINDOW_BYTES
            n_steps = _MIN_STEPS
            continue
        # An empty or long string, or one with NULs: some steps one by one, more each time that guessing does not pay.
        window_bytes = _MIN_WINDOW_BYTES
        for index in range(done, min(done + n_steps, n_strings)):
            if position + _LENGTH_BYTES > limit:
                cursor.offset = position
                cursor.require(_LENGTH_BYTES, f"the length of string {index:,} of {what}")
            starts[index] = position - base
            n_bytes: int = read_length(buffer, position)[0]
            if n_bytes > limit - position - _LENGTH_BYTES:
                cursor.offset = position + _LENGTH_BYTES
                cursor.require(n_bytes, f"string {index:,} of {what}")
            position += _LENGTH_BYTES + n_bytes
            done = index + 1
        n_steps = min(n_steps * 2, _MAX_STEPS)
    starts[n_strings] = position - base
    return StringArray(cursor.take(position - base, what), starts)


def _guess_chain(window: npt.NDArray[np.uint8], n_max: int) -> tuple[npt.NDArray[np.int64], int]:
    """Where the next lengths are in `window` (which starts with one), and the end of the last one's string.

    Following lengths one by one costs some 100 ns each in Python, 30 ms for a large vocabulary. But most strings are
    short and have no NUL, so a length is a byte before seven zero bytes. All such places are found at once and then
    proven: the first is the window's start, and each one's string ends where the next one starts. What is not proven
    is left out, so a guess can be short but never wrong.
    """
    nothing = np.empty(0, np.int64)
    if len(window) < _LENGTH_BYTES:
        return nothing, 0
    zero = window == 0
    n_places = len(window) - _LENGTH_BYTES + 1
    is_length = zero[1 : 1 + n_places].copy()
    for i in range(2, _LENGTH_BYTES):
        is_length &= zero[i : i + n_places]
    places = np.flatnonzero(is_length)[: n_max + 1]
    if not len(places) or places[0] != 0:
        return nothing, 0
    ends = places + _LENGTH_BYTES + window[places]
    proven = ends[:-1] == places[1:]
    n_proven = len(proven) if proven.all() else int(np.argmin(proven))
    n_proven = min(n_proven, n_max)
    return (places[:n_proven], int(places[n_proven])) if n_proven else (nothing, 0)
