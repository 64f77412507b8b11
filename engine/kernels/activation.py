"""Activations rounded to 12 bits, so that dot products with quantised weights are exact integers.

Each 256 inputs (the last ones of a row may be fewer) have one float32 scale: x ~ q * scale with |q| <= 2032. Each q is
kept as 16 * high + low with high in -127..127 and low in -8..7, two signed bytes that vpdpbusd takes. Twelve bits make
the rounding error 16 times smaller than the 8 bits common elsewhere, for arithmetic that waits for memory anyway.

    row   n_blocks lines of 64 bytes: 32 high parts, 32 low parts
          n_blocks pairs of int16: -(sum of q) of each half of the block
          n_blocks float32: -(sum of q), which the minima of weights are multiplied with
          n_blocks / 8, rounded up, float32: scales
"""

from __future__ import annotations

import numpy as np

from engine.kernels.layout import BLOCK, LINE_BYTES, PAIRS, SCALED_BLOCKS, SCALES, SUMS
from engine.kernels.memory import store_f32, store_u16
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
    zero_i32x16,
)

LARGEST = 2032.0  # 127 * 16: the high part of a larger value would not fit a signed byte


def quantise_reference(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x (n,) float32, n a multiple of 32 -> q (n / 32, 32) int32 and scales (n / 256, rounded up) float32."""
    n = BLOCK * SCALED_BLOCKS
    parts = [x[first : first + n].astype(np.float32) for first in range(0, len(x), n)]
    largest = np.array([np.abs(part).max() for part in parts], np.float32)
    inverse = np.divide(np.float32(LARGEST), largest, out=np.zeros_like(largest), where=largest > 0)
    q = [np.rint(part * factor).astype(np.int32) for part, factor in zip(parts, inverse, strict=True)]
    return np.concatenate(q).reshape(-1, BLOCK), largest / np.float32(LARGEST)


@device
def quantise_scaled(x, row, first, n_blocks):
    """Round the floats of one scale, which begin with block `first` of `x`, into the activation row at `row`.

    A NaN or an infinity makes the scale NaN or infinite.
    """
    last = min(first + SCALED_BLOCKS, n_blocks)
    magnitudes = zero_i32x16()
    for i in range(4 * BLOCK * first, 4 * BLOCK * last, 64):
        magnitudes = maximum_i32(magnitudes, as_i32(absolute(load_f32x16(x + i))))
    largest = reduce_max_i32_as_f32(magnitudes)
    inverse = splat_f32(np.float32(LARGEST) / largest if largest > np.float32(0.0) else np.float32(0.0))
    store_f32(row + SCALES * n_blocks + 4 * (first // SCALED_BLOCKS), largest / np.float32(LARGEST))
    for block in range(first, last):
        source, line = x + 4 * BLOCK * block, row + LINE_BYTES * block
        q0, q1 = round_to_i32(load_f32x16(source) * inverse), round_to_i32(load_f32x16(source + 64) * inverse)
        high0, high1 = shift_right_signed(q0 + splat_i32(8), 4), shift_right_signed(q1 + splat_i32(8), 4)
        store_i8x16(line, high0)
        store_i8x16(line + 16, high1)
        store_i8x16(line + 32, q0 - shift_left(high0, 4))
        store_i8x16(line + 48, q1 - shift_left(high1, 4))
        sum0, sum1 = reduce_sum_i32(q0), reduce_sum_i32(q1)
        store_u16(row + PAIRS * n_blocks + 4 * block, np.int64(-sum0))
        store_u16(row + PAIRS * n_blocks + 4 * block + 2, np.int64(-sum1))
        store_f32(row + SUMS * n_blocks + 4 * block, np.float32(-(sum0 + sum1)))


@device
def quantise_row(x, row, n_inputs):
    """Round the `n_inputs` floats at `x` into the activation row at `row`."""
    n_blocks = n_inputs // BLOCK
    for first in range(0, n_blocks, SCALED_BLOCKS):
        quantise_scaled(x, row, first, n_blocks)


@kernel
def quantise(chunk, scratch, x: int, x_stride: int, out: int, out_stride: int, n_inputs: int):
    """Round row `chunk` of x (rows, n_inputs) float32 to 12 bits."""
    quantise_row(x + x_stride * chunk, out + out_stride * chunk, n_inputs)
