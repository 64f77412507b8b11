"""The weights of a model being opened: shapes checked by name, matrices to be packed, experts left for later."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from engine.errors import InvalidRequestError, ModelFormatError, UnsupportedModelError
from engine.gguf import GGUFReader, TensorInfo, TensorType, dequantise
from engine.gguf.dequantise import require_expansion
from engine.gguf.encode import encode
from engine.kernels.layout import FLOAT_TYPES, GROUP, NARROW_ROWS, PACKED_BLOCKS, packed_group_bytes
from engine.memory import Buffer, Memory, view

_NAMES_SHOWN = 4
_OTHER_PURPOSES = ("rope_", "mtp.", "nextn.", "v.", "mm.")  # longer contexts, guessing further tokens, pictures
_OTHER_SPELLINGS = ("attn_kv_b.weight", "attn_rot_embd.weight")  # of what other tensors of a file hold too


@dataclass(frozen=True, slots=True)
class Matrix:
    """A weight matrix (n_rows, n_inputs), packed at `address` (experts: at an offset in the expert's slab)."""

    name: str
    type_name: str
    n_rows: int
    n_inputs: int
    address: int

    @property
    def n_groups(self) -> int:
        return -(-self.n_rows // GROUP)

    @property
    def group_bytes(self) -> int:
        return packed_group_bytes(self.type_name, self.n_inputs)

    @property
    def n_bytes(self) -> int:
        return self.n_groups * self.group_bytes

    @property
    def is_float(self) -> bool:
        return self.type_name in FLOAT_TYPES


def whole_registers(n: int) -> int:
    """`n` values, filled up to a multiple of 16."""
    return -(-n // GROUP) * GROUP


@dataclass(frozen=True, slots=True)
class Strips:
    """Some rows of a tensor that holds several matrices: `height` rows from `first` on in each of `count` equal parts.

    Each part begins a group of 16 rows; where its height is no multiple of that, rows of zeros fill the group.
    """

    n_rows: int  # of the whole tensor
    first: int
    height: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Packing:
    """One matrix to be repacked: file bytes at `source`, packed ones at `target`."""

    matrix: Matrix
    source: int
    source_bytes: int
    row_bytes: int
    target: int


@dataclass(frozen=True, slots=True)
class ExpertLayer:
    """The routed experts of a layer: three matrices at fixed offsets in an expert's slab, and where they are read."""

    gate: Matrix
    up: Matrix
    down: Matrix
    sources: tuple[tuple[int, int, int], ...]  # for each expert the file addresses of gate, up, down
    row_bytes: tuple[int, int, int]  # of gate, up, down in the file

    @property
    def slab_bytes(self) -> int:
        return self.gate.n_bytes + self.up.n_bytes + self.down.n_bytes

    @property
    def source_bytes(self) -> int:
        """Of one expert in the file."""
        return sum(self.matrix_bytes)

    @property
    def matrix_bytes(self) -> tuple[int, int, int]:
        """Of one expert's gate, up and down in the file."""
        gate, up, down = self.row_bytes
        return gate * self.gate.n_rows, up * self.up.n_rows, down * self.down.n_rows

    @property
    def matrices(self) -> tuple[Matrix, Matrix, Matrix]:
        return self.gate, self.up, self.down


@dataclass(slots=True)
class Weights:
    """Finds tensors by name and shape, and collects what must be packed before the first token."""

    reader: GGUFReader
    memory: Memory
    packings: list[Packing] = field(default_factory=list)
    tables: list[tuple[int, int]] = field(default_factory=list)  # address and bytes of what is read from the file
    _used: set[str] = field(default_factory=set)

    def has(self, name: str) -> bool:
        return name in self.reader.tensors

    def n_rows(self, name: str) -> int:
        return self._tensor(name).shape[0]

    def require(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise ModelFormatError unless the file has the tensor in that shape."""
        self._check_shape(self._tensor(name), shape)

    def vector(self, name: str, n: int) -> Buffer:
        """A norm weight or bias as float32, padded with zeros to a multiple of 16."""
        tensor = self._expandable(name)
        if math.prod(tensor.shape) != n or max(tensor.shape) != n:  # some files have (n, 1)
            self._check_shape(tensor, (n,))
        buffer = self.memory.allocate(name, 4 * whole_registers(n), "weights")
        self.memory.fill_later(partial(self._expand, tensor, buffer))
        return buffer

    def constant(self, value: float, n: int) -> Buffer:
        """A vector of `n` times the same value."""
        buffer = self.memory.allocate("constant", 4 * whole_registers(n), "weights")
        self.memory.fill_later(lambda: view(buffer, np.float32, (n,)).fill(value))
        return buffer

    def taps(self, name: str, n_channels: int, n_taps: int) -> Buffer:
        """The filters of a convolution, (n_taps, n_channels) float32; the file has them channel by channel."""
        tensor = self._expandable(name)
        self._check_shape(tensor, (n_channels, n_taps))
        if n_channels % GROUP:
            raise UnsupportedModelError(f"{name} has {n_channels} channels; a multiple of {GROUP} is needed.")
        buffer = self.memory.allocate(name, 4 * n_channels * n_taps, "weights")

        def fill() -> None:
            values = dequantise(self.reader.data(name), tensor.type, tensor.shape)
            view(buffer, np.float32, (n_taps, n_channels))[:] = values.T

        self.memory.fill_later(fill)
        return buffer

    def vectors(self, name: str, n_vectors: int, n: int) -> Buffer:
        """One vector of `n` values (a multiple of 16) for each expert, as float32."""
        tensor = self._expandable(name)
        self._check_shape(tensor, (n_vectors, n))
        if n % GROUP:
            raise UnsupportedModelError(f"The rows of {name} have {n} values; a multiple of {GROUP} is needed.")
        buffer = self.memory.allocate(name, 4 * n_vectors * n, "weights")
        self.memory.fill_later(partial(self._expand, tensor, buffer))
        return buffer

    def _expand(self, tensor: TensorInfo, buffer: Buffer) -> None:
        values = dequantise(self.reader.data(tensor.name), tensor.type, tensor.shape)
        view(buffer, np.float32, (values.size,))[:] = values.reshape(-1)

    def optional_vector(self, name: str, n: int) -> int:
        """The address of a vector that a file may leave out, else 0."""
        return self.vector(name, n).address if self.has(name) else 0

    def picked_vector(self, name: str, n: int, picked: npt.NDArray[np.int64], factor: float = 1.0) -> Buffer:
        """A vector made of some of the `n` values of another, times `factor`; where `picked` is -1 it has a zero."""
        tensor = self._expandable(name)
        self._check_shape(tensor, (n,))
        buffer = self.memory.allocate(f"{name}, picked", 4 * whole_registers(picked.size), "weights")

        def fill() -> None:
            values = np.append(
                dequantise(self.reader.data(name), tensor.type, (n,)) * np.float32(factor), np.float32(0)
            )
            view(buffer, np.float32, (picked.size,))[:] = values[picked]

        self.memory.fill_later(fill)
        return buffer

    def matrix(self, name: str, n_rows: int, n_inputs: int, *strips: Strips) -> Matrix:
        """A resident matrix, or `strips` of one, one after the other; it is packed when `packings` are carried out."""
        strips = strips or (Strips(n_rows, 0, n_rows),)
        tensor = self._tensor(name)
        if tensor.shape == (n_inputs,) and n_rows == 1:
            tensor = TensorInfo(name, tensor.type, (1, n_inputs), tensor.n_bytes, tensor.file_index, tensor.offset)
        self._check_shape(tensor, (strips[0].n_rows, n_inputs))
        type_name = self._type_name(tensor, n_inputs)
        if type_name == "F32" and n_rows <= NARROW_ROWS and n_inputs % 8 == 0:
            type_name = "F32x8"
        n_bytes = -(-n_rows // GROUP) * packed_group_bytes(type_name, n_inputs)
        target = self.memory.allocate(name, n_bytes, "weights").address
        matrix = Matrix(name, type_name, n_rows, n_inputs, target)
        row_bytes, source = tensor.type.n_bytes((n_inputs,)), self.reader.address(name)
        for strip in strips:
            part = Matrix(name, type_name, strip.height, n_inputs, target)
            for i in range(strip.count):
                first_row = i * (strip.n_rows // strip.count) + strip.first
                self.packings.append(packing(part, tensor.type, source + row_bytes * first_row, target))
                target += part.n_bytes
        return matrix

    def router(self, name: str, n_rows: int, n_inputs: int, tensor_type: TensorType | None) -> Matrix:
        """A resident matrix rounded to F32, F16 or BF16; None: it keeps the file's type.

        Raises InvalidRequestError where F16 cannot hold a value.
        """
        tensor = self._tensor(name)
        if tensor_type is None or tensor_type is tensor.type:
            return self.matrix(name, n_rows, n_inputs)
        self._check_shape(tensor, (n_rows, n_inputs))
        self._type_name(tensor, n_inputs)
        matrix = Matrix(name, tensor_type.name, n_rows, n_inputs, 0)
        buffer = self.memory.allocate(name, matrix.n_bytes, "weights")
        values = dequantise(self.reader.data(name), tensor.type, tensor.shape)
        if tensor_type is TensorType.F16 and np.abs(values).max() > np.finfo(np.float16).max:
            raise InvalidRequestError(f"{name} has values that fp16 cannot hold; choose bf16 or fp32 for the routers.")

        def fill() -> None:
            padded = np.zeros((matrix.n_groups * GROUP, n_inputs), np.float32)
            padded[:n_rows] = values
            grouped = padded.reshape(matrix.n_groups, GROUP, n_inputs).transpose(0, 2, 1)
            view(buffer, np.uint8, (matrix.n_bytes,))[:] = encode(np.ascontiguousarray(grouped), tensor_type)

        self.memory.fill_later(fill)
        return replace(matrix, address=buffer.address)

    def slice_of(self, name: str, shape: tuple[int, int, int], index: int) -> Matrix:
        """Matrix `index` of a tensor that holds shape[0] of them, resident."""
        tensor = self._tensor(name)
        self._check_shape(tensor, shape)
        _, n_rows, n_inputs = shape
        matrix = Matrix(name, self._type_name(tensor, n_inputs), n_rows, n_inputs, 0)
        matrix = replace(matrix, address=self.memory.allocate(name, matrix.n_bytes, "weights").address)
        source = self.reader.address(name) + tensor.n_bytes // shape[0] * index
        self.packings.append(packing(matrix, tensor.type, source, matrix.address))
        return matrix

    def transposed(self, name: str, strips: Strips, n_inputs: int) -> Matrix:
        """The transpose of one strip of a matrix, (n_inputs, strip), resident as float32: types have rows only."""
        tensor, height = self._expandable(name), strips.height
        self._check_shape(tensor, (strips.n_rows, n_inputs))
        self._type_name(tensor, n_inputs)
        if height % 4 or n_inputs % GROUP:
            raise UnsupportedModelError(f"{name} cannot be turned: {height} rows of {n_inputs} values.")
        matrix = Matrix(name, "F32", n_inputs, height, 0)
        buffer = self.memory.allocate(f"{name}, turned", matrix.n_bytes, "weights")

        def fill() -> None:
            row_bytes = tensor.type.n_bytes((n_inputs,))
            part = self.reader.data(name)[row_bytes * strips.first : row_bytes * (strips.first + height)]
            values = dequantise(part, tensor.type, (height, n_inputs)).reshape(height, -1, GROUP)
            view(buffer, np.float32, (n_inputs // GROUP, height, GROUP))[:] = values.transpose(1, 0, 2)

        self.memory.fill_later(fill)
        return replace(matrix, address=buffer.address)

    def table(self, name: str, n_rows: int, n_inputs: int) -> tuple[str, int, int]:
        """A matrix that is read row by row from the mapped file: its type, address and bytes of a row."""
        tensor = self._tensor(name)
        self._check_shape(tensor, (n_rows, n_inputs))
        address = self.reader.address(name)
        self.memory.know(address, tensor.n_bytes)
        self.tables.append((address, tensor.n_bytes))
        return self._type_name(tensor, n_inputs), address, tensor.type.n_bytes((n_inputs,))

    def experts(self, prefix: str, n_experts: int, n_embedding: int, n_feed_forward: int) -> ExpertLayer:
        """The routed experts of the layer `prefix`, stacked in one tensor a matrix or one tensor an expert."""
        offset = 0
        matrices, sources, row_bytes = [], [], []
        for part, n_rows, n_inputs in (
            ("gate", n_feed_forward, n_embedding),
            ("up", n_feed_forward, n_embedding),
            ("down", n_embedding, n_feed_forward),
        ):
            tensor, addresses = self._expert_tensor(f"{prefix}ffn_{part}", n_experts, n_rows, n_inputs)
            matrix = Matrix(tensor.name, self._type_name(tensor, n_inputs), n_rows, n_inputs, offset)
            offset += matrix.n_bytes
            matrices.append(matrix)
            sources.append(addresses)
            row_bytes.append(tensor.type.n_bytes((n_inputs,)))
        gate, up, down = matrices
        a, b, c = row_bytes
        return ExpertLayer(gate, up, down, tuple(zip(*sources, strict=True)), (a, b, c))

    def refuse_unused(self, n_layers: int) -> None:
        """Raises UnsupportedModelError if the file has tensors of the first `n_layers` layers that nothing asked for.

        Such a file means something else than this program would compute.
        """
        unused = sorted(name for name in self.reader.tensors.keys() - self._used if _matters(name, n_layers))
        if unused:
            some = ", ".join(unused[:_NAMES_SHOWN]) + (" ..." if len(unused) > _NAMES_SHOWN else "")
            raise UnsupportedModelError(
                f"The file has {len(unused)} tensors that this version knows no use for in a model of its "
                f"architecture ({some}); without them it would not compute what the file means."
            )

    def _expert_tensor(self, stem: str, n_experts: int, n_rows: int, n_inputs: int) -> tuple[TensorInfo, list[int]]:
        if self.has(f"{stem}_exps.weight"):
            tensor = self._tensor(f"{stem}_exps.weight")
            self._check_shape(tensor, (n_experts, n_rows, n_inputs))
            start, step = self.reader.address(tensor.name), tensor.n_bytes // n_experts
            return tensor, [start + step * expert for expert in range(n_experts)]
        tensors = [self._tensor(f"{stem}.{expert}.weight") for expert in range(n_experts)]
        for tensor in tensors:
            self._check_shape(tensor, (n_rows, n_inputs))
            if tensor.type != tensors[0].type:
                raise UnsupportedModelError(
                    f"{tensor.name} is {tensor.type.name}, but {tensors[0].name} is {tensors[0].type.name}; "
                    "the experts of a layer must have one type."
                )
        return tensors[0], [self.reader.address(tensor.name) for tensor in tensors]

    def _tensor(self, name: str) -> TensorInfo:
        self._used.add(name)
        try:
            return self.reader.tensors[name]
        except KeyError:
            raise ModelFormatError(
                f"The tensor {name} is missing; this architecture needs it. The file may be incomplete."
            ) from None

    def _expandable(self, name: str) -> TensorInfo:
        """A tensor that is to be expanded later, but refused now where it cannot be."""
        tensor = self._tensor(name)
        require_expansion(tensor.type)
        return tensor

    @staticmethod
    def _check_shape(tensor: TensorInfo, expected: tuple[int, ...]) -> None:
        if tensor.shape != expected:
            raise ModelFormatError(
                f"The tensor {tensor.name} has the shape {tensor.shape}; its hyper-parameters ask for {expected}."
            )

    @staticmethod
    def _type_name(tensor: TensorInfo, n_inputs: int) -> str:
        name = tensor.type.name
        if name not in PACKED_BLOCKS:
            known = [known for known in PACKED_BLOCKS if known in TensorType.__members__]
            raise UnsupportedModelError(
                f"The tensor {tensor.name} has the type {name}; this version runs {', '.join(known)}."
            )
        if n_inputs % max(4, PACKED_BLOCKS[name][0]):
            raise UnsupportedModelError(f"The rows of {tensor.name} ({n_inputs} values) are no whole {name} blocks.")
        return name


def _matters(name: str, n_layers: int) -> bool:
    """Whether a tensor takes part in computing the next token."""
    if name.startswith("blk."):
        layer = name.split(".")[1]
        return not layer.isdecimal() or (int(layer) < n_layers and not name.endswith(_OTHER_SPELLINGS))
    return not name.startswith(_OTHER_PURPOSES)


def packing(matrix: Matrix, tensor_type: TensorType, source: int, target: int) -> Packing:
    row_bytes = tensor_type.n_bytes((matrix.n_inputs,))
    return Packing(matrix, source, row_bytes * matrix.n_rows, row_bytes, target)
