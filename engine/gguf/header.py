"""The header of one GGUF file: version, metadata and the table of tensors, each value checked before it is used.

The layout is that of the GGUF specification: magic, version, the numbers of tensors and of keys; the keys with their
values; the tensors' names, shapes, types and offsets; padding; the tensors' data.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import ModelFormatError, UnsupportedModelError
from engine.gguf.cursor import Cursor
from engine.gguf.foreign import name_foreign_file
from engine.gguf.strings import read_string_array
from engine.gguf.tensor_types import REMOVED_TYPES, TensorType
from engine.gguf.value_types import SCALAR_DTYPES, SCALAR_STRUCTS, ValueType

MAGIC = b"GGUF"
DEFAULT_ALIGNMENT = 32

_FIXED_BYTES = 24
_MIN_KEY_BYTES = 8 + 1 + 4 + 1  # a name of one byte, a type, a value of one byte
_MIN_TENSOR_BYTES = 8 + 1 + 4 + 4 + 8  # a name of one byte, no dimension, a type, an offset
_MAX_KEYS = 65_536
_MAX_TENSORS = 262_144
_MAX_NAME_BYTES = 65_535
_MAX_DIMENSIONS = 4
_MAX_ELEMENTS = 2**62
_MAX_ALIGNMENT = 2**30
_MAX_ARRAY_DEPTH = 4
_MAX_NESTED_ARRAYS = 65_536


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """Where a tensor is and what it is.

    `shape` is in NumPy order, slowest first: a weight is (n_rows, n_inputs), experts (n_experts, n_rows, n_inputs).
    `offset` counts from the beginning of the file `file_index` of a split model.
    """

    name: str
    type: TensorType
    shape: tuple[int, ...]
    n_bytes: int
    file_index: int
    offset: int


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the tensors' data in one file; `data_offset` is where the data begins."""

    version: int
    metadata: dict[str, Any]
    tensors: dict[str, TensorInfo]
    alignment: int
    data_offset: int


def read_header(buffer: mmap.mmap | bytes, path: Path, file_index: int = 0) -> Header:
    """Read and check the header of the file mapped as `buffer`; `path` is for the error texts.

    Raises ModelFormatError for a foreign, damaged or truncated file; UnsupportedModelError for a sound file of a
    version, byte order or tensor type that is not known.
    """
    cursor = Cursor(buffer, path)
    version = _read_version(cursor)
    n_tensors, n_keys = cursor.u64("the number of tensors"), cursor.u64("the number of keys")
    _check_counts(cursor, n_tensors, n_keys)
    metadata = _MetadataReader(cursor).read(n_keys)
    alignment = _alignment(cursor, metadata)
    tensors = [_read_tensor(cursor, index, alignment) for index in range(n_tensors)]
    data_offset = -(-cursor.offset // alignment) * alignment
    placed: dict[str, TensorInfo] = {}
    for entry in tensors:
        if entry.name in placed:
            raise ModelFormatError(
                f"{path}: expected each tensor once, found {entry.name!r} twice in the table of tensors. "
                "The file is damaged or was written by a faulty program: get it from another source."
            )
        placed[entry.name] = TensorInfo(
            entry.name, entry.type, entry.shape, entry.n_bytes, file_index, data_offset + entry.offset
        )
    _check_extents(path, list(placed.values()), len(buffer))
    return Header(version, metadata, placed, alignment, data_offset)


def encoded_keys(buffer: mmap.mmap | bytes, path: Path) -> dict[str, bytes]:
    """Each key's type and value as the file has them, for a file that takes them over. Raises as `read_header` does."""
    cursor = Cursor(buffer, path)
    _read_version(cursor)
    n_tensors, n_keys = cursor.u64("the number of tensors"), cursor.u64("the number of keys")
    _check_counts(cursor, n_tensors, n_keys)
    values, encoded = _MetadataReader(cursor), dict[str, bytes]()
    for index in range(n_keys):
        key = cursor.name(f"the name of key {index}", _MAX_NAME_BYTES)
        start = cursor.offset
        values.skip(key)
        encoded[key] = buffer[start : cursor.offset]
    return encoded


def _read_version(cursor: Cursor) -> int:
    path, head, file_bytes = cursor.path, cursor.buffer[:1024], len(cursor.buffer)
    if head[:4] != MAGIC:
        what, advice = name_foreign_file(head, file_bytes)
        raise ModelFormatError(f"{path}: expected a GGUF model, found {what}. {advice}")
    if file_bytes < _FIXED_BYTES:
        raise ModelFormatError(
            f"{path}: expected a GGUF model of at least {_FIXED_BYTES} bytes, found {file_bytes}: it is cut short. "
            "Download or copy the file again."
        )
    cursor.offset = 4
    version = cursor.u32("the version")
    if version in (2, 3):
        return version
    if version == 1:
        raise UnsupportedModelError(
            f"{path}: expected GGUF version 2 or 3, found version 1, which was in use for a few weeks of 2023. "
            "Download a newer file of this model or convert it again."
        )
    swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
    if 1 <= swapped <= 255:
        raise UnsupportedModelError(
            f"{path}: expected a little-endian GGUF file, found a big-endian one (version {swapped}). "
            "Choose the little-endian file of this model."
        )
    if 3 < version <= 255:
        raise UnsupportedModelError(
            f"{path}: expected GGUF version 2 or 3, found version {version}, which is newer than this program. "
            "Update Colibri, or choose a version 3 file of this model."
        )
    raise cursor.error("the version", "2 or 3", f"{version:,}")


def _check_counts(cursor: Cursor, n_tensors: int, n_keys: int) -> None:
    if n_tensors > _MAX_TENSORS:
        raise cursor.error("the number of tensors", f"at most {_MAX_TENSORS:,}", f"{n_tensors:,}", offset=8)
    if n_keys > _MAX_KEYS:
        raise cursor.error("the number of keys", f"at most {_MAX_KEYS:,}", f"{n_keys:,}", offset=16)
    cursor.require(
        n_keys * _MIN_KEY_BYTES + n_tensors * _MIN_TENSOR_BYTES, f"{n_keys:,} keys and {n_tensors:,} tensors"
    )


class _MetadataReader:
    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self._n_nested_arrays = 0

    def read(self, n_keys: int) -> dict[str, Any]:
        metadata: dict[str, Any] = {}
        for index in range(n_keys):
            start = self._cursor.offset
            key = self._cursor.name(f"the name of key {index}", _MAX_NAME_BYTES)
            if key in metadata:
                raise self._cursor.error(f"the name of key {index}", "a new name", f"{key!r} again", offset=start)
            metadata[key] = self._value(self._cursor.u32(f"the type of key {key!r}"), f"key {key!r}")
        return metadata

    def skip(self, key: str) -> None:
        """Read the type and the value of `key`, for where they end."""
        self._value(self._cursor.u32(f"the type of key {key!r}"), f"key {key!r}")

    def _value(self, type_number: int, what: str) -> Any:
        cursor = self._cursor
        if type_number == ValueType.STRING:
            return cursor.string_bytes(what).decode(errors="replace")
        if type_number == ValueType.ARRAY:
            return self._array(what, 1)
        layout = SCALAR_STRUCTS.get(type_number)
        if layout is None:
            raise cursor.error(f"the type of {what}", "a number from 0 to 12", f"{type_number:,}")
        value = layout.unpack(cursor.take(layout.size, what))[0]
        if type_number == ValueType.BOOL:
            if value > 1:
                raise cursor.error(what, "a truth value, 0 or 1,", f"{value}")
            return bool(value)
        return value

    def _array(self, what: str, depth: int) -> Any:
        cursor = self._cursor
        item_type = cursor.u32(f"the element type of {what}")
        n_items = cursor.u64(f"the length of {what}")
        if item_type == ValueType.STRING:
            return read_string_array(cursor, n_items, what)
        if item_type == ValueType.ARRAY:
            return self._nested(n_items, what, depth)
        dtype = SCALAR_DTYPES.get(item_type)
        if dtype is None:
            raise cursor.error(f"the element type of {what}", "a number from 0 to 12", f"{item_type:,}")
        raw = cursor.take(n_items * dtype.itemsize, f"{what}, {n_items:,} elements of {dtype.itemsize} bytes,")
        if item_type == ValueType.BOOL and raw.translate(None, b"\0\1"):
            raise cursor.error(what, "truth values, 0 or 1,", "other bytes")
        return np.frombuffer(raw, dtype)

    def _nested(self, n_items: int, what: str, depth: int) -> list[Any]:
        if depth >= _MAX_ARRAY_DEPTH:
            raise self._cursor.error(what, f"at most {_MAX_ARRAY_DEPTH} arrays in one another", "more")
        self._n_nested_arrays += n_items
        if self._n_nested_arrays > _MAX_NESTED_ARRAYS:
            raise self._cursor.error(what, f"at most {_MAX_NESTED_ARRAYS:,} arrays in arrays", f"{n_items:,} more")
        return [self._array(f"array {index} of {what}", depth + 1) for index in range(n_items)]


def _alignment(cursor: Cursor, metadata: dict[str, Any]) -> int:
    alignment = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if (
        isinstance(alignment, bool)
        or not isinstance(alignment, int)
        or not 1 <= alignment <= _MAX_ALIGNMENT
        or alignment & (alignment - 1)
    ):
        raise ModelFormatError(
            f"{cursor.path}: expected a power of two up to {_MAX_ALIGNMENT:,} for key 'general.alignment', "
            f"found {str(alignment)[:80]}. The file is damaged: download it again."
        )
    return alignment


def _read_tensor(cursor: Cursor, index: int, alignment: int) -> TensorInfo:
    name = cursor.name(f"the name of tensor {index}", _MAX_NAME_BYTES)
    what = f"tensor {name!r}"
    n_dimensions = cursor.u32(f"the number of dimensions of {what}")
    if n_dimensions > _MAX_DIMENSIONS:
        raise cursor.error(f"the number of dimensions of {what}", f"at most {_MAX_DIMENSIONS}", f"{n_dimensions:,}")
    shape = tuple(cursor.u64(f"the dimensions of {what}") for _ in range(n_dimensions))[::-1]
    n_elements = 1
    for dimension in shape:
        n_elements *= dimension
    if not 0 < n_elements <= _MAX_ELEMENTS:
        raise cursor.error(f"the shape of {what}", "from 1 to 2^62 elements", f"the shape {shape}")
    type_ = _tensor_type(cursor, cursor.u32(f"the type of {what}"), what)
    n_inputs = shape[-1] if shape else 1
    if n_inputs % type_.block_size:
        raise cursor.error(
            f"the rows of {what}",
            f"a multiple of {type_.block_size} elements (a block of {type_.name})",
            f"{n_inputs:,}",
        )
    offset = cursor.u64(f"the offset of {what}")
    if offset % alignment:
        raise cursor.error(f"the offset of {what}", f"a multiple of {alignment:,} (the alignment)", f"{offset:,}")
    return TensorInfo(name, type_, shape, n_elements // type_.block_size * type_.block_bytes, 0, offset)


def _tensor_type(cursor: Cursor, number: int, what: str) -> TensorType:
    try:
        return TensorType(number)
    except ValueError:
        pass
    known = "a tensor type that this version knows"
    if number in REMOVED_TYPES:
        raise UnsupportedModelError(
            f"{cursor.path}: expected {known} for {what}, found {REMOVED_TYPES[number]} (number {number}), which "
            "GGML has given up. Download a newer file of this model, for example in Q4_0."
        )
    raise UnsupportedModelError(
        f"{cursor.path}: expected {known} for {what} (up to number {max(TensorType)}), found number {number:,}. "
        "Update Colibri; if it is up to date, the file is damaged: download it again."
    )


def _check_extents(path: Path, tensors: list[TensorInfo], file_bytes: int) -> None:
    """Raise unless every tensor ends within the file and none reaches into the next one."""
    tensors.sort(key=lambda tensor: tensor.offset)
    if not tensors:
        return
    last = max(tensors, key=lambda tensor: tensor.offset + tensor.n_bytes)
    expected_bytes = last.offset + last.n_bytes
    if expected_bytes > file_bytes:
        raise ModelFormatError(
            f"{path}: expected a file of {expected_bytes:,} bytes (tensor {last.name!r} ends there), found "
            f"{file_bytes:,} bytes: {expected_bytes - file_bytes:,} are missing. The download or copy did not finish: "
            "continue it or download the file again."
        )
    for tensor, following in pairwise(tensors):
        end = tensor.offset + tensor.n_bytes
        if end > following.offset:
            raise ModelFormatError(
                f"{path}: expected tensor {following.name!r} after byte {end:,}, where tensor {tensor.name!r} ends, "
                f"found it at byte {following.offset:,}: they overlap. The file is damaged: download it again."
            )
