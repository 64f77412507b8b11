"""Published checkpoints (safetensors, config.json, tokenizer files) to GGUF, and GGUF to GGUF of another type.

    with planned(folder, ConversionOptions(type=TensorType.BF16)) as plan:
        write_gguf(plan, "model.gguf")

A plan is checked whole before anything is written. Its tensors are computed some rows at a time.
"""

from engine.convert.checkpoint import Checkpoint
from engine.convert.mixture import Mixture
from engine.convert.model_map import MetadataValue
from engine.convert.options import ConversionOptions
from engine.convert.plan import ConversionPlan, plan_conversion
from engine.convert.requantise import plan_requantising
from engine.convert.source import is_model_file, planned
from engine.convert.tensor_plan import TensorPlan
from engine.convert.write import write_gguf

__all__ = [
    "Checkpoint",
    "ConversionOptions",
    "ConversionPlan",
    "MetadataValue",
    "Mixture",
    "TensorPlan",
    "is_model_file",
    "plan_conversion",
    "plan_requantising",
    "planned",
    "write_gguf",
]
