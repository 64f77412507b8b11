"""The header of a safetensors file: each tensor's name, type, shape and place, checked before anything is read.

Layout: the header's length (unsigned 64 bits, little-endian), the header (a JSON object), the tensors' bytes.
"""

from __future__ import annotations

import json
import math
import os
import stat
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeGuard

from engine.errors import MissingFileError, ModelFormatError, UnsupportedModelError
from engine.gguf.foreign import name_foreign_file

_LENGTH_BYTES = 8
_MAX_HEADER_BYTES = 100_000_000  # the format's own limit
_PEEK_BYTES = 1024
_MAX_DIMENSIONS = 8
_MAX_ELEMENTS = 2**62
_METADATA = "__metadata__"

# Bytes of an element, by the name that the header gives the type.
ITEM_BYTES = {
    "F64": 8,
    "F32": 4,
    "F16": 2,
    "BF16": 2,
    "F8_E4M3": 1,
    "F8_E5M2": 1,
    "F8_E8M0": 1,
    "I64": 8,
    "I32": 4,
    "I16": 2,
    "I8": 1,
    "U64": 8,
    "U32": 4,
    "U16": 2,
    "U8": 1,
    "BOOL": 1,
}


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """Where a tensor is and what it is; `offset` counts from the beginning of the file, `shape` is slowest first."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    offset: int

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


def read_header(path: Path) -> dict[str, StoredTensor]:
    """The tensors of the file at `path`, by name; nothing but the header is read.

    Raises ModelFormatError for a file that is no sound safetensors file, UnsupportedModelError for a type that is not
    known here.
    """
    raw, file_bytes = _read_raw_header(path)
    try:
        entries = json.loads(raw, object_pairs_hook=lambda pairs: _without_duplicates(path, pairs))
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "a header in JSON", f"text that is not ({error})") from error
    if not isinstance(entries, dict):
        raise _damaged(path, "a header with an object of tensors", f"a {type(entries).__name__}")
    data_offset = _LENGTH_BYTES + len(raw)
    tensors = {
        name: _tensor(path, name, entry, data_offset, file_bytes)
        for name, entry in entries.items()
        if name != _METADATA
    }
    _check_extents(path, tensors)
    return tensors


def _read_raw_header(path: Path) -> tuple[bytes, int]:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingFileError(
            f"{path}: expected a safetensors file that can be read, found: {reason}. "
            "Check that the download is complete, and the file's permissions."
        ) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ModelFormatError(f"{path}: expected a safetensors file, found a folder, device or pipe.")
        length = int.from_bytes(os.pread(descriptor, _LENGTH_BYTES, 0), "little")
        limit = max(0, min(_MAX_HEADER_BYTES, status.st_size - _LENGTH_BYTES))
        if not 2 <= length <= limit:
            _refuse_foreign(path, os.pread(descriptor, _PEEK_BYTES, 0), status.st_size)
            raise _damaged(path, f"a header of 2 to {limit:,} bytes in a file of {status.st_size:,}", f"{length:,}")
        raw = os.pread(descriptor, length, _LENGTH_BYTES)
    finally:
        os.close(descriptor)
    if len(raw) != length:
        raise _damaged(path, f"a header of {length:,} bytes", f"{len(raw):,}")
    return raw, status.st_size


def _refuse_foreign(path: Path, head: bytes, file_bytes: int) -> None:
    """Raise if the first bytes are those of another kind of file, as of what a failed download leaves."""
    what, advice = name_foreign_file(head, file_bytes)
    if head.startswith(b"GGUF"):
        what, advice = "a GGUF model", "It needs no conversion: open it as it is."
    elif "choose" in advice.lower() or "convert" in advice.lower():
        advice = "Choose the checkpoint's safetensors files."
    if not what.startswith("an unknown file"):
        raise ModelFormatError(f"{path}: expected a safetensors file, found {what}. {advice}")


def _without_duplicates(path: Path, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _damaged(path, "each name once in the header", f"{twice[:200]!r} twice")
    return found


def _tensor(path: Path, name: str, entry: Any, data_offset: int, file_bytes: int) -> StoredTensor:
    what = f"tensor {name[:200]!r}"
    if not isinstance(entry, dict):
        raise _damaged(path, f"an object for {what}", f"{entry!r:.80}")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str):
        raise _damaged(path, f"a dtype for {what}", f"{dtype!r:.80}")
    if dtype not in ITEM_BYTES:
        raise UnsupportedModelError(
            f"{path}: {what} has the type {dtype[:40]!r}; known are {', '.join(ITEM_BYTES)}. "
            "Update Colibri, or choose a checkpoint in BF16."
        )
    if not _is_count_list(shape) or len(shape) > _MAX_DIMENSIONS or math.prod(shape) > _MAX_ELEMENTS:
        raise _damaged(path, f"a shape of up to {_MAX_DIMENSIONS} dimensions for {what}", f"{shape!r:.80}")
    if not _is_count_list(offsets) or len(offsets) != 2:
        raise _damaged(path, f"two data_offsets for {what}", f"{offsets!r:.80}")
    begin, end = offsets
    n_bytes = math.prod(shape) * ITEM_BYTES[dtype]
    if end - begin != n_bytes:
        raise _damaged(path, f"{n_bytes:,} bytes for {what}, {dtype} of shape {shape}", f"{end - begin:,}")
    if data_offset + end > file_bytes:
        raise _damaged(path, f"{what} within the file's {file_bytes:,} bytes", f"its end at byte {data_offset + end:,}")
    return StoredTensor(name, dtype, tuple(shape), path, data_offset + begin)


def _is_count_list(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 2**63 for item in value)


def _check_extents(path: Path, tensors: dict[str, StoredTensor]) -> None:
    placed = sorted((tensor for tensor in tensors.values() if tensor.n_bytes), key=lambda tensor: tensor.offset)
    for before, after in pairwise(placed):
        if before.offset + before.n_bytes > after.offset:
            raise _damaged(path, "each tensor in bytes of its own", f"{before.name!r} and {after.name!r} overlap")


def _damaged(path: Path, expected: str, found: str) -> ModelFormatError:
    return ModelFormatError(
        f"{path}: expected {expected}, found {found}. "
        "The file is damaged, cut short or no safetensors file: download it again."
    )
