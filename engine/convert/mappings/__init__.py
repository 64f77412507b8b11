"""One table for each architecture: the checkpoint's names, shapes and hyper-parameters, and what GGUF makes of them."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from engine.convert.mappings import (
    deepseek,
    deepseek2,
    ernie4_5moe,
    glm4moe,
    gptoss,
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

if TYPE_CHECKING:
    from engine.convert.model_map import ModelMap

_MODULES: tuple[ModuleType, ...] = (
    deepseek,
    deepseek2,
    ernie4_5moe,
    glm4moe,
    gptoss,
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

# By the class that config.json names: GGUF's name of the architecture, and its table.
TABLES: dict[str, tuple[str, Callable[[ModelMap], None]]] = {
    name: (module.ARCHITECTURE, module.describe) for module in _MODULES for name in module.CLASSES
}
