"""The exponential function on vectors, accurate to about one unit in the last place of float32."""

from __future__ import annotations

import numpy as np

from engine.kernels.registry import device
from engine.kernels.simd import (
    as_f32,
    fma,
    maximum,
    minimum,
    round_to_i32,
    select_less,
    shift_left,
    splat_f32,
    splat_i32,
    to_f32,
    zero_f32x16,
)

_LOG2_E = np.float32(1.44269504)
_LN2_HIGH, _LN2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)  # their sum is ln 2; high * n is exact
_LEAST, _LARGEST = np.float32(-87.3), np.float32(88.0)
# minimax polynomial of (exp(r) - 1 - r) / r^2 on |r| <= ln(2) / 2 (coefficients of the Cephes library's expf)
_P0, _P1, _P2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_P3, _P4, _P5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)


@device
def exponential(x):
    """exp(x) of each lane: 0 below -87.3, capped at exp(88), NaN of NaN (which both bounds let through)."""
    bounded = minimum(splat_f32(_LARGEST), maximum(splat_f32(_LEAST), x))
    n = round_to_i32(bounded * splat_f32(_LOG2_E))
    whole = to_f32(n)
    r = fma(whole, splat_f32(-_LN2_LOW), fma(whole, splat_f32(-_LN2_HIGH), bounded))
    p = fma(splat_f32(_P0), r, splat_f32(_P1))
    p = fma(p, r, splat_f32(_P2))
    p = fma(p, r, splat_f32(_P3))
    p = fma(p, r, splat_f32(_P4))
    p = fma(p, r, splat_f32(_P5))
    result = fma(p * r, r, r + splat_f32(np.float32(1.0)))
    power = as_f32(shift_left(n + splat_i32(127), 23))
    return select_less(x, splat_f32(_LEAST), zero_f32x16(), result * power)
