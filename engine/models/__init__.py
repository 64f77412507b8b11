"""One file for each architecture: hyper-parameters and tensors in, a plan out."""

from __future__ import annotations

from collections.abc import Callable

from engine.errors import UnsupportedModelError
from engine.models import (
    deepseek,
    deepseek2,
    ernie4_5_moe,
    glm4moe,
    gpt_oss,
    granitemoe,
    hunyuan_moe,
    lfm2moe,
    llama,
    olmoe,
    phi3,
    phimoe,
    qwen2,
    qwen2moe,
    qwen3,
    qwen3moe,
    qwen3next,
    qwen35moe,
    smollm3,
)
from engine.models.builder import Builder
from engine.models.keys import Keys

ARCHITECTURES: dict[str, Callable[[Builder, Keys], None]] = {
    "deepseek": deepseek.build,
    "deepseek2": deepseek2.build,
    "ernie4_5-moe": ernie4_5_moe.build,
    "glm4moe": glm4moe.build,
    "gpt-oss": gpt_oss.build,
    "granitemoe": granitemoe.build,
    "hunyuan-moe": hunyuan_moe.build,
    "lfm2moe": lfm2moe.build,
    "llama": llama.build,
    "olmoe": olmoe.build,
    "phi3": phi3.build,
    "phimoe": phimoe.build,
    "qwen2": qwen2.build,
    "qwen2moe": qwen2moe.build,
    "qwen3": qwen3.build,
    "qwen3moe": qwen3moe.build,
    "qwen3next": qwen3next.build,
    "qwen35moe": qwen35moe.build,
    "smollm3": smollm3.build,
}


def architecture(name: str) -> Callable[[Builder, Keys], None]:
    """The function that builds the plan of the architecture `name`; UnsupportedModelError if there is none."""
    if name not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise UnsupportedModelError(f"The architecture {name!r} is not known to this version; known are {known}.")
    return ARCHITECTURES[name]
