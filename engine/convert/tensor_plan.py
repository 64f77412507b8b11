"""One tensor of the file to be written: its name, shape and type, and its values some rows at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.convert.matrices import Matrix, Rows, Values
from engine.convert.stored import PackedRows
from engine.errors import ModelFormatError, UnsupportedModelError
from engine.gguf.encode import encode
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

    `sources`: the checkpoint's tensors that it is made of.
    """

    name: str
    shape: tuple[int, ...]
    type: TensorType
    matrix: Matrix
    sources: tuple[str, ...] = ()
    packed: PackedRows | None = None

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

    def rows(self, first: int, last: int) -> Values:
        """Rows `first` to `last` (not included) of all dimensions but the last: (last - first, n_columns) float32.

        Raises ModelFormatError for a value that is not finite.
        """
        values = self.matrix.read(self._matrix_rows(first, last)).reshape(last - first, self.n_columns)
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise ModelFormatError(
                f"Tensor {self.name} (from {', '.join(self.sources[:3])}): expected finite numbers, found "
                f"{values[row, column]} in row {first + row:,}, column {column:,}. The checkpoint is damaged or its "
                "training failed: download it again."
            )
        return values

    def chunks(self, max_bytes: int = CHUNK_BYTES) -> Iterator[npt.NDArray[np.uint8]]:
        """The tensor's bytes in order, whole rows, at most twice `max_bytes` of float32 at a time.

        Raises ModelFormatError for a value that is not finite, UnsupportedModelError for one that does not fit F16.
        """
        for first, last in self.row_ranges(max_bytes):
            if self.packed is not None:
                yield self.packed.read_packed(np.arange(first, last)).reshape(-1)
            else:
                stored = self._as_stored(first, last)
                yield self._encode(self.rows(first, last)) if stored is None else stored

    def row_ranges(self, max_bytes: int = CHUNK_BYTES) -> Iterator[tuple[int, int]]:
        """The rows of each chunk, (first, last): cut where one of the checkpoint's tensors ends, if that fits."""
        n_rows, block = self.n_rows, max(1, self.matrix.row_block * self.n_rows // self.matrix.n_rows)
        wanted = max(1, max_bytes // (4 * self.n_columns))
        step = wanted // block * block or (block if block <= 2 * wanted else wanted)
        yield from ((first, min(first + step, n_rows)) for first in range(0, n_rows, step))

    def read(self) -> npt.NDArray[np.generic]:
        """The whole tensor: float32, float16, uint16 (BF16) of `shape`; packed types as uint8 (..., row bytes)."""
        data = np.concatenate(list(self.chunks()))
        if self.packed is not None:
            return data.reshape(*self.shape[:-1], self.packed.row_bytes)
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

    def _encode(self, values: Values) -> npt.NDArray[np.uint8]:
        if self.type is TensorType.F16 and (largest := float(np.abs(values).max(initial=0))) > 65_519:
            raise UnsupportedModelError(
                f"Tensor {self.name}: expected values up to 65,504, which is what F16 holds, found {largest:,.0f}. "
                "Convert this model to BF16."
            )
        return encode(values, self.type)
