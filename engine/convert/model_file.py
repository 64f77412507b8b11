"""The tensors of a GGUF file as a conversion reads them: expanded some rows at a time, or copied as they are."""

from __future__ import annotations

import math

import numpy as np

from engine.convert.matrices import Bytes, Matrix, Rows, Values
from engine.gguf import GGUFReader, TensorInfo, dequantise
from engine.memory import give_back


class FileRows:
    """The rows of a tensor of a GGUF file, in the bytes that it has there; a vector is one row."""

    def __init__(self, reader: GGUFReader, tensor: TensorInfo) -> None:
        self._reader, self._tensor = reader, tensor
        self.n_columns = tensor.shape[-1]
        self.n_rows = math.prod(tensor.shape[:-1])
        self.row_bytes = tensor.type.n_bytes((self.n_columns,))

    def read_packed(self, rows: Rows) -> Bytes:
        """The bytes of `rows` (n,) int64: (n, row_bytes) uint8. The file's pages are not kept in memory."""
        first, last = int(rows.min()), int(rows.max()) + 1
        data = self._reader.data(self._tensor.name).reshape(self.n_rows, self.row_bytes)
        is_run = last - first == len(rows) and bool((rows[1:] > rows[:-1]).all())
        result = data[first:last].copy() if is_run else data[rows]
        give_back(self._reader.address(self._tensor.name) + first * self.row_bytes, (last - first) * self.row_bytes)
        return result


class Expanded(Matrix):
    """A tensor of a GGUF file as float32; its type must be one of `dequantise`'s."""

    def __init__(self, reader: GGUFReader, tensor: TensorInfo) -> None:
        self._packed, self._type = FileRows(reader, tensor), tensor.type
        is_vector = len(tensor.shape) < 2
        self.n_columns = 1 if is_vector else self._packed.n_columns
        self.n_rows = math.prod(tensor.shape) // self.n_columns
        self._is_vector = is_vector

    def read(self, rows: Rows) -> Values:
        n_columns = self._packed.n_columns
        if self._is_vector:
            data = self._packed.read_packed(np.zeros(1, np.int64))
            return dequantise(data.reshape(-1), self._type, (n_columns,))[rows, np.newaxis]
        return dequantise(self._packed.read_packed(rows).reshape(-1), self._type, (len(rows), n_columns))
