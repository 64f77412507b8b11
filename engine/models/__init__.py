"""One file for each architecture: hyper-parameters and tensors in, a plan out."""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import UnsupportedModelError
from engine.models import deepseek, llama, olmoe, qwen2, qwen2moe, qwen3moe
from engine.models.builder import Builder
from engine.models.hyperparameters import Keys

ARCHITECTURES: dict[str, Callable[[Builder, Keys], None]] = {
    "llama": llama.build,
    "qwen2": qwen2.build,
    "qwen2moe": qwen2moe.build,
    "qwen3moe": qwen3moe.build,
    "olmoe": olmoe.build,
    "deepseek": deepseek.build,
}


def architecture(name: str) -> Callable[[Builder, Keys], None]:
    """The function that builds the plan of the architecture `name`; UnsupportedModelError if there is none."""
    if name not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise UnsupportedModelError(f"The architecture {name!r} is not known to this version; known are {known}.")
    return ARCHITECTURES[name]
