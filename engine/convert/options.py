"""What a conversion's user may choose."""

from __future__ import annotations

from dataclasses import dataclass

from engine.gguf.tensor_types import TensorType


@dataclass(frozen=True, slots=True)
class ConversionOptions:
    """`type` of the matrices: F32, F16, BF16, or None for the one that most of the checkpoint has.

    `router_type`: of the routers' matrices. `expert_count` must be the checkpoint's; `top_k` replaces the
    checkpoint's number of experts for each token. `name` replaces the folder's as the model's name.
    """

    type: TensorType | None = None
    router_type: TensorType = TensorType.F32
    expert_count: int | None = None
    top_k: int | None = None
    name: str | None = None
