"""What a conversion's user may choose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.convert.mixture import Mixture
from engine.errors import InvalidRequestError
from engine.gguf.tensor_types import TensorType

if TYPE_CHECKING:
    from engine.convert.calibrate.importance import ImportanceMatrix


@dataclass(frozen=True, slots=True)
class ConversionOptions:
    """`type` of the matrices: F32, F16, BF16, or None for the one that most of the checkpoint has.

    `mixture`: quantise them, each to the type that this kind of file has for it; `type` then counts for nothing.
    `importance`: what calibration has measured, by which errors in each column are weighted.
    `router_type`: of the routers' matrices. `expert_count` must be the checkpoint's; `top_k` replaces the
    checkpoint's number of experts for each token. `name` replaces the folder's as the model's name.
    `router_pattern`: the name of the routers' tensors, `{layer}` standing for the layer, where it is not the usual one.
    """

    type: TensorType | None = None
    mixture: Mixture | None = None
    importance: ImportanceMatrix | None = None
    router_type: TensorType = TensorType.F32
    expert_count: int | None = None
    top_k: int | None = None
    name: str | None = None
    router_pattern: str | None = None

    def __post_init__(self) -> None:
        """Raise InvalidRequestError for a pattern that is the same for all layers."""
        if self.router_pattern is not None and "{layer}" not in self.router_pattern:
            raise InvalidRequestError(
                f"Expected {{layer}} in the pattern of the routers' names, found {self.router_pattern!r:.100}. "
                "For example: model.layers.{layer}.mlp.gate.weight"
            )
