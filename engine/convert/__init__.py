"""Published checkpoints (safetensors, config.json, tokenizer files) to GGUF.

    with Checkpoint.open(folder) as checkpoint:
        plan = plan_conversion(checkpoint, ConversionOptions(type=TensorType.BF16))
        write_gguf(plan, "model.gguf")

A plan is checked whole before anything is written. Its tensors are computed some rows at a time.
"""

from engine.convert.checkpoint import Checkpoint
from engine.convert.mixture import Mixture
from engine.convert.model_map import MetadataValue
from engine.convert.options import ConversionOptions
from engine.convert.plan import ConversionPlan, plan_conversion
from engine.convert.tensor_plan import TensorPlan
from engine.convert.write import write_gguf

__all__ = [
    "Checkpoint",
    "ConversionOptions",
    "ConversionPlan",
    "MetadataValue",
    "Mixture",
    "TensorPlan",
    "plan_conversion",
    "write_gguf",
]
