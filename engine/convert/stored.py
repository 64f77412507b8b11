"""Matrices that are read from a checkpoint's files: plain numbers, FP8 with scales, and MXFP4."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt

from engine.convert.checkpoint import Checkpoint
from engine.convert.matrices import Bytes, Matrix, Rows, Values
from engine.convert.safetensors import ITEM_BYTES, StoredTensor

_GAP_ROWS = 8  # rows that are read along, because one longer read is faster than two
_MXFP4_BLOCK = 32
_MXFP4_LEVELS = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


class PackedRows(Protocol):
    """Rows that already are in the layout of a GGUF tensor type, and are copied as they are."""

    n_rows: int
    row_bytes: int

    def read_packed(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """The bytes of `rows`: (n, row_bytes) uint8."""


class StoredRows:
    """The rows of a stored tensor as bytes; `n_columns` elements of a row lie together in the file."""

    def __init__(self, checkpoint: Checkpoint, tensor: StoredTensor, n_columns: int) -> None:
        self._checkpoint, self._tensor = checkpoint, tensor
        self.n_rows = math.prod(tensor.shape) // n_columns
        self.row_bytes = n_columns * ITEM_BYTES[tensor.dtype]

    def read(self, rows: Rows) -> npt.NDArray[np.uint8]:
        """The bytes of `rows`: (n, row_bytes) uint8. Rows that lie together are read together."""
        ordered = np.unique(rows)
        result = np.empty((len(rows), self.row_bytes), np.uint8)
        for run in np.split(ordered, np.flatnonzero(np.diff(ordered) > _GAP_ROWS) + 1):
            if not len(run):
                continue
            first, last = int(run[0]), int(run[-1])
            n_bytes = (last + 1 - first) * self.row_bytes
            data = self._checkpoint.read(self._tensor, first * self.row_bytes, n_bytes).reshape(-1, self.row_bytes)
            if len(run) == len(rows) and np.array_equal(rows, run) and last + 1 - first == len(run):
                return data
            mine = (rows >= first) & (rows <= last)
            result[mine] = data[rows[mine] - first]
        return result


class Stored(Matrix):
    """A tensor of F64, F32, F16, BF16 or FP8 without scales."""

    def __init__(self, checkpoint: Checkpoint, tensor: StoredTensor) -> None:
        self.n_columns = tensor.shape[-1] if len(tensor.shape) > 1 else 1
        self._dtype = tensor.dtype
        self._rows = StoredRows(checkpoint, tensor, self.n_columns)
        self.n_rows = self._rows.n_rows

    def read(self, rows: Rows) -> Values:
        return expand(self._rows.read(rows), self._dtype)

    def read_stored(self, rows: Rows, dtype: str) -> Bytes | None:
        return self._rows.read(rows) if dtype == self._dtype else None


class BlockScaled(Matrix):
    """An FP8 tensor whose blocks of `block` (rows, columns) share a factor, as DeepSeek publishes them."""

    def __init__(self, values: Matrix, scales: Values, matrix_rows: int, block: tuple[int, int]) -> None:
        """scales: (n_matrices, ceil(matrix_rows / block rows), ceil(n_columns / block columns)) float32."""
        self._values, self._scales, self._matrix_rows, self._block = values, scales, matrix_rows, block
        self.n_rows, self.n_columns = values.n_rows, values.n_columns
        self._column_block = np.arange(self.n_columns) // block[1]

    def read(self, rows: Rows) -> Values:
        block_rows = rows % self._matrix_rows // self._block[0]
        factors = self._scales[rows // self._matrix_rows, block_rows]
        return self._values.read(rows) * factors[:, self._column_block]


class Mxfp4(Matrix):
    """gpt-oss's experts: 32 values share a power of two; blocks (..., n_blocks, 16), scales (..., n_blocks), uint8.

    Byte i of a stored block has value 2i in its low nibble and value 2i + 1 in its high one. GGUF's MXFP4 has the
    scale first, then bytes with values i and i + 16. The scale means 2^(scale - 127) in both.
    """

    def __init__(self, checkpoint: Checkpoint, blocks: StoredTensor, scales: StoredTensor) -> None:
        n_blocks = scales.shape[-1]
        self._blocks = StoredRows(checkpoint, blocks, n_blocks * 16)
        self._scales = StoredRows(checkpoint, scales, n_blocks)
        self._n_blocks = n_blocks
        self.n_rows, self.n_columns = self._scales.n_rows, n_blocks * _MXFP4_BLOCK
        self.row_bytes = n_blocks * 17

    def read(self, rows: Rows) -> Values:
        values = _MXFP4_LEVELS[self._codes(rows)]  # (n, n_blocks, 32)
        exponents = self._scales.read(rows).astype(np.int32) - 127
        return np.ldexp(values, exponents[:, :, np.newaxis]).reshape(len(rows), self.n_columns)

    def read_packed(self, rows: Rows) -> npt.NDArray[np.uint8]:
        codes = self._codes(rows)
        result = np.empty((len(rows), self._n_blocks, 17), np.uint8)
        result[:, :, 0] = self._scales.read(rows)
        result[:, :, 1:] = codes[:, :, :16] | codes[:, :, 16:] << 4
        return result.reshape(len(rows), self.row_bytes)

    def _codes(self, rows: Rows) -> npt.NDArray[np.uint8]:
        packed = self._blocks.read(rows).reshape(len(rows), self._n_blocks, 16)
        return np.stack((packed & 15, packed >> 4), axis=-1).reshape(len(rows), self._n_blocks, _MXFP4_BLOCK)


class PickedPacked:
    """Some rows of packed ones, in another order."""

    def __init__(self, inner: PackedRows, rows: Rows) -> None:
        self._inner, self._rows = inner, rows
        self.n_rows, self.row_bytes = len(rows), inner.row_bytes

    def read_packed(self, rows: Rows) -> npt.NDArray[np.uint8]:
        return self._inner.read_packed(self._rows[rows])


def expand(data: npt.NDArray[np.uint8], dtype: str) -> Values:
    """Bytes (n, row_bytes) of elements of `dtype` as float32 (n, n_columns)."""
    if dtype == "BF16":
        return (data.view("<u2").astype(np.uint32) << 16).view(np.float32)
    if dtype in _FP8_VALUES:
        return _FP8_VALUES[dtype][data]
    return data.view(_PLAIN[dtype]).astype(np.float32)


def _fp8_values(exponent_bits: int, mantissa_bits: int, has_infinity: bool) -> Values:
    """What each of the 256 codes of an 8-bit float means (Micikevicius et al. 2022)."""
    codes = np.arange(256)
    exponent = codes >> mantissa_bits & (1 << exponent_bits) - 1
    mantissa = codes & (1 << mantissa_bits) - 1
    bias = (1 << exponent_bits - 1) - 1
    fraction = mantissa / (1 << mantissa_bits)
    values = np.where(exponent == 0, np.ldexp(fraction, 1 - bias), np.ldexp(1 + fraction, exponent - bias))
    highest = (1 << exponent_bits) - 1
    if has_infinity:
        values[exponent == highest] = np.where(mantissa[exponent == highest] == 0, np.inf, np.nan)
    else:  # only the code with all bits set is no number
        values[(exponent == highest) & (mantissa == (1 << mantissa_bits) - 1)] = np.nan
    return np.where(codes >= 128, -values, values).astype(np.float32)


_FP8_VALUES = {"F8_E4M3": _fp8_values(4, 3, has_infinity=False), "F8_E5M2": _fp8_values(5, 2, has_infinity=True)}
_PLAIN = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
FLOAT_TYPES = (*_PLAIN, "BF16", *_FP8_VALUES)
