"""Checkpoints whose configuration says what few published ones do, made from the recorded cases by changing them.

    for variant in VARIANTS: folder = variant.write(tmp_path)

tests/data/variants.npz holds what transformers computes for each; `tests/reference/make_variants.py` made it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.checkpoints import TensorSpec, checkpoint_case, write_files, write_weights

DATA = Path(__file__).parents[1] / "data" / "variants.npz"
N_TOKENS, N_POSITIONS = 72, 4  # of the text, and of its end the positions whose logits are kept
WINDOW = 24
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}

Change = Callable[[TensorSpec], list[TensorSpec]]


@dataclass(frozen=True, slots=True)
class Variant:
    """The recorded case `base` with values of its configuration replaced, and its tensors through `change`."""

    name: str
    base: str
    config: dict[str, Any]
    change: Change = lambda tensor: [tensor]

    def write(self, parent: Path) -> Path:
        case, folder = checkpoint_case(self.base), parent / self.name
        folder.mkdir(parents=True)
        config = {**case.config, **self.config}
        write_files(folder, {**case.files, "config.json": json.dumps(config)})
        tensors = tuple(new for old in case.tensors for new in self.change(old))
        write_weights(folder / "model.safetensors", tensors)
        return folder

    @property
    def ids(self) -> list[int]:
        """Tokens of no meaning."""
        return np.random.Generator(np.random.PCG64(1)).integers(0, 590, N_TOKENS).tolist()


def dense_layer(layer: int, hidden: int, n: int) -> Change:
    """A layer's experts give way to a network of `n` columns."""

    def change(tensor: TensorSpec) -> list[TensorSpec]:
        name, dtype, _ = tensor
        prefix = f"model.layers.{layer}.mlp."
        if name == f"{prefix}gate.weight":
            shapes = {"gate": [n, hidden], "up": [n, hidden], "down": [hidden, n]}
            return [(f"{prefix}{part}_proj.weight", dtype, shape) for part, shape in shapes.items()]
        return [] if name.startswith(prefix) else [tensor]

    return change


def attention_biases(tensor: TensorSpec) -> list[TensorSpec]:
    name, dtype, shape = tensor
    is_projection = re.search(r"self_attn\.[qkvo]_proj\.weight$", name)
    return [tensor, *([(name.replace(".weight", ".bias"), dtype, shape[:1])] if is_projection else [])]


def resized(sizes: dict[int, int]) -> Change:
    """Every dimension that is a key of `sizes` becomes its value."""
    return lambda tensor: [(tensor[0], tensor[1], [sizes.get(n, n) for n in tensor[2]])]


def in_turn(*changes: Change) -> Change:
    def change(tensor: TensorSpec) -> list[TensorSpec]:
        tensors = [tensor]
        for each in changes:
            tensors = [new for old in tensors for new in each(old)]
        return tensors

    return change


VARIANTS = (
    Variant(
        "mistral_window",
        "llama",
        {"architectures": ["MistralForCausalLM"], "model_type": "mistral", "sliding_window": WINDOW},
    ),
    Variant("mixtral_window", "mixtral", {"sliding_window": WINDOW}),
    Variant("mixtral_llama3", "mixtral", {"rope_scaling": LLAMA3}),
    Variant(
        "qwen2_window",
        "qwen2",
        {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 1},
    ),
    Variant("qwen3_window", "qwen3", {"use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 0}),
    Variant(
        "qwen2_moe_mixed",
        "qwen2_moe",
        {"decoder_sparse_step": 2, "use_sliding_window": True, "sliding_window": WINDOW, "max_window_layers": 2},
        dense_layer(0, 256, 512),
    ),
    Variant(
        "qwen3_moe_mixed",
        "qwen3_moe",
        {"mlp_only_layers": [1], "use_sliding_window": True, "sliding_window": WINDOW},
        dense_layer(1, 256, 512),
    ),
    Variant("qwen3_moe_llama3", "qwen3_moe", {"rope_scaling": LLAMA3}),
    Variant(
        "qwen3_next_mixed",
        "qwen3_next",
        {"mlp_only_layers": [0], "attention_bias": True},
        in_turn(dense_layer(0, 256, 256), attention_biases),
    ),
    Variant("glm4_moe_llama3", "glm4_moe_norms", {"rope_scaling": LLAMA3}),
    Variant("smollm3_window", "smollm3", {"use_sliding_window": True, "sliding_window": WINDOW, "layer_types": None}),
    # heads of 20 values, a network of 172 columns
    Variant(
        "llama_odd",
        "llama",
        {"hidden_size": 80, "head_dim": 20, "intermediate_size": 172},
        resized({256: 80, 128: 40, 512: 172}),
    ),
    # heads of 24 values with norms; experts of 36 columns
    Variant(
        "qwen3_moe_odd",
        "qwen3_moe",
        {"head_dim": 24, "moe_intermediate_size": 36, "hidden_size": 100},
        lambda tensor: [(tensor[0], tensor[1], odd_shape(tensor[0], tensor[2]))],
    ),
)


def odd_shape(name: str, shape: list[int]) -> list[int]:
    """The shape of a tensor of `qwen3_moe_odd`: 4 heads of 24 values for 100 hidden ones."""
    if "q_proj" in name:
        return [96, 100]
    if "o_proj" in name:
        return [100, 96]
    if "k_proj" in name or "v_proj" in name:
        return [48, 100]
    if "q_norm" in name or "k_norm" in name:
        return [24]
    n = {"down_proj": [100, 36], "up_proj": [36, 100], "gate_proj": [36, 100]}
    found = next((new for part, new in n.items() if part in name), None)
    return found or [100 if size == 256 else size for size in shape]
