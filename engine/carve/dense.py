"""The dense model that is carved: what is asked of it, and its feed-forward matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.carve.layout import LAYOUTS, REASONS, Layout
from engine.errors import UnsupportedModelError
from engine.gguf import GGUFReader, dequantise

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of a dense model."""

    n_layers: int
    n_embedding: int
    n_feed_forward: int


def check_dense(reader: GGUFReader) -> Sizes:
    """Raises UnsupportedModelError for a model that no layout with experts could hold."""
    path, metadata, layout = reader.paths[0], reader.metadata, layout_of(reader)
    for name in reader.tensors:
        if name.startswith("rope_") or (name.endswith(".bias") and not layout.has_biases):
            raise UnsupportedModelError(
                f"{path}: expected a dense model without factors for its rotary positions, and of the architecture "
                f"'llama' without biases, found the tensor {name}, which a model with experts of the layout "
                f"{layout.target!r} cannot hold. Choose another."
            )
    keys = ("block_count", "embedding_length", "feed_forward_length")
    return Sizes(*(_integer(metadata, f"{layout.source}.{key}", path) for key in keys))


def layout_of(reader: GGUFReader) -> Layout:
    """The layout that the model is carved into. Raises UnsupportedModelError."""
    architecture = str(reader.metadata.get("general.architecture"))
    layout = LAYOUTS.get(architecture)
    if layout is not None and not reader.metadata.get(f"{architecture}.expert_count"):
        return layout
    what = "one with experts already" if layout else f"one of the architecture {architecture!r:.80}"
    reason = f": {REASONS[architecture]}" if architecture in REASONS else ""
    raise UnsupportedModelError(
        f"{reader.paths[0]}: expected a dense model of the architecture {' or '.join(map(repr, LAYOUTS))} to carve "
        f"(Llama, SmolLM2, Mistral, TinyLlama, Qwen2.5, Qwen3 and others), found {what}{reason}."
    )


def _integer(metadata: Any, key: str, path: object) -> int:
    value = metadata.get(key)
    if not isinstance(value, int) or value < 1:
        raise UnsupportedModelError(f"{path}: expected one number from 1 on for {key}, found {value!r}.")
    return value


def values(reader: GGUFReader, name: str) -> Floats:
    """A tensor's values as float32."""
    tensor = reader.tensors[name]
    return dequantise(reader.data(name), tensor.type, tensor.shape)
