"""Tensors of a conversion as matrices that are computed some rows at a time, so that memory stays bounded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Values = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]


class Matrix(ABC):
    """Rows of float32; what a tensor has in more dimensions is flattened but for the last, vectors have rows of one.

    `row_block`: reading whole blocks of so many rows is faster, for a caller that can choose.
    """

    n_rows: int
    n_columns: int
    row_block: int = 1

    @abstractmethod
    def read(self, rows: Rows) -> Values:
        """The values of `rows` (n,) int64, in that order: (n, n_columns) float32."""

    def read_stored(self, rows: Rows, dtype: str) -> Bytes | None:
        """The bytes of `rows` as the checkpoint has them, (n, row bytes) uint8, if their elements are of `dtype`.

        None for another type, and for values that are not simply stored.
        """
        return None

    def read_all(self) -> Values:
        """Every row: (n_rows, n_columns) float32."""
        return self.read(np.arange(self.n_rows))


class Constant(Matrix):
    """Values that the conversion itself computes."""

    def __init__(self, values: npt.ArrayLike) -> None:
        """values: (n,) or (n_rows, n_columns)."""
        array = np.asarray(values, np.float32)
        self._values = array.reshape(len(array), -1)
        self.n_rows, self.n_columns = self._values.shape

    def read(self, rows: Rows) -> Values:
        return self._values[rows]


class Picked(Matrix):
    """Some rows of another matrix, in another order."""

    def __init__(self, inner: Matrix, rows: Rows, row_block: int = 1) -> None:
        self._inner, self._rows = inner, rows
        self.n_rows, self.n_columns, self.row_block = len(rows), inner.n_columns, row_block

    def read(self, rows: Rows) -> Values:
        return self._inner.read(self._rows[rows])

    def read_stored(self, rows: Rows, dtype: str) -> Bytes | None:
        return self._inner.read_stored(self._rows[rows], dtype)


class Stacked(Matrix):
    """Matrices of equal size one above the other: the experts of a layer."""

    def __init__(self, parts: Sequence[Matrix]) -> None:
        self._parts = parts
        self._part_rows = self.row_block = parts[0].n_rows
        self.n_rows, self.n_columns = len(parts) * self._part_rows, parts[0].n_columns

    def read(self, rows: Rows) -> Values:
        result = np.empty((len(rows), self.n_columns), np.float32)
        for part, mine in self._by_part(rows):
            result[mine] = self._parts[part].read(rows[mine] - part * self._part_rows)
        return result

    def read_stored(self, rows: Rows, dtype: str) -> Bytes | None:
        pieces = [
            (mine, self._parts[part].read_stored(rows[mine] - part * self._part_rows, dtype))
            for part, mine in self._by_part(rows)
        ]
        result: Bytes | None = None
        for mine, piece in pieces:
            if piece is None:
                return None
            if len(pieces) == 1:
                return piece
            result = np.empty((len(rows), piece.shape[1]), np.uint8) if result is None else result
            result[mine] = piece
        return result

    def _by_part(self, rows: Rows) -> Iterator[tuple[int, npt.NDArray[np.bool_]]]:
        index = rows // self._part_rows
        yield from ((int(part), index == part) for part in np.unique(index))


class Mapped(Matrix):
    """Another matrix with each row's values changed: scaled, shifted, or in another order."""

    def __init__(self, inner: Matrix, change: Callable[[Values], Values]) -> None:
        """change: (n, n_columns) float32 -> the same shape, each row by itself."""
        self._inner, self._change = inner, change
        self.n_rows, self.n_columns, self.row_block = inner.n_rows, inner.n_columns, inner.row_block

    def read(self, rows: Rows) -> Values:
        return self._change(self._inner.read(rows))


class Transposed(Matrix):
    """Each block of `block_rows` rows of another matrix, transposed."""

    def __init__(self, inner: Matrix, block_rows: int) -> None:
        self._inner, self._block_rows = inner, block_rows
        self.row_block = inner.n_columns
        self.n_rows, self.n_columns = inner.n_rows // block_rows * inner.n_columns, block_rows

    def read(self, rows: Rows) -> Values:
        result = np.empty((len(rows), self.n_columns), np.float32)
        index = rows // self.row_block
        for block in np.unique(index):
            mine = index == block
            values = self._inner.read(np.arange(block * self._block_rows, (block + 1) * self._block_rows))
            result[mine] = values.T[rows[mine] - block * self.row_block]
        return result
