"""The dense model that is carved: what is asked of it, and its feed-forward matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import UnsupportedModelError
from engine.gguf import GGUFReader, dequantise

Floats = npt.NDArray[np.float32]
SOURCE = "llama"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a dense model."""

    n_layers: int
    n_embedding: int
    n_feed_forward: int


def check_dense(reader: GGUFReader) -> Sizes:
    """Raises UnsupportedModelError for a model that the layout of DeepSeek-MoE could not hold."""
    path, metadata = reader.paths[0], reader.metadata
    architecture = metadata.get("general.architecture")
    if architecture != SOURCE or metadata.get(f"{SOURCE}.expert_count"):
        what = "one with experts already" if architecture == SOURCE else f"one of the architecture {architecture!r}"
        raise UnsupportedModelError(
            f"{path}: expected a dense model of the architecture 'llama' to carve (Llama, SmolLM2, Mistral, TinyLlama "
            f"and others), found {what}."
        )
    for name in reader.tensors:
        if name.endswith(".bias") or name.startswith("rope_"):
            raise UnsupportedModelError(
                f"{path}: expected a dense model without biases and without factors for its rotary positions, found "
                f"the tensor {name}, which a model with experts of the 'deepseek' layout cannot hold. Choose another."
            )
    sizes = [_integer(metadata, key, path) for key in ("block_count", "embedding_length", "feed_forward_length")]
    return Sizes(*sizes)


def _integer(metadata: Any, key: str, path: object) -> int:
    value = metadata.get(f"{SOURCE}.{key}")
    if not isinstance(value, int) or value < 1:
        raise UnsupportedModelError(f"{path}: expected one number from 1 on for {SOURCE}.{key}, found {value!r}.")
    return value


def values(reader: GGUFReader, name: str) -> Floats:
    """A tensor's values as float32."""
    tensor = reader.tensors[name]
    return dequantise(reader.data(name), tensor.type, tensor.shape)
