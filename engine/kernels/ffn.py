"""The gated activation between the two halves of a feed-forward network."""

from __future__ import annotations

import numpy as np

from engine.kernels.activation import quantise_scaled
from engine.kernels.exponential import exponential
from engine.kernels.layout import BLOCK, ITEM_BYTES, SCALED_BLOCKS
from engine.kernels.memory import load_i64
from engine.kernels.registry import device, kernel
from engine.kernels.simd import load_f32x16, maximum, minimum, splat_f32, store_f32x16, zero_f32x16


def swiglu_reference(gate: np.ndarray, up: np.ndarray) -> np.ndarray:
    """silu(gate) * up (Shazeer 2020), element by element, float32."""
    return gate / (1 + np.exp(-gate)) * up


@device
def silu(x):
    return x / (exponential(zero_f32x16() - x) + splat_f32(np.float32(1.0)))


@kernel
def swiglu(
    chunk,
    scratch,
    gate: int,
    up: int,
    stride: int,
    rounded: int,
    rounded_stride: int,
    n_columns: int,
    columns_per_chunk: int,
    row_chunks: int,
):
    """gate[row] = silu(gate[row]) * up[row] for a piece of a row, and the same rounded unless `rounded` is 0."""
    row, part = chunk // row_chunks, chunk % row_chunks
    first = part * columns_per_chunk
    last = min(first + columns_per_chunk, n_columns)
    for i in range(stride * row + 4 * first, stride * row + 4 * last, 64):
        store_f32x16(gate + i, silu(load_f32x16(gate + i)) * load_f32x16(up + i))
    if rounded != 0:
        for block in range(first // BLOCK, last // BLOCK, SCALED_BLOCKS):
            quantise_scaled(gate + stride * row, rounded + rounded_stride * row, block, n_columns // BLOCK)


def clamped_swiglu_reference(gate: np.ndarray, up: np.ndarray, limit: float, slope: float) -> np.ndarray:
    """gate * sigmoid(slope * gate) * (up + 1), with gate at most `limit` and up within it (OpenAI 2025)."""
    gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return gate / (1 + np.exp(-slope * gate)) * (up + 1)


@kernel
def swiglu_clamped(
    chunk,
    scratch,
    gate: int,
    up: int,
    stride: int,
    rounded: int,
    rounded_stride: int,
    n_columns: int,
    columns_per_chunk: int,
    row_chunks: int,
    items: int,
    gate_bias: int,
    up_bias: int,
    limit: float,
    slope: float,
):
    """For a piece of the rows of an expert's work item: both biases of the expert, then clamped_swiglu_reference.

    `gate_bias` and `up_bias` are (n_experts, n_columns); the result is in `gate`, also rounded unless `rounded` is 0.
    """
    item, part = items + ITEM_BYTES * (chunk // row_chunks), chunk % row_chunks
    first = part * columns_per_chunk
    last = min(first + columns_per_chunk, n_columns)
    biases = 4 * n_columns * load_i64(item)
    most, least = splat_f32(np.float32(limit)), splat_f32(np.float32(-limit))
    one, steepness = splat_f32(np.float32(1.0)), splat_f32(np.float32(slope))
    for row in range(load_i64(item + 8), load_i64(item + 8) + load_i64(item + 16)):
        for i in range(4 * first, 4 * last, 64):
            place = gate + stride * row + i
            g = minimum(most, load_f32x16(place) + load_f32x16(gate_bias + biases + i))
            u = load_f32x16(up + stride * row + i) + load_f32x16(up_bias + biases + i)
            u = minimum(most, maximum(least, u))
            glu = g / (exponential(zero_f32x16() - steepness * g) + one)
            store_f32x16(place, glu * (u + one))
        if rounded != 0:
            for block in range(first // BLOCK, last // BLOCK, SCALED_BLOCKS):
                quantise_scaled(gate + stride * row, rounded + rounded_stride * row, block, n_columns // BLOCK)


@kernel
def open_gate(chunk, scratch, x: int, x_stride: int, gate: int, gate_stride: int, n: int, is_silu: int):
    """x[chunk] *= sigmoid(gate[chunk]), or with `is_silu` silu(gate[chunk]), by element; rows of `n` float32."""
    one = splat_f32(np.float32(1.0))
    row, gates = x + x_stride * chunk, gate + gate_stride * chunk
    for i in range(0, 4 * n, 64):
        opening = load_f32x16(gates + i)
        share = silu(opening) if is_silu else one / (exponential(zero_f32x16() - opening) + one)
        store_f32x16(row + i, load_f32x16(row + i) * share)
