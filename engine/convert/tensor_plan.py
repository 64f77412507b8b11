"""One tensor of the file to be written: its name, shape and type, and its values some rows at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from engine.convert.matrices import Matrix, Rows, Values
from engine.convert.quantise import largest_value, quantise
from engine.convert.stored import PackedRows
from engine.errors import ModelFormatError, UnsupportedModelError
from engine.gguf.tensor_types import TensorType

CHUNK_BYTES = 4 * 1024 * 1024  # larger ones leave the cores' caches, and cost page faults
# The bits of the exponent; all of them are set in what is not finite.
_EXPONENTS = {
    TensorType.F32: ("<u4", np.uint32(0x7F800000)),
    TensorType.F16: ("<u2", np.uint16(0x7C00)),
    TensorType.BF16: ("<u2", np.uint16(0x7F80)),
}
_READ_DTYPES = {TensorType.F32: "<f4", TensorType.F16: "<f2", TensorType.BF16: "<u2"}


@dataclass(frozen=True, slots=True)
class TensorPlan:
    """`shape` is slowest first. `matrix` gives float32 rows; `packed` has them in the layout of `type`, if it is set.

    `sources`: the checkpoint's tensors that it is made of. `importance` (n_parts, n_columns) float32: how much errors
    in each column matter, for each of n_parts equal parts of the rows (the experts), where the type is quantised.
    """

    name: str
    shape: tuple[int, ...]
    type: TensorType
    matrix: Matrix
    sources: tuple[str, ...] = ()
    packed: PackedRows | None = None
    importance: Values | None = None

    @property
    def n_bytes(self) -> int:
        return self.type.n_bytes(self.shape)

    @property
    def n_columns(self) -> int:
        """Elements of a row, the last dimension."""
        return self.shape[-1]

    @property
    def n_rows(self) -> int:
        return math.prod(self.shape[:-1])

    def with_importance(self, importance: Values) -> TensorPlan:
        """The same tensor, quantised by `importance` (n_parts, n_columns) float32.

        Raises ValueError if its parts do not divide the rows, or its columns are not the tensor's.
        """
        if importance.ndim != 2 or importance.shape[1] != self.n_columns or self.n_rows % len(importance):
            raise ValueError(
                f"tensor {self.name}: expected the importance of {self.n_columns:,} columns for parts of "
                f"{self.n_rows:,} rows, found {importance.shape}"
            )
        return replace(self, importance=importance)

    def rows(self, first: int, last: int) -> Values:
        """Rows `first` to `last` (not included) of all dimensions but the last: (last - first, n_columns) float32.

        Raises ModelFormatError for a value that is not finite.
        """
        values = self.matrix.read(self._matrix_rows(first, last)).reshape(last - first, self.n_columns)
        if values.size and not max(float(values.max()), -float(values.min())) < np.inf:
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise ModelFormatError(
                f"Tensor {self.name} (from {', '.join(self.sources[:3])}): expected finite numbers, found "
                f"{values[row, column]} in row {first + row:,}, column {column:,}. The checkpoint is damaged or its "
                "training failed: download it again."
            )
        return values

    def chunks(self, max_bytes: int = CHUNK_BYTES) -> Iterator[npt.NDArray[np.uint8]]:
        """The tensor's bytes in order, whole rows, at most twice `max_bytes` of float32 at a time.

        Raises ModelFormatError for a value that is not finite, UnsupportedModelError for one that is too large.
        """
        for first, last in self.row_ranges(max_bytes):
            yield self.chunk(first, last)

    def chunk(self, first: int, last: int) -> npt.NDArray[np.uint8]:
        """The bytes of rows `first` to `last` (not included); may be called in several threads. Raises as `chunks`."""
        if self.packed is not None:
            return self.packed.read_packed(np.arange(first, last)).reshape(-1)
        stored = self._as_stored(first, last)
        return self._encode(self.rows(first, last), first) if stored is None else stored

    def row_ranges(self, max_bytes: int = CHUNK_BYTES) -> Iterator[tuple[int, int]]:
        """The rows of each chunk, (first, last): cut where one of the checkpoint's tensors ends, if that fits."""
        n_rows, block = self.n_rows, max(1, self.matrix.row_block * self.n_rows // self.matrix.n_rows)
        wanted = max(1, max_bytes // (4 * self.n_columns))
        step = wanted // block * block or (block if block <= 2 * wanted else wanted)
        yield from ((first, min(first + step, n_rows)) for first in range(0, n_rows, step))

    def read(self) -> npt.NDArray[np.generic]:
        """The whole tensor: float32, float16, uint16 (BF16) of `shape`; packed types as uint8 (..., row bytes)."""
        data = np.concatenate(list(self.chunks()))
        if self.type not in _READ_DTYPES:
            return data.reshape(*self.shape[:-1], -1)
        return data.view(_READ_DTYPES[self.type]).reshape(self.shape)

    def _matrix_rows(self, first: int, last: int) -> Rows:
        per_row = self.matrix.n_rows // self.n_rows  # vectors are matrices of one column
        return np.arange(first * per_row, last * per_row)

    def _as_stored(self, first: int, last: int) -> npt.NDArray[np.uint8] | None:
        """The checkpoint's own bytes, where they are of `type` and finite; None where there is something to compute."""
        if self.type not in _EXPONENTS:
            return None
        dtype, exponent = _EXPONENTS[self.type]
        data = self.matrix.read_stored(self._matrix_rows(first, last), self.type.name)
        if data is None or ((data.view(dtype) & exponent) == exponent).any():
            return None  # `rows` names what is not finite
        return data.reshape(-1)

    def _encode(self, values: Values, first: int) -> npt.NDArray[np.uint8]:
        """Rows from `first` on in the layout of the type."""
        try:
            if self.importance is None:
                return quantise(values, self.type)
            part_rows = self.n_rows // len(self.importance)
            pieces, last = [], first + len(values)
            for part in range(first // part_rows, -(-last // part_rows)):
                begin, end = max(first, part * part_rows), min(last, (part + 1) * part_rows)
                pieces.append(quantise(values[begin - first : end - first], self.type, self.importance[part]))
            return np.concatenate(pieces)
        except ValueError as error:
            largest = float(np.abs(values).max(initial=0))
            if largest <= largest_value(self.type):
                raise
            other = "F32" if self.type is TensorType.BF16 else "BF16"
            raise UnsupportedModelError(
                f"Tensor {self.name}: expected values up to {largest_value(self.type):,.8g}, which is what "
                f"{self.type.name} holds, found {largest:,.8g}. Convert this model to {other}."
            ) from error
