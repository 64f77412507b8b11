"""Activations rounded to 12 bits, so that dot products with quantised weights are exact integers.

A block of 32 inputs has one float32 scale: x ~ q * scale with |q| <= 2032. Each q is kept as 16 * high + low with high
in -127..127 and low in -8..7, two signed bytes that vpdpbusd takes. Twelve bits make the rounding error of a block 16
times smaller than that of the 8-bit blocks common elsewhere, for arithmetic that waits for memory anyway.

    row   n_blocks lines of 64 bytes: 32 high parts, 32 low parts
          n_blocks float32: scales
          n_blocks float32: -scale * (sum of q), which the minima of weights are multiplied with
          n_blocks pairs of float32: the same for each half of the block
"""

from __future__ import annotations

import numpy as np

from engine.kernels.layout import BLOCK, HALF_SUMS, LINE_BYTES, SCALES, SUMS
from engine.kernels.memory import store_f32
from engine.kernels.registry import device, kernel
from engine.kernels.simd import (
    absolute,
    as_i32,
    load_f32x16,
    maximum_i32,
    reduce_max_i32_as_f32,
    reduce_sum_i32,
    round_to_i32,
    shift_left,
    shift_right_signed,
    splat_f32,
    splat_i32,
    store_i8x16,
)

LARGEST = 2032.0  # 127 * 16: the high part of a larger value would not fit a signed byte


def quantise_reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x (..., n) float32, n a multiple of 32 -> q (..., n / 32, 32) int32 and scales (..., n / 32) float32."""
    blocks = x.reshape(*x.shape[:-1], -1, BLOCK).astype(np.float32)
    largest = np.abs(blocks).max(-1)
    scales = largest / np.float32(LARGEST)
    inverse = np.divide(np.float32(LARGEST), largest, out=np.zeros_like(largest), where=largest > 0)
    return np.rint(blocks * inverse[..., None]).astype(np.int32), scales


@device
def quantise_block(x, row, block, n_blocks):
    """Round 32 floats at `x` into block `block` of the activation row at `row`. A NaN makes the scale NaN."""
    first, second = load_f32x16(x), load_f32x16(x + 64)
    largest = reduce_max_i32_as_f32(maximum_i32(as_i32(absolute(first)), as_i32(absolute(second))))
    inverse = np.float32(LARGEST) / largest if largest > np.float32(0.0) else np.float32(0.0)
    q0 = round_to_i32(first * splat_f32(inverse))
    q1 = round_to_i32(second * splat_f32(inverse))
    line = row + LINE_BYTES * block
    high0, high1 = shift_right_signed(q0 + splat_i32(8), 4), shift_right_signed(q1 + splat_i32(8), 4)
    store_i8x16(line, high0)
    store_i8x16(line + 16, high1)
    store_i8x16(line + 32, q0 - shift_left(high0, 4))
    store_i8x16(line + 48, q1 - shift_left(high1, 4))
    scale, first_sum, second_sum = largest / np.float32(LARGEST), reduce_sum_i32(q0), reduce_sum_i32(q1)
    store_f32(row + SCALES * n_blocks + 4 * block, scale)
    store_f32(row + SUMS * n_blocks + 4 * block, -scale * np.float32(first_sum + second_sum))
    store_f32(row + HALF_SUMS * n_blocks + 8 * block, -scale * np.float32(first_sum))
    store_f32(row + HALF_SUMS * n_blocks + 8 * block + 4, -scale * np.float32(second_sum))


@kernel
def quantise(chunk, scratch, x: int, x_stride: int, out: int, out_stride: int, n_inputs: int):
    """Round row `chunk` of x (rows, n_inputs) float32 to 12 bits."""
    n_blocks = n_inputs // BLOCK
    for block in range(n_blocks):
        quantise_block(x + x_stride * chunk + 4 * BLOCK * block, out + out_stride * chunk, block, n_blocks)
