"""A reading position in a mapped file that checks every length before it takes a byte."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from engine.errors import ModelFormatError

# No model's header comes near this (a vocabulary of 300,000 with its merges has some 15 MB); memory for it is bounded.
MAX_HEADER_BYTES = 512 * 1024 * 1024

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")

_DOWNLOAD_AGAIN = "The file is damaged or cut short: download or copy it again."


class Cursor:
    """Reads little-endian values from `buffer`, from `offset` on; a value that is not there raises ModelFormatError.

    `what` names the value in the error, for example "the length of key 17".
    """

    __slots__ = ("_file_bytes", "_limit", "_value_offset", "buffer", "offset", "path")

    def __init__(self, buffer: mmap.mmap | bytes, path: Path, offset: int = 0) -> None:
        self.buffer = buffer
        self.path = path
        self.offset = offset
        self._value_offset = offset
        self._file_bytes = len(buffer)
        self._limit = min(self._file_bytes, MAX_HEADER_BYTES)

    @property
    def left_bytes(self) -> int:
        """Bytes that a header value may still take."""
        return self._limit - self.offset

    def error(self, what: str, expected: str, found: str, *, offset: int | None = None) -> ModelFormatError:
        """An error at `offset` (where the last value that was read begins, if None); the caller raises it."""
        at = self._value_offset if offset is None else offset
        return ModelFormatError(
            f"{self.path}: expected {expected} for {what} at byte {at:,}, found {found}. {_DOWNLOAD_AGAIN}"
        )

    def require(self, n_bytes: int, what: str) -> None:
        """Raise unless `n_bytes` are left."""
        if n_bytes > self._limit - self.offset:
            cut = self._limit < self._file_bytes
            end = f"the longest possible header's end (byte {self._limit:,})" if cut else "the file's end"
            found = f"{self.left_bytes:,} up to {end}"
            raise self.error(what, f"{n_bytes:,} bytes", found, offset=self.offset)

    def u32(self, what: str) -> int:
        self.require(4, what)
        self._value_offset = self.offset
        value: int = _U32.unpack_from(self.buffer, self.offset)[0]
        self.offset += 4
        return value

    def u64(self, what: str) -> int:
        self.require(8, what)
        self._value_offset = self.offset
        value: int = _U64.unpack_from(self.buffer, self.offset)[0]
        self.offset += 8
        return value

    def take(self, n_bytes: int, what: str) -> bytes:
        """A copy of the next `n_bytes`."""
        self.require(n_bytes, what)
        start = self._value_offset = self.offset
        self.offset = start + n_bytes
        return self.buffer[start : self.offset]

    def string_bytes(self, what: str) -> bytes:
        """A string as GGUF stores it: an unsigned 64-bit length, then that many bytes."""
        return self.take(self.u64(f"the length of {what}"), what)

    def name(self, what: str, max_bytes: int) -> str:
        """A string that must be valid UTF-8, not empty and at most `max_bytes` long: a key or a tensor's name."""
        n_bytes = self.u64(f"the length of {what}")
        if not 0 < n_bytes <= max_bytes:
            raise self.error(f"the length of {what}", f"1 to {max_bytes:,} bytes", f"{n_bytes:,}")
        raw = self.take(n_bytes, what)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.error(what, "UTF-8 text", f"the bytes {raw[:32]!r}") from error
