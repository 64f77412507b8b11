"""A model's size as GGUF's `general.size_label` has it: `1.3B`, or `8x7B` for experts."""

from __future__ import annotations

import math
from collections.abc import Iterable

from engine.convert.tensor_plan import TensorPlan

_UNITS = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


def size_label(tensors: Iterable[TensorPlan]) -> str:
    """Experts times the parameters of a model with one expert in each layer, at least two digits."""
    n_parameters, n_experts, n_expert_tensors = 0.0, 0, 0
    for tensor in tensors:
        if "_exps." in tensor.name:
            n_experts += tensor.shape[0]
            n_expert_tensors += 1
            n_parameters += math.prod(tensor.shape[1:])
        else:
            n_parameters += math.prod(tensor.shape)
    number = _rounded(n_parameters)
    return f"{n_experts // n_expert_tensors}x{number}" if n_expert_tensors else number


def _rounded(count: float) -> str:
    unit, letter = next(((unit, letter) for unit, letter in _UNITS if count > unit), (1e3, "K"))
    scaled = count / unit
    n_digits = len(str(round(scaled)).lstrip("0"))
    return f"{scaled:.{max(0, 2 - n_digits)}f}{letter}"
