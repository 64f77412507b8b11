"""The gated activation between the two halves of a feed-forward network."""

from __future__ import annotations

import numpy as np

from engine.kernels.activation import quantise_block
from engine.kernels.exponential import exponential
from engine.kernels.layout import BLOCK
from engine.kernels.registry import device, kernel
from engine.kernels.simd import load_f32x16, splat_f32, store_f32x16, zero_f32x16


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
        for block in range(first // BLOCK, last // BLOCK):
            x = gate + stride * row + 4 * BLOCK * block
            quantise_block(x, rounded + rounded_stride * row, block, n_columns // BLOCK)


@kernel
def open_gate(chunk, scratch, x: int, x_stride: int, gate: int, gate_stride: int, n: int):
    """x[chunk] *= sigmoid(gate[chunk]), element by element, rows of `n` float32."""
    one = splat_f32(np.float32(1.0))
    row, gates = x + x_stride * chunk, gate + gate_stride * chunk
    for i in range(0, 4 * n, 64):
        share = one / (exponential(zero_f32x16() - load_f32x16(gates + i)) + one)
        store_f32x16(row + i, load_f32x16(row + i) * share)
