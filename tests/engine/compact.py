"""The repository's small models, opened quickly: short contexts, small batches."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from engine import Engine, EngineConfig
from engine.kernels.library import load_library
from engine.kernels.tiers import choose_tier
from engine.model import Model
from tests.support.fixtures import COMPACT
from tests.support.tiny_models import TINY_MODELS, Sizes, tiny_model, write_tiny_model

NAMES = tuple(sorted(path.stem for path in COMPACT.glob("*.gguf")))
MIXTURES = tuple(name for name in NAMES if not name.startswith(("llama", "qwen2-")))
LLAMA, MIXTRAL, QWEN3_MOE, OLMOE = "llama-Q4_K_M", "mixtral-mixed", "qwen3_moe-Q4_K_M", "olmoe-Q4_0"
ODD = "odd widths"


def model_path(name: str) -> Path:
    """The file of one of NAMES or of TINY_MODELS, or ODD."""
    if name == ODD:
        return odd_model()
    return tiny_model(name) if name in TINY_MODELS else COMPACT / f"{name}.gguf"


@functools.cache
def odd_model() -> Path:
    """A mixture none of whose widths is a multiple of 16; in the folder of the tiny models."""
    sizes = Sizes(hidden=100, head_dim=20, feed_forward=172, expert_columns=36)
    return write_tiny_model(tiny_model("qwen3moe").with_name(f"{ODD}.gguf"), "qwen3moe", sizes)


def small_config(**changes: Any) -> EngineConfig:
    """A context of 128 tokens, read 32 tokens at a time, unless `changes` say otherwise."""
    return EngineConfig(**{"context_length": 128, "max_batch_tokens": 32, **changes})


def open_small(name: str, **changes: Any) -> Engine:
    return Engine.open(model_path(name), small_config(**changes))


def open_model(name: str, **changes: Any) -> Model:
    model = Model(model_path(name), small_config(**changes), load_library(choose_tier()))
    model.wait_until_loaded()
    return model
