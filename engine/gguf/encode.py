"""Float32 values as the bytes of a GGUF tensor type that has no blocks: F32, F16, BF16."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.gguf.tensor_types import TensorType


def encode(values: npt.NDArray[np.float32], type: TensorType) -> npt.NDArray[np.uint8]:
    """`values` of any shape, rounded to the nearest of `type` (ties to even), as bytes (n_bytes,) uint8.

    F16 overflows to infinity beyond 65,504; the caller looks for values that are not finite.
    """
    if type is TensorType.F32:
        return np.ascontiguousarray(values, "<f4").reshape(-1).view(np.uint8)
    if type is TensorType.F16:
        with np.errstate(over="ignore"):
            return values.astype("<f2").reshape(-1).view(np.uint8)
    if type is TensorType.BF16:
        bits = np.ascontiguousarray(values, np.float32).reshape(-1).view(np.uint32)
        rounded = bits + (0x7FFF + (bits >> 16 & 1)) >> 16
        quiet = bits >> 16 | 64  # a NaN must not become an infinity
        return np.where(bits & 0x7FFFFFFF > 0x7F800000, quiet, rounded).astype("<u2").view(np.uint8)
    raise ValueError(f"expected F32, F16 or BF16, found {type.name}")
