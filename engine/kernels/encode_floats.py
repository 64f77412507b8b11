"""Encoders of F16 and BF16: the nearest value, of two that are equally near the even one."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from engine.kernels.encoder_layout import LANES
from engine.kernels.registry import kernel
from engine.kernels.simd import (
    I16,
    as_i32,
    define,
    f32x16,
    float_to_half_bits,
    i32x16,
    load_f32x16,
    shift_right,
    splat_i32,
    store_unaligned,
)

_HALVES = ir.VectorType(I16, LANES)

store_f16x16 = define(
    types.void, (types.int64, f32x16), lambda b, p, v: store_unaligned(b, p, float_to_half_bits(b, v))
)
store_i16x16 = define(types.void, (types.int64, i32x16), lambda b, p, v: store_unaligned(b, p, b.trunc(v, _HALVES)))


def encode_f16_reference(x: np.ndarray) -> np.ndarray:
    """x (n,) float32 -> (n,) float16"""
    return x.astype("<f2")


@kernel
def encode_F16(chunk, scratch, x: int, out: int, n: int):
    """out[i] = half(x[i]) for the elements n chunk to n chunk + n - 1; n is a multiple of 16."""
    for i in range(n * chunk, n * chunk + n, LANES):
        store_f16x16(out + 2 * i, load_f32x16(x + 4 * i))


def encode_bf16_reference(x: np.ndarray) -> np.ndarray:
    """x (n,) float32, numbers -> (n,) uint16, the upper halves of what is nearest"""
    bits = x.view(np.uint32)
    return (bits + (np.uint32(0x7FFF) + (bits >> 16 & 1)) >> 16).astype("<u2")


@kernel
def encode_BF16(chunk, scratch, x: int, out: int, n: int):
    """out[i] = bfloat16(x[i]) for the elements n chunk to n chunk + n - 1; n is a multiple of 16. NaN is not kept."""
    for i in range(n * chunk, n * chunk + n, LANES):
        bits = as_i32(load_f32x16(x + 4 * i))
        odd = shift_right(bits, 16) & splat_i32(np.int32(1))
        store_i16x16(out + 2 * i, shift_right(bits + odd + splat_i32(np.int32(0x7FFF)), 16))
