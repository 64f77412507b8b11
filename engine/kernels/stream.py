"""Reading a stretch of memory once and doing next to nothing with it: what memory bandwidth is measured with."""

from __future__ import annotations

import numpy as np

from engine.kernels.registry import kernel
from engine.kernels.simd import load_i32x16, store_i32x16, zero_i32x16

STREAM_BYTES = 256  # read at once, into four independent registers


def read_through_reference(memory: np.ndarray) -> np.ndarray:
    """memory (n,) int32, n a multiple of 64 -> (16,) int32: the sums of every sixteenth value, wrapped around."""
    return memory.reshape(-1, 16).sum(0, dtype=np.int32)


@kernel
def read_through(chunk, scratch, start: int, n_bytes: int, sums: int):
    """Add up part `chunk` of memory into 16 int32 at sums + 64 * chunk; a part has `n_bytes`, whole STREAM_BYTES."""
    first = start + n_bytes * chunk
    a, b, c, d = zero_i32x16(), zero_i32x16(), zero_i32x16(), zero_i32x16()
    for place in range(first, first + n_bytes, STREAM_BYTES):
        a = a + load_i32x16(place)
        b = b + load_i32x16(place + 64)
        c = c + load_i32x16(place + 128)
        d = d + load_i32x16(place + 192)
    store_i32x16(sums + 64 * chunk, a + b + (c + d))
