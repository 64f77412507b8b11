"""The conversion of a checkpoint, planned and checked before a byte is written: every key and every tensor."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from engine.convert.checkpoint import Checkpoint
from engine.convert.general_keys import general_keys
from engine.convert.mappings import TABLES
from engine.convert.model_map import MetadataValue, ModelMap
from engine.convert.options import ConversionOptions
from engine.convert.quantised import check_method
from engine.convert.tensor_plan import TensorPlan
from engine.convert.vocabulary.convert import vocabulary_keys
from engine.errors import UnsupportedModelError
from engine.gguf.tensor_types import TensorType

_PLAIN_TYPES = {"F32": TensorType.F32, "F16": TensorType.F16, "BF16": TensorType.BF16}


@dataclass(frozen=True, slots=True)
class ConversionPlan:
    """`metadata` by GGUF's keys, `tensors` in the order in which they are to be written; `type` of the matrices."""

    architecture: str
    type: TensorType
    metadata: Mapping[str, MetadataValue]
    tensors: tuple[TensorPlan, ...]

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
    model = ModelMap(checkpoint, options, architecture, type)
    check_method(model)
    describe(model)
    model.finish()
    metadata = general_keys(checkpoint.folder, architecture, options.name, type, model.tensors)
    metadata |= model.keys
    metadata |= vocabulary_keys(checkpoint.folder, architecture, int(model.n_vocabulary), config.values)
    return ConversionPlan(architecture, type, metadata, tuple(model.tensors))


def most_common_type(checkpoint: Checkpoint) -> TensorType:
    """The type that most elements have, of F32, F16 and BF16; BF16 for a checkpoint that has none of them."""
    elements: Counter[str] = Counter()
    for tensor in checkpoint.tensors.values():
        if tensor.dtype in _PLAIN_TYPES:
            elements[tensor.dtype] += math.prod(tensor.shape)
    return _PLAIN_TYPES[elements.most_common(1)[0][0]] if elements else TensorType.BF16
