"""Colibri's engine: mixture-of-experts language models on the CPU.

from engine import Engine, EngineConfig, SamplingParams
with Engine.open("model.gguf", EngineConfig(context_length=4096)) as engine:
    for delta in engine.generate(engine.tokenizer.encode("Hello"), SamplingParams(max_tokens=32)):
        print(delta.text, end="")
"""

from engine.config import EngineConfig, ModelInfo
from engine.engine import Engine, Evaluation
from engine.memory import MemoryPlan
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
    "SamplingParams",
    "Stats",
    "Telemetry",
]
