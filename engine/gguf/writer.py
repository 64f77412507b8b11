"""Writes GGUF version 3 files, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from engine.gguf.header import MAGIC
from engine.gguf.partial_file import PartialFile, sync_folder
from engine.gguf.tensor_types import TensorType
from engine.gguf.value_types import SCALAR_DTYPES, SCALAR_STRUCTS, ValueType

_VERSION = 3
_MAX_NAME_BYTES = 63  # other readers of GGUF keep tensor names in 64 bytes with a closing NUL
_MAX_KEY_BYTES = 65_535
_MAX_DIMENSIONS = 4

TensorData = bytes | bytearray | memoryview | npt.NDArray[Any]
TensorSource = Callable[[], "TensorData | Iterator[TensorData]"]


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    type: TensorType
    shape: tuple[int, ...]
    n_bytes: int
    data: TensorData | TensorSource


class GGUFWriter:
    """Collects metadata and tensors, then `write`s them to `path`.

    Tensor data begins at multiples of `alignment`, 4,096 bytes unless said otherwise, so that it can be read without
    the page cache. A file that stood at `path` before stays whole until the new one is complete on disk.
    """

    def __init__(self, path: str | os.PathLike[str], alignment: int = 4096) -> None:
        if alignment < 8 or alignment & (alignment - 1):
            raise ValueError(f"expected a power of two from 8 on as alignment, found {alignment}")
        self._path = Path(path)
        self._alignment = alignment
        self._values: dict[str, bytes] = {}
        self._tensors: dict[str, _Tensor] = {}
        self.add("general.alignment", alignment, ValueType.UINT32)

    def add(self, key: str, value: object, type: ValueType | None = None) -> None:
        """Add a metadata key.

        value: bool, int, float, str, a NumPy scalar, a NumPy array of one dimension, or a list of bool, int, float or
        str. type: of the value, or of a list's elements. If None it is inferred: an int becomes the first of uint32,
        int32, uint64, int64 that holds it (in lists int32, uint32, int64, uint64); a float becomes float32.
        Raises ValueError or TypeError for a key that is there already or a value that does not fit.
        """
        if not 0 < len(key.encode()) <= _MAX_KEY_BYTES:
            raise ValueError(f"expected a key of 1 to {_MAX_KEY_BYTES:,} bytes, found {len(key.encode()):,}")
        if key in self._values:
            raise ValueError(f"expected each key once, found {key!r} again")
        if type is ValueType.ARRAY:
            raise ValueError(f"key {key!r}: give the type of the array's elements")
        try:
            self._values[key] = _encode(value, type)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"key {key!r}: {error}") from error

    def add_encoded(self, key: str, encoded: bytes) -> None:
        """Add a key with the type and value that another file has for it (`GGUFReader.encoded_keys`)."""
        if key in self._values:
            raise ValueError(f"expected each key once, found {key!r} again")
        self._values[key] = encoded

    def add_tensor(self, name: str, type: TensorType, shape: Sequence[int], data: TensorData | TensorSource) -> None:
        """Add a tensor of `shape` (NumPy order, slowest first).

        data: its bytes in the layout of `type`, as any buffer or array; or a function that gives them, or an iterator
        over pieces of them, which is called when the tensor is written: a large model need not be in memory at once.
        Raises ValueError for a name that is there already, or a shape, type and size that disagree.
        """
        if not 0 < len(name.encode()) <= _MAX_NAME_BYTES:
            raise ValueError(f"expected a tensor name of 1 to {_MAX_NAME_BYTES} bytes, found {name!r}")
        if name in self._tensors:
            raise ValueError(f"expected each tensor once, found {name!r} again")
        shape = tuple(int(dimension) for dimension in shape)
        if len(shape) > _MAX_DIMENSIONS or any(dimension < 1 for dimension in shape):
            raise ValueError(f"tensor {name!r}: expected up to {_MAX_DIMENSIONS} dimensions from 1 on, found {shape}")
        tensor = _Tensor(name, type, shape, type.n_bytes(shape), data)
        if not callable(data):
            _check_bytes(tensor, _view(data).nbytes)
        self._tensors[name] = tensor

    def write(self, identity: str | None = None) -> Path:
        """Write the file and return its path: first beside it, then, complete and on disk, renamed to it.

        identity: stands for what the tensors are made from. If it is given, a process that was killed leaves its work
        beside `path`, and the next one that writes the same header with the same identity goes on after the tensors
        that were on disk. Raises FileInUseError if another process writes this file with an identity now.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if identity is not None:
            return self._write_resumable(identity)
        with _Replacement(self._path) as file:
            file.write(self._header())
            self._pad(file)
            for tensor in self._tensors.values():
                for piece in _pieces(tensor):
                    file.write(piece)
                self._pad(file)
        return self._path

    def _write_resumable(self, identity: str) -> Path:
        header = self._header()
        with PartialFile(self._path, hashlib.sha256(header + identity.encode()).hexdigest()) as partial:
            if not partial.n_parts:
                partial.file.write(header)
                self._pad(partial.file)
            for n_done, tensor in enumerate(self._tensors.values(), 1):
                if n_done <= partial.n_parts:
                    continue
                for piece in _pieces(tensor):
                    partial.file.write(piece)
                self._pad(partial.file)
                partial.part_done(n_done)
        return self._path

    def write_outline(self, file: BinaryIO) -> None:
        """Write the header into an empty file, and in the data's place a hole of its length: enough to measure a model.

        Tensors given as functions are not called. The file takes no more of the disk than its header.
        """
        file.write(self._header())
        self._pad(file)
        padded = (-(-tensor.n_bytes // self._alignment) * self._alignment for tensor in self._tensors.values())
        file.truncate(file.tell() + sum(padded))
        file.flush()

    def _header(self) -> bytes:
        parts = [MAGIC, struct.pack("<IQQ", _VERSION, len(self._tensors), len(self._values))]
        for key, encoded in self._values.items():
            parts += [_string(key), encoded]
        offset = 0
        for tensor in self._tensors.values():
            parts.append(_string(tensor.name))
            parts.append(struct.pack("<I", len(tensor.shape)))
            parts.append(struct.pack(f"<{len(tensor.shape)}Q", *reversed(tensor.shape)))
            parts.append(struct.pack("<IQ", tensor.type, offset))
            offset += -(-tensor.n_bytes // self._alignment) * self._alignment
        return b"".join(parts)

    def _pad(self, file: BinaryIO) -> None:
        file.write(bytes(-file.tell() % self._alignment))


class _Replacement:
    """A binary file beside `path` that takes its place when the block ends well, and vanishes when it does not."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")

    def __enter__(self) -> BinaryIO:
        self._file = self._temporary.open("xb", buffering=1 << 20)
        return self._file

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with self._file:
                if kind is None:
                    self._file.flush()
                    os.fsync(self._file.fileno())
            if kind is None:
                self._temporary.replace(self._path)
                sync_folder(self._path.parent)
        finally:
            self._temporary.unlink(missing_ok=True)


def _pieces(tensor: _Tensor) -> Iterator[memoryview]:
    data = tensor.data() if callable(tensor.data) else tensor.data
    n_bytes = 0
    for piece in data if isinstance(data, Iterator) else (data,):
        view = _view(piece)
        n_bytes += view.nbytes
        yield view
    _check_bytes(tensor, n_bytes)


def _view(data: TensorData) -> memoryview:
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
    return memoryview(data).cast("B")


def _check_bytes(tensor: _Tensor, n_bytes: int) -> None:
    if n_bytes != tensor.n_bytes:
        raise ValueError(
            f"tensor {tensor.name!r}: expected {tensor.n_bytes:,} bytes for {tensor.type.name} of shape "
            f"{tensor.shape}, found {n_bytes:,}"
        )


def _encode(value: object, type: ValueType | None) -> bytes:
    if isinstance(value, np.generic):
        type = _type_of_dtype(value.dtype) if type is None else type
        value = value.item()
    if isinstance(value, np.ndarray):
        return _encode_array(value, type)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return _encode_list(list(value), type)
    type = _infer_scalar(value) if type is None else type
    return struct.pack("<I", type) + _payload(value, type)


def _encode_array(array: npt.NDArray[Any], type: ValueType | None) -> bytes:
    if array.ndim != 1:
        raise ValueError(f"expected an array of one dimension, found {array.ndim}")
    if array.dtype.kind in "US":
        return _encode_list(array.tolist(), type)
    type = _type_of_dtype(array.dtype) if type is None else type
    if type not in SCALAR_DTYPES:
        raise TypeError(f"expected an array of numbers for elements of type {type.name}, found {array.dtype}")
    cast = array.astype(SCALAR_DTYPES[type])
    if cast.dtype.kind in "iub" and not np.array_equal(cast, array):
        raise ValueError(f"expected numbers that fit {type.name}, found {array.min()} to {array.max()}")
    return struct.pack("<IIQ", ValueType.ARRAY, type, len(cast)) + cast.tobytes()


def _encode_list(items: list[Any], type: ValueType | None) -> bytes:
    type = _infer_list(items) if type is None else type
    return struct.pack("<IIQ", ValueType.ARRAY, type, len(items)) + b"".join(_payload(item, type) for item in items)


def _payload(value: object, type: ValueType) -> bytes:
    if type is ValueType.STRING:
        if not isinstance(value, str):
            raise TypeError(f"expected text for {type.name}, found {value!r}")
        return _string(value)
    if type is ValueType.BOOL and not isinstance(value, bool):
        raise TypeError(f"expected True or False for {type.name}, found {value!r}")
    if isinstance(value, bool) is not (type is ValueType.BOOL) or not isinstance(value, (bool, int, float)):
        raise TypeError(f"expected a number for {type.name}, found {value!r}")
    try:
        return SCALAR_STRUCTS[type].pack(value)
    except (struct.error, OverflowError) as error:
        raise ValueError(f"expected a number that fits {type.name}, found {value!r}") from error


def _infer_scalar(value: object) -> ValueType:
    if isinstance(value, bool):
        return ValueType.BOOL
    if isinstance(value, str):
        return ValueType.STRING
    if isinstance(value, float):
        return ValueType.FLOAT32
    if isinstance(value, int):
        return _first_that_holds(value, value, (ValueType.UINT32, ValueType.INT32, ValueType.UINT64, ValueType.INT64))
    raise TypeError(f"expected a bool, int, float, str or a list of them, found {value.__class__.__name__}")


def _infer_list(items: list[Any]) -> ValueType:
    if not items:
        raise ValueError("give the element type of an empty list")
    kinds = {_infer_scalar(item) for item in items}
    if len(kinds) == 1 and kinds & {ValueType.BOOL, ValueType.STRING, ValueType.FLOAT32}:
        return kinds.pop()
    if kinds & {ValueType.BOOL, ValueType.STRING}:
        raise TypeError(f"expected elements of one type, found {', '.join(sorted(kind.name for kind in kinds))}")
    if ValueType.FLOAT32 in kinds:
        return ValueType.FLOAT32
    return _first_that_holds(
        min(items), max(items), (ValueType.INT32, ValueType.UINT32, ValueType.INT64, ValueType.UINT64)
    )


def _first_that_holds(low: int, high: int, types: tuple[ValueType, ...]) -> ValueType:
    for candidate in types:
        limits = np.iinfo(SCALAR_DTYPES[candidate].name)
        if limits.min <= low and high <= limits.max:
            return candidate
    raise ValueError(f"expected integers of at most 64 bits, found {low} to {high}")


def _type_of_dtype(dtype: np.dtype[Any]) -> ValueType:
    for value_type, known in SCALAR_DTYPES.items():
        if known == dtype.newbyteorder("<"):
            return ValueType(value_type)
    raise TypeError(f"expected numbers of a type that GGUF metadata has, found {dtype}")


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw
