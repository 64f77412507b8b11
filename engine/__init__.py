"""Colibri's engine: mixture-of-experts language models on the CPU.

    from engine import Engine, EngineConfig, SamplingParams
    with Engine.open("model.gguf", EngineConfig(context_length=4096)) as engine:
        for delta in engine.generate(engine.tokenizer.encode("Hello"), SamplingParams(max_tokens=32)):
            print(delta.text, end="")

Names are imported when they are first used: a window that only needs the errors starts without NumPy and LLVM.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.chat import ToolCall
    from engine.config import EngineConfig, ModelInfo
    from engine.engine import Engine, Evaluation
    from engine.memory import MemoryPlan
    from engine.output_format import OutputFormat
    from engine.request import Delta
    from engine.sampling import SamplingParams
    from engine.telemetry import Stats, Telemetry

__all__ = [
    "Delta",
    "Engine",
    "EngineConfig",
    "Evaluation",
    "MemoryPlan",
    "ModelInfo",
    "OutputFormat",
    "SamplingParams",
    "Stats",
    "Telemetry",
    "ToolCall",
]

_HOMES = {
    "Delta": "engine.request",
    "Engine": "engine.engine",
    "EngineConfig": "engine.config",
    "Evaluation": "engine.engine",
    "MemoryPlan": "engine.memory",
    "ModelInfo": "engine.config",
    "OutputFormat": "engine.output_format",
    "SamplingParams": "engine.sampling",
    "Stats": "engine.telemetry",
    "Telemetry": "engine.telemetry",
    "ToolCall": "engine.chat",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'engine' has no attribute {name!r}")
