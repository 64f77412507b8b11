"""The conversion of a checkpoint, planned and checked before a byte is written: every key and every tensor."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine.convert.checkpoint import Checkpoint
from engine.convert.general_keys import calibration_keys, general_keys
from engine.convert.mappings import TABLES
from engine.convert.mixture import Mixture, Model, mixed
from engine.convert.model_map import MetadataValue, ModelMap
from engine.convert.options import ConversionOptions
from engine.convert.quantised import check_method
from engine.convert.tensor_plan import TensorPlan
from engine.convert.vocabulary.convert import vocabulary_keys
from engine.errors import ModelFormatError, UnsupportedModelError
from engine.gguf.tensor_types import TensorType
from engine.gguf.value_types import ValueType

if TYPE_CHECKING:
    from engine.convert.calibrate.importance import ImportanceMatrix

_PLAIN_TYPES = {"F32": TensorType.F32, "F16": TensorType.F16, "BF16": TensorType.BF16}


@dataclass(frozen=True, slots=True)
class ConversionPlan:
    """`metadata` by GGUF's keys, `tensors` in the order in which they are to be written; `type` of the matrices.

    `identity` stands for the files that it was made from, as they were then. `quantised_source`: the types in which
    the source's matrices have lost something already, the most bytes first.
    """

    architecture: str
    type: TensorType
    metadata: Mapping[str, MetadataValue]
    tensors: tuple[TensorPlan, ...]
    mixture: Mixture | None = None
    identity: str = ""
    quantised_source: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of file: the mixture's name, else that of the type."""
        return self.type.name if self.mixture is None else self.mixture.name

    @property
    def n_bytes(self) -> int:
        """Bytes of all tensors."""
        return sum(tensor.n_bytes for tensor in self.tensors)


def plan_conversion(checkpoint: Checkpoint, options: ConversionOptions | None = None) -> ConversionPlan:
    """Map `checkpoint` to GGUF. Reads its tokenizer files and the scales of FP8 weights, but no weights.

    Raises UnsupportedModelError for an architecture or variant that is not known, ModelFormatError where config.json,
    tensors, tokenizer and options contradict each other.
    """
    options = options or ConversionOptions()
    config = checkpoint.configuration
    found = TABLES.get(config.architecture)
    if found is None:
        raise UnsupportedModelError(
            f"{config.path}: expected an architecture that can be converted, found {config.architecture[:80]!r}. "
            f"Known are {', '.join(sorted(TABLES))}."
        )
    architecture, describe = found
    type = most_common_type(checkpoint) if options.type is None else options.type  # F32 is 0
    if options.mixture is not None:
        type = options.mixture.type
    model = ModelMap(checkpoint, options, architecture, type)
    check_method(model)
    describe(model)
    model.finish()
    tensors = model.tensors
    if options.mixture is not None:
        described_model = described(model.keys, architecture, tensors, options)
        tensors = mixed(options.mixture, tensors, model.matrices, described_model)
        tensors = [weighted(tensor, options.importance) for tensor in tensors]
    metadata = general_keys(checkpoint.folder, architecture, options.name, type, tensors)
    if options.mixture is not None:
        metadata["general.file_type"] = MetadataValue(options.mixture.number, ValueType.UINT32)
    metadata |= calibration_keys(options.importance, tensors) | model.keys
    metadata |= vocabulary_keys(checkpoint.folder, architecture, int(model.n_vocabulary), config.values)
    return ConversionPlan(
        architecture,
        type,
        metadata,
        tuple(tensors),
        options.mixture,
        identity_of((stored.path for stored in checkpoint.tensors.values()), tensors),
    )


def described(
    keys: Mapping[str, MetadataValue], architecture: str, tensors: Sequence[TensorPlan], options: ConversionOptions
) -> Model:
    """What a mixture depends on, from the file's keys and the options."""

    def number(name: str) -> int:
        entry = keys.get(f"{architecture}.{name}")
        value = 0 if entry is None else entry.value
        return int(max(value) if isinstance(value, (list, tuple, np.ndarray)) else value)

    return Model(
        n_layers=number("block_count"),
        n_experts=number("expert_count"),
        heads_per_kv_head=number("attention.head_count") // max(1, number("attention.head_count_kv")),
        is_tied=all(tensor.name != "output.weight" for tensor in tensors),
        is_calibrated=options.importance is not None,
    )


def weighted(tensor: TensorPlan, importance: ImportanceMatrix | None) -> TensorPlan:
    """The same tensor, quantised by `importance` where it is quantised and something is known of it."""
    if importance is None or not tensor.type.is_quantised or tensor.packed is not None:
        return tensor
    found = importance.of(tensor.name, tensor.n_columns)
    if found is None:
        return tensor
    n_matrices = tensor.shape[0] if len(tensor.shape) > 2 else 1
    if len(found) not in (1, n_matrices):
        raise ModelFormatError(
            f"Expected the importance of {n_matrices} matrices for {tensor.name}, found that of {len(found)}. "
            "It was made for another model: calibrate with this one."
        )
    return tensor.with_importance(found)


def identity_of(paths: Iterable[Path], tensors: Iterable[TensorPlan] = ()) -> str:
    """What tells these files, as they are now, and the tensors' importance from others and from later versions."""
    digest = hashlib.sha256()
    for path in sorted(set(paths)):
        found = path.stat()
        digest.update(f"{path.absolute()}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
    for tensor in tensors:
        if tensor.importance is not None:
            digest.update(f"{tensor.name}\0".encode() + np.ascontiguousarray(tensor.importance).tobytes())
    return digest.hexdigest()


def most_common_type(checkpoint: Checkpoint) -> TensorType:
    """The type that most elements have, of F32, F16 and BF16; BF16 for a checkpoint that has none of them."""
    elements: Counter[str] = Counter()
    for tensor in checkpoint.tensors.values():
        if tensor.dtype in _PLAIN_TYPES:
            elements[tensor.dtype] += math.prod(tensor.shape)
    return _PLAIN_TYPES[elements.most_common(1)[0][0]] if elements else TensorType.BF16
