"""Importance matrices as files: GGUF, as they are published now, and the plain format of before, to be read.

GGUF     general.type = "imatrix"; imatrix.datasets, imatrix.chunk_count, imatrix.chunk_size; for each tensor NAME the
         tensors NAME.in_sum2 (n_matrices, n_inputs) and NAME.counts (n_matrices, 1), float32
before   int32 number of entries; each: int32 length and name, int32 number of calls, int32 number of values, float32
         values: the mean squares times the number of calls
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from engine.convert.calibrate.importance import Floats, ImportanceMatrix, TensorInputs
from engine.errors import ModelFormatError
from engine.gguf import GGUFReader, TensorType
from engine.gguf.header import MAGIC
from engine.gguf.strings import StringArray
from engine.gguf.value_types import ValueType
from engine.gguf.writer import GGUFWriter

_SUMS, _COUNTS = ".in_sum2", ".counts"
_MOST_ENTRIES, _MOST_NAME_BYTES = 262_144, 255
_MOST_PLAIN_BYTES = 1 << 30


def write_importance(importance: ImportanceMatrix, path: str | os.PathLike[str]) -> Path:
    """Write `importance` as a GGUF file that other programs read too; gives the path."""
    writer = GGUFWriter(path, alignment=32)
    writer.add("general.type", "imatrix")
    writer.add("imatrix.datasets", list(importance.datasets) or ["unknown"], ValueType.STRING)
    writer.add("imatrix.chunk_count", importance.n_chunks, ValueType.UINT32)
    writer.add("imatrix.chunk_size", importance.chunk_tokens, ValueType.UINT32)
    for name, inputs in importance.tensors.items():
        counts = inputs.counts.reshape(-1, 1).astype(np.float32)
        writer.add_tensor(name + _SUMS, TensorType.F32, inputs.sums.shape, inputs.sums.astype(np.float32))
        writer.add_tensor(name + _COUNTS, TensorType.F32, counts.shape, counts)
    return writer.write()


def read_importance(path: str | os.PathLike[str]) -> ImportanceMatrix:
    """Read an importance matrix in either format.

    Raises ModelFormatError for what is neither, or is damaged.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            is_gguf = file.read(4) == MAGIC
    except OSError as error:
        raise ModelFormatError(
            f"{path}: expected an importance matrix, but it cannot be read ({error.strerror}). Check the path."
        ) from None
    return _read_gguf(path) if is_gguf else _read_plain(path)


def _read_gguf(path: Path) -> ImportanceMatrix:
    with GGUFReader.open(path) as reader:
        if reader.metadata.get("general.type") != "imatrix":
            raise ModelFormatError(
                f"{path}: expected an importance matrix (general.type 'imatrix'), found "
                f"{str(reader.metadata.get('general.architecture', 'something else'))[:40]!r}. Choose the file that "
                "calibration wrote, not a model."
            )
        tensors = {}
        for name in reader.tensors:
            if name.endswith(_SUMS):
                stem = name.removesuffix(_SUMS)
                tensors[stem] = TensorInputs(
                    _floats(reader, name, path), _floats(reader, stem + _COUNTS, path).reshape(-1)
                )
                _check(path, stem, tensors[stem])
        datasets = reader.metadata.get("imatrix.datasets")
        return ImportanceMatrix(
            tensors,
            tuple(datasets) if isinstance(datasets, (list, StringArray)) else (),
            _count(reader, "imatrix.chunk_count"),
            _count(reader, "imatrix.chunk_size"),
        )


def _floats(reader: GGUFReader, name: str, path: Path) -> Floats:
    tensor = reader.tensors.get(name)
    if tensor is None or tensor.type is not TensorType.F32 or not 1 <= len(tensor.shape) <= 2:
        raise ModelFormatError(
            f"{path}: expected a table of float32 named {name}, found {tensor.type.name if tensor else 'none'}. "
            "The file is damaged: calibrate again."
        )
    return np.array(reader.data(name).view("<f4").reshape(-1, tensor.shape[-1]), np.float32)


def _count(reader: GGUFReader, key: str) -> int:
    value = reader.metadata.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _check(path: Path, name: str, inputs: TensorInputs) -> None:
    if len(inputs.counts) != len(inputs.sums):
        raise ModelFormatError(
            f"{path}: expected a count for each of the {len(inputs.sums)} matrices of {name}, found "
            f"{len(inputs.counts)}. The file is damaged: calibrate again."
        )
    if not np.isfinite(inputs.sums).all() or not np.isfinite(inputs.counts).all() or inputs.sums.min() < 0:
        raise ModelFormatError(
            f"{path}: expected sums of squares for {name}, found numbers that are none. Calibrate again."
        )


def _read_plain(path: Path) -> ImportanceMatrix:
    n_bytes = path.stat().st_size
    if n_bytes > _MOST_PLAIN_BYTES:
        raise _no_importance(path, f"a file of {n_bytes:,} bytes")
    raw = path.read_bytes()
    tensors = {}
    try:
        for name, n_calls, values in _plain_entries(raw):
            if n_calls < 1 or name in tensors:
                raise ValueError(f"{n_calls} calls for {name[:60]!r}")
            # what is stored is the mean times the number of calls, and the count of inputs is not known
            tensors[name] = TensorInputs(values.reshape(1, -1), np.array([n_calls], np.float32))
            _check(path, name, tensors[name])
    except (struct.error, ValueError) as error:
        raise _no_importance(path, f"something else ({error})") from None
    return ImportanceMatrix(tensors)


def _plain_entries(raw: bytes) -> Iterator[tuple[str, int, Floats]]:
    (n_entries,) = struct.unpack_from("<i", raw, 0)
    if not 0 < n_entries <= _MOST_ENTRIES:
        raise ValueError(f"{n_entries:,} entries")
    offset = 4
    for _ in range(n_entries):
        (n_name,) = struct.unpack_from("<i", raw, offset)
        if not 0 < n_name <= _MOST_NAME_BYTES:
            raise ValueError(f"a name of {n_name:,} bytes")
        name = raw[offset + 4 : offset + 4 + n_name].decode()
        offset += 4 + n_name
        n_calls, n_values = struct.unpack_from("<ii", raw, offset)
        offset += 8
        if n_values < 1 or offset + 4 * n_values > len(raw):
            raise ValueError(f"{n_values:,} values for {name[:60]!r}")
        yield name, n_calls, np.frombuffer(raw, "<f4", n_values, offset).astype(np.float32)
        offset += 4 * n_values


def _no_importance(path: Path, found: str) -> ModelFormatError:
    return ModelFormatError(
        f"{path}: expected an importance matrix, found {found}. Choose a .gguf or .dat file that calibration wrote."
    )
