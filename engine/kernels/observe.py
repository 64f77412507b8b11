"""What calibration looks at while a model runs: how large the inputs of matrices are, and rows of them.

square_sums   for each column, the sum of the inputs' squares over all rows of a batch; for experts, of each one's rows
keep_rows     a copy of activations, since the buffers of one layer serve the next
"""

from __future__ import annotations

import numpy as np

from engine.kernels.layout import ITEM_BYTES, OBSERVED_BYTES
from engine.kernels.memory import load_i64, store_i64
from engine.kernels.registry import device, kernel
from engine.kernels.simd import fma, load_f32x16, store_f32x16, zero_f32x16


def square_sums_reference(x: np.ndarray) -> np.ndarray:
    """x (n_rows, n_columns) float32 -> (n_columns,) float64."""
    return (x.astype(np.float64) ** 2).sum(0)


@device
def add_squares(x, x_stride, first, count, sums):
    total = zero_f32x16()
    for row in range(first, first + count):
        value = load_f32x16(x + x_stride * row)
        total = fma(value, value, total)
    store_f32x16(sums, load_f32x16(sums) + total)


@kernel
def square_sums(
    chunk, scratch, x: int, x_stride: int, sums: int, sums_stride: int, counts: int, extent: int, items: int
):
    """Add the squares of 16 columns, number `chunk`, of all rows to `sums`, and in chunk 0 the rows to `counts`.

    Without `items` the cell `extent` holds the number of rows, and there is one row of sums. With `items` it holds
    their number, and each item's rows count for its expert: sums (n_experts, sums_stride bytes), counts (n_experts,)
    int64.
    """
    place = OBSERVED_BYTES * chunk
    if items == 0:
        count = load_i64(extent)
        add_squares(x + place, x_stride, 0, count, sums + place)
        if chunk == 0:
            store_i64(counts, load_i64(counts) + count)
        return
    for i in range(load_i64(extent)):
        item = items + ITEM_BYTES * i
        expert, first, count = load_i64(item), load_i64(item + 8), load_i64(item + 16)
        add_squares(x + place, x_stride, first, count, sums + sums_stride * expert + place)
        if chunk == 0:
            store_i64(counts + 8 * expert, load_i64(counts + 8 * expert) + count)


@kernel
def keep_rows(chunk, scratch, x: int, out: int, stride: int):
    """out[chunk] = x[chunk], rows of `stride` bytes."""
    for i in range(stride * chunk, stride * (chunk + 1), 64):
        store_f32x16(out + i, load_f32x16(x + i))
