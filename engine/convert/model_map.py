"""What an architecture's table is written with: it takes the checkpoint's tensors and gives GGUF's keys and tensors."""

from __future__ import annotations

import fnmatch
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.convert.checkpoint import Checkpoint
from engine.convert.configuration import Configuration
from engine.convert.matrices import Constant, Mapped, Matrix, Picked, Rows, Stacked, Values
from engine.convert.options import ConversionOptions
from engine.convert.quantised import take_fp8
from engine.convert.roles import is_matrix, is_router
from engine.convert.safetensors import StoredTensor
from engine.convert.sizes import Size, describe_shape
from engine.convert.stored import FLOAT_TYPES, PackedRows, Stored
from engine.convert.tensor_plan import TensorPlan
from engine.errors import ContradictionError, ModelFormatError, UnsupportedModelError
from engine.gguf.tensor_types import TensorType
from engine.gguf.value_types import ValueType

Shape = tuple[int, ...]

# What no text model uses: towers for images and sound, and buffers that older programs saved.
_UNUSED = (
    "model.visual.*",
    "visual.*",
    "model.vision_tower.*",
    "vision_tower.*",
    "model.multi_modal_projector.*",
    "multi_modal_projector.*",
    "model.audio_tower.*",
    "audio_tower.*",
    "*.rotary_emb.inv_freq",
    "*.self_attn.k_scale",
    "*.self_attn.v_scale",
    "*.input_scale",
)
_LAYER = re.compile(r"^model\.layers\.(\d+)\.")
_N_NAMED = 5


@dataclass(frozen=True, slots=True)
class MetadataValue:
    """A key's value and its GGUF type, which is that of the elements for a list.

    `encoded`: type and value as another file has them; then these are written.
    """

    value: Any
    type: ValueType
    encoded: bytes | None = None


class ModelMap:
    """Collects `keys` and `tensors`. A table asks for what the configuration promises; what is not as promised raises
    ModelFormatError with both names, and `finish` does for tensors that no line of the table took.
    """

    def __init__(self, checkpoint: Checkpoint, options: ConversionOptions, architecture: str, type: TensorType) -> None:
        """architecture: GGUF's name of it. type: of the matrices."""
        self.checkpoint, self.options, self.architecture = checkpoint, options, architecture
        self.config: Configuration = checkpoint.configuration
        self.keys: dict[str, MetadataValue] = {}
        self.tensors: list[TensorPlan] = []
        self.matrices: set[str] = set()  # the tensors that have the type of the matrices
        self.n_layers = self.config.size("num_hidden_layers")
        self.hidden = self.config.size("hidden_size")
        self.n_vocabulary = self.config.size("vocab_size")
        self._type = type
        self._taken: set[str] = set()

    # Keys.

    def key(self, name: str, value: Any, type: ValueType = ValueType.UINT32) -> None:
        """The key `{architecture}.{name}`; ints and floats become plain ones."""
        plain = int(value) if isinstance(value, Size) else value
        self.keys[f"{self.architecture}.{name}"] = MetadataValue(plain, type)

    def number(self, name: str, value: float) -> None:
        """A float32 key."""
        self.key(name, float(value), ValueType.FLOAT32)

    # Tensors.

    def has(self, source: str) -> bool:
        """Whether the checkpoint has the tensor."""
        return source in self.checkpoint.tensors

    def find(self, source: str, shape: Shape) -> StoredTensor:
        """The checkpoint's tensor of that name, now taken; ModelFormatError if it is missing or of another shape."""
        tensor = self.checkpoint.tensors.get(source)
        if tensor is None:
            raise ContradictionError(
                f"{self.checkpoint.folder}: expected the tensor {source} of shape {describe_shape(shape)}, which "
                f"{self._because(source)}, found none of that name. The checkpoint is incomplete, or its config.json "
                "belongs to another model: download both again."
            )
        self._taken.add(source)
        if tensor.shape != tuple(shape):
            raise ContradictionError(
                f"{tensor.path}: expected the shape {describe_shape(shape)} for {source}, as config.json has it, found "
                f"{tensor.shape}. config.json and weights contradict each other: download both again."
            )
        return tensor

    def take(self, source: str, shape: Shape) -> Matrix:
        """The tensor as a matrix of numbers, scales applied if it is FP8; raises as `find` does."""
        tensor = self.find(source, shape)
        if tensor.dtype not in FLOAT_TYPES:
            raise UnsupportedModelError(
                f"{tensor.path}: expected numbers of {', '.join(FLOAT_TYPES)} in {source}, found {tensor.dtype}. "
                "This checkpoint is quantised in a way that is not known here: choose one in BF16."
            )
        scaled = take_fp8(self, tensor, source) if tensor.dtype.startswith("F8") else None
        return Stored(self.checkpoint, tensor) if scaled is None else scaled

    def mark_taken(self, source: str) -> None:
        """Say that a tensor has been used, or is known to be of no use."""
        self._taken.add(source)

    def add(
        self,
        target: str,
        shape: Shape,
        matrix: Matrix,
        sources: Sequence[str] = (),
        packed: PackedRows | None = None,
        type: TensorType | None = None,
    ) -> None:
        """A tensor to be written, of `type` or the one that its name and shape call for."""
        plain = tuple(int(dimension) for dimension in shape)
        if math.prod(plain) != matrix.n_rows * matrix.n_columns:
            raise ContradictionError(
                f"{self.checkpoint.folder}: expected {describe_shape(shape)} for {target}, found "
                f"{matrix.n_rows:,} rows of {matrix.n_columns:,}. config.json and weights contradict each other."
            )
        kind = self._type_of(target, plain) if type is None else type
        if packed is None and is_matrix(target, plain):
            self.matrices.add(target)
        self.tensors.append(TensorPlan(target, plain, kind, matrix, tuple(sources), packed))

    def tensor(
        self,
        target: str,
        source: str,
        shape: Shape,
        *,
        rows: Rows | None = None,
        change: Callable[[Values], Values] | None = None,
        as_shape: Shape | None = None,
    ) -> None:
        """Write `source` of `shape` as `target`: its rows in the order `rows`, then its values through `change`.

        as_shape: the shape in GGUF where dimensions of one are dropped.
        """
        matrix = self.take(source, shape)
        if as_shape is not None and len(shape) > len(as_shape):
            matrix = Reshaped(matrix, as_shape)
        if rows is not None:
            matrix = Picked(matrix, rows)
        if change is not None:
            matrix = Mapped(matrix, change)
        self.add(target, as_shape or shape, matrix, (source,))

    def constant(self, target: str, values: Sequence[float]) -> None:
        """A vector that the conversion computes."""
        self.add(target, (len(values),), Constant(np.asarray(values, np.float32)))

    def embeddings(self, *, norm_change: Callable[[Values], Values] | None = None, final_norm: bool = True) -> None:
        """The lines that every architecture has: token embedding, output, final norm."""
        table = (self.n_vocabulary, self.hidden)
        self.tensor("token_embd.weight", "model.embed_tokens.weight", table)
        # Where config.json leaves it out the class decides, and what is published tells which way.
        name = "tie_embedding" if self.config.get("tie_word_embeddings") is None else "tie_word_embeddings"
        if self.config.flag(name, not self.has("lm_head.weight")):
            self.mark_taken("lm_head.weight")  # some publish a copy
        else:
            self.tensor("output.weight", "lm_head.weight", table)
        if final_norm:
            self.tensor("output_norm.weight", "model.norm.weight", (self.hidden,), change=norm_change)

    def layers(self, n_layers: int | None = None) -> Iterator[Layer]:
        """Each layer, for its lines of the table."""
        for index in range(self.n_layers if n_layers is None else n_layers):
            yield Layer(self, index, f"model.layers.{index}.")

    def ignore(self, *patterns: str) -> None:
        """Tensors that the reference does not use, by patterns as of file names."""
        for source in self.checkpoint.tensors:
            if any(fnmatch.fnmatchcase(source, pattern) for pattern in patterns):
                self._taken.add(source)

    def finish(self) -> None:
        """Raise ModelFormatError if the checkpoint has tensors that nothing took."""
        self.ignore(*_UNUSED)
        left = [source for source in self.checkpoint.tensors if source not in self._taken]
        if not left:
            return
        named = ", ".join(left[:_N_NAMED]) + (f" and {len(left) - _N_NAMED} more" if len(left) > _N_NAMED else "")
        raise ModelFormatError(
            f"{self.checkpoint.folder}: expected only tensors that a {self.config.architecture} with the values in "
            f"config.json has ({self.n_layers.described}), found also: {named}. config.json belongs to another model, "
            "or this model is a variant that is not known here."
        )

    def _because(self, source: str) -> str:
        layer = _LAYER.match(source)
        return (
            f"layer {layer[1]} needs with {self.n_layers.described}" if layer else f"a {self.config.architecture} needs"
        )

    def _type_of(self, target: str, shape: Shape) -> TensorType:
        if is_router(target):
            return self.options.router_type
        return self._type if is_matrix(target, shape) else TensorType.F32


class Reshaped(Matrix):
    """A matrix of the same elements in rows of another length."""

    def __init__(self, inner: Matrix, shape: Shape) -> None:
        self._inner = inner
        self.n_columns = shape[-1] if len(shape) > 1 else 1
        self.n_rows = inner.n_rows * inner.n_columns // self.n_columns
        self._per_row = self.n_columns // inner.n_columns or 1
        self._whole = self.n_columns % inner.n_columns != 0

    def read(self, rows: Rows) -> Values:
        if self._whole:  # longer rows than wanted: only vectors and small tables come here
            return self._inner.read_all().reshape(self.n_rows, self.n_columns)[rows]
        inner_rows = (rows[:, np.newaxis] * self._per_row + np.arange(self._per_row)).reshape(-1)
        return self._inner.read(inner_rows).reshape(len(rows), self.n_columns)


class Layer:
    """One layer's lines: names within `model.layers.N.` on the one side, within `blk.N.` on the other."""

    def __init__(self, model: ModelMap, index: int, source: str) -> None:
        self.model, self.index = model, int(index)
        self.source, self.target = source, f"blk.{self.index}."

    def has(self, source: str) -> bool:
        return self.model.has(self.source + source)

    def tensor(
        self,
        target: str,
        source: str,
        shape: Shape,
        *,
        rows: Rows | None = None,
        change: Callable[[Values], Values] | None = None,
        as_shape: Shape | None = None,
    ) -> None:
        """As the model's, with the layer's prefixes."""
        self.model.tensor(
            self.target + target, self.source + source, shape, rows=rows, change=change, as_shape=as_shape
        )

    def table(self, *lines: tuple[str, str, Shape]) -> None:
        """Lines of (GGUF's name, the checkpoint's name, shape)."""
        for target, source, shape in lines:
            self.tensor(target, source, shape)

    def stacked(self, target: str, sources: Sequence[str], shape: Shape) -> None:
        """Matrices of `shape`, one for each expert, as one tensor (n_experts, *shape)."""
        names = [self.source + source for source in sources]
        parts = [self.model.take(name, shape) for name in names]
        whole = (Size(len(parts), "experts"), *shape)
        self.model.add(self.target + target, whole, Stacked(parts), names)
