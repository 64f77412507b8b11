"""Heads whose values do not fill whole registers: they are apart in attention, and side by side after it."""

from __future__ import annotations

import numpy as np

from engine.kernels.memory import load_f32, store_f32
from engine.kernels.registry import kernel


def close_heads_reference(x: np.ndarray, n: int) -> np.ndarray:
    """x (..., n_heads, pitch) -> (..., n_heads * n): the first n values of each head."""
    return x[..., :n].reshape(*x.shape[:-2], -1)


@kernel
def close_heads(chunk, scratch, x: int, x_stride: int, out: int, out_stride: int, n_heads: int, pitch: int, n: int):
    """The first `n` of each `pitch` values of row `chunk` of x, float32, side by side in the row of `out`."""
    source, target = x + x_stride * chunk, out + out_stride * chunk
    for head in range(n_heads):
        for i in range(n):
            store_f32(target + 4 * (n * head + i), load_f32(source + 4 * (pitch * head + i)))
