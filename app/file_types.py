"""The kinds of file that a conversion can write, by the names that the command and the window give them.

One entry here is all that a further kind needs: both offer what this table holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.convert import ConversionOptions, Mixture
from engine.gguf.tensor_types import TensorType


@dataclass(frozen=True, slots=True)
class FileType:
    """`key` as the command line takes it, `name` as people write it; `type` of the matrices, or most of them."""

    key: str
    name: str
    type: TensorType
    mixture: Mixture | None = None

    def options(self, **more: Any) -> ConversionOptions:
        """The engine's options for a file of this kind."""
        return ConversionOptions(type=None if self.mixture else self.type, mixture=self.mixture, **more)


_SMALLER = (
    Mixture.Q8_0,
    Mixture.Q6_K,
    Mixture.Q5_K_M,
    Mixture.Q4_K_M,
    Mixture.Q4_K_S,
    Mixture.IQ4_XS,
    Mixture.Q4_0,
    Mixture.MXFP4,
)
FILE_TYPES = (
    FileType("bf16", "BF16", TensorType.BF16),
    FileType("f16", "F16", TensorType.F16),
    FileType("f32", "F32", TensorType.F32),
    *(FileType(mixture.name.lower(), mixture.name, mixture.type, mixture) for mixture in _SMALLER),
)
# Of the routers' matrices, by the names that the command takes.
ROUTER_TYPES = {"fp32": TensorType.F32, "bf16": TensorType.BF16, "fp16": TensorType.F16}
# The best first: what most people should take if it fits.
_PREFERRED = ("q4_k_m", "q5_k_m", "q8_0", "bf16", "f16")


def file_type(key: str) -> FileType:
    """The kind of that name; KeyError if there is none."""
    return {kind.key: kind for kind in FILE_TYPES}[key]


def preferred(keys: list[str]) -> str | None:
    """Which of `keys` most people should take; None of an empty list."""
    return next((key for key in _PREFERRED if key in keys), keys[0] if keys else None)
