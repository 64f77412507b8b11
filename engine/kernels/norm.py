"""Per-token operations on rows of float32: adding to the residual stream, RMS normalisation."""

from __future__ import annotations

import math

import numpy as np

from engine.kernels.memory import load_i32
from engine.kernels.registry import device, kernel
from engine.kernels.simd import fma, load_f32x16, reduce_sum, splat_f32, store_f32x16, zero_f32x16


def rms_norm_reference(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    """x (..., n) -> x / sqrt(mean(x^2) + eps) * weight, float32 (Zhang and Sennrich 2019)."""
    scale = 1 / np.sqrt((x.astype(np.float32) ** 2).mean(-1, keepdims=True) + np.float32(eps))
    return x * scale.astype(np.float32) * weight


@device
def rms_norm_row(x, weight, out, n, eps):
    a, b = zero_f32x16(), zero_f32x16()
    for i in range(0, 4 * n, 128):
        first = load_f32x16(x + i)
        a = fma(first, first, a)
        if i + 64 < 4 * n:
            second = load_f32x16(x + i + 64)
            b = fma(second, second, b)
    scale = splat_f32(np.float32(1.0) / math.sqrt(reduce_sum(a + b) / np.float32(n) + np.float32(eps)))
    for i in range(0, 4 * n, 64):
        store_f32x16(out + i, load_f32x16(x + i) * scale * load_f32x16(weight + i))


@kernel
def rms_norm(chunk, scratch, x: int, weight: int, out: int, n: int, n_parts: int, stride: int, eps: float):
    """Normalise row `chunk` of x in `n_parts` parts of `n` values each (heads), all with the same `weight` (n)."""
    for part in range(n_parts):
        offset = stride * chunk + 4 * n * part
        rms_norm_row(x + offset, weight, out + offset, n, eps)


@kernel
def add(chunk, scratch, x: int, y: int, stride: int, n: int):
    """x[chunk] += y[chunk], rows of `n` float32."""
    for i in range(stride * chunk, stride * chunk + 4 * n, 64):
        store_f32x16(x + i, load_f32x16(x + i) + load_f32x16(y + i))


@kernel
def gather_rows(chunk, scratch, x: int, rows: int, out: int, stride: int):
    """out[chunk] = x[rows[chunk]], rows of `stride` bytes: the positions whose logits are wanted."""
    from_row = load_i32(rows + 4 * chunk)
    for i in range(0, stride, 64):
        store_f32x16(out + stride * chunk + i, load_f32x16(x + stride * from_row + i))
