"""Per-token operations on rows of float32: adding to the residual stream, scaling, normalisation."""

from __future__ import annotations

import math

import numpy as np

from engine.kernels.memory import load_i32
from engine.kernels.registry import device, kernel
from engine.kernels.simd import (
    fma,
    load_f32x16,
    maximum,
    minimum,
    reduce_sum,
    splat_f32,
    store_f32x16,
    zero_f32x16,
)


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


def layer_norm_reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, eps: float) -> np.ndarray:
    """x (..., n) -> (x - mean) / sqrt(variance + eps) * weight + bias, float32 (Ba et al. 2016)."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + np.float32(eps)) * weight + bias


@kernel
def layer_norm(chunk, scratch, x: int, weight: int, bias: int, out: int, n: int, stride: int, eps: float):
    """Normalise row `chunk` of x, `n` values, to mean 0 and variance 1; then times `weight`, plus `bias`."""
    row, target = x + stride * chunk, out + stride * chunk
    total = zero_f32x16()
    for i in range(0, 4 * n, 64):
        total = total + load_f32x16(row + i)
    mean = splat_f32(reduce_sum(total) / np.float32(n))
    squares = zero_f32x16()
    for i in range(0, 4 * n, 64):
        centred = load_f32x16(row + i) - mean
        squares = fma(centred, centred, squares)
    scale = splat_f32(np.float32(1.0) / math.sqrt(reduce_sum(squares) / np.float32(n) + np.float32(eps)))
    for i in range(0, 4 * n, 64):
        normalised = (load_f32x16(row + i) - mean) * scale
        store_f32x16(target + i, fma(normalised, load_f32x16(weight + i), load_f32x16(bias + i)))


@kernel
def add(chunk, scratch, x: int, y: int, stride: int, n: int, scale: float):
    """x[chunk] += scale * y[chunk], rows of `n` float32."""
    factor = splat_f32(np.float32(scale))
    for i in range(stride * chunk, stride * chunk + 4 * n, 64):
        store_f32x16(x + i, fma(load_f32x16(y + i), factor, load_f32x16(x + i)))


@kernel
def scale_rows(chunk, scratch, x: int, stride: int, n: int, scale: float):
    """x[chunk] *= scale, rows of `n` float32."""
    factor = splat_f32(np.float32(scale))
    for i in range(stride * chunk, stride * chunk + 4 * n, 64):
        store_f32x16(x + i, load_f32x16(x + i) * factor)


@kernel
def clamp_rows(chunk, scratch, x: int, stride: int, n: int, limit: float):
    """x[chunk] kept between -limit and limit, rows of `n` float32; NaN stays."""
    most, least = splat_f32(np.float32(limit)), splat_f32(np.float32(-limit))
    for i in range(stride * chunk, stride * chunk + 4 * n, 64):
        store_f32x16(x + i, minimum(most, maximum(least, load_f32x16(x + i))))


@kernel
def multiply(chunk, scratch, x: int, x_stride: int, y: int, y_stride: int, n: int):
    """x[chunk] *= y[chunk], rows of `n` float32."""
    row, other = x + x_stride * chunk, y + y_stride * chunk
    for i in range(0, 4 * n, 64):
        store_f32x16(row + i, load_f32x16(row + i) * load_f32x16(other + i))


@kernel
def gather_rows(chunk, scratch, x: int, rows: int, out: int, stride: int):
    """out[chunk] = x[rows[chunk]], rows of `stride` bytes: the positions whose logits are wanted."""
    from_row = load_i32(rows + 4 * chunk)
    for i in range(0, stride, 64):
        store_f32x16(out + stride * chunk + i, load_f32x16(x + stride * from_row + i))
