"""Encoders of four-bit types whose codes number the values of a table: IQ4_XS, IQ4_NL and MXFP4."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import ir

from engine.gguf.expansions.tables import E2M1_DOUBLED, NONLINEAR
from engine.kernels.encoder import (
    from_half,
    half_reference,
    nibbles_reference,
    quotient,
    quotient_reference,
    reciprocal,
    reciprocal_reference,
    register_encoder,
    rounded,
    rounded_reference,
    store_half_bits,
    store_pair,
    to_half,
    total_reference,
    whole_to_i32,
)
from engine.kernels.encoder_layout import LANES, VECTOR_BYTES
from engine.kernels.registry import device
from engine.kernels.simd import (
    absolute,
    as_f32,
    as_i32,
    define,
    f32x16,
    i32x16,
    load_f32x16,
    maximum,
    maximum_i32,
    minimum,
    select_less,
    shift_left,
    shift_right,
    splat_f32,
    splat_i32,
    store_f32x16,
    store_i8x16,
    zero_f32x16,
    zero_i32x16,
)

_MAGNITUDES = tuple(value / 2 for value in E2M1_DOUBLED[:8])
_N, _PARTS = 32, 8
_PART_BYTES = _N * VECTOR_BYTES
_ENDS = ((-135.0, 2.0, 9), (105.0, 2.0, 8))  # where the largest element of a part is brought to: (first, step, number)
_MOVES = (0, -1, 1)
_EXPONENT_MOVES = (0, 1, -1)


def _borders(levels: Sequence[float]) -> list[float]:
    return [(low + high) / 2 for low, high in pairwise(levels)]


def _index_reference(values: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """The numbers of the nearest levels; of two that are equally near the lower one."""
    return np.searchsorted(np.array(_borders(levels), np.float32), values, side="left")


def _nearest_reference(values: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    return np.array(levels, np.float32)[_index_reference(values, levels)]


def _counted(vector: ir.VectorType, first: float, steps: Sequence[float], levels: Sequence[float]) -> Any:
    """(f32x16) -> first + those of `steps` whose border is below the value."""

    def splat(type: ir.VectorType, value: float) -> ir.Constant:
        return ir.Constant(type, [value] * LANES)

    def body(b: ir.IRBuilder, v: ir.Value) -> ir.Value:
        add = b.fadd if vector is f32x16.llvm else b.add
        total = splat(vector, first)
        for border, step in zip(_borders(levels), steps, strict=True):
            above = b.fcmp_ordered(">", v, splat(f32x16.llvm, border))
            total = b.select(above, add(total, splat(vector, step)), total)
        return total

    return body


def _nearest(levels: Sequence[float]) -> Any:
    steps = [high - low for low, high in pairwise(levels)]
    return define(f32x16, (f32x16,), _counted(f32x16.llvm, levels[0], steps, levels))


def _index(levels: Sequence[float]) -> Any:
    return define(i32x16, (f32x16,), _counted(i32x16.llvm, 0, [1] * (len(levels) - 1), levels))


nearest_nonlinear, index_nonlinear = _nearest(NONLINEAR), _index(NONLINEAR)
nearest_magnitude, index_magnitude = _nearest(_MAGNITUDES), _index(_MAGNITUDES)

# IQ4_XS --------------------------------------------------------------------------------------------------------------


def _fit_reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    largest = np.argmax(np.abs(x), axis=-1, keepdims=True)
    inverse = reciprocal_reference(np.take_along_axis(x, largest, axis=-1)[..., 0])
    best = scale = np.zeros_like(inverse)
    for first, step, n in _ENDS:
        for i in range(n):
            q = _nearest_reference(x * (np.float32(first + step * i) * inverse)[..., None], NONLINEAR)
            weighted = w * q
            x_q = total_reference(weighted * x)
            fitted = quotient_reference(x_q, total_reference(weighted * q))
            gain = fitted * x_q
            scale = np.where(best < gain, fitted, scale)
            best = np.where(best < gain, gain, best)
    return scale


@device
def _fit(tile, weights, first, step, n_ends, inverse, best, scale):
    for end in range(n_ends):
        factor = splat_f32(np.float32(first + step * end)) * inverse
        x_q, q_q = zero_f32x16(), zero_f32x16()
        for i in range(_N):
            x = load_f32x16(tile + VECTOR_BYTES * i)
            q = nearest_nonlinear(x * factor)
            weighted = load_f32x16(weights + VECTOR_BYTES * i) * q
            x_q = x_q + weighted * x
            q_q = q_q + weighted * q
        fitted = quotient(x_q, q_q)
        gain = fitted * x_q
        scale = select_less(best, gain, fitted, scale)
        best = maximum(gain, best)
    return best, scale


def _iq4_xs_reference(blocks: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """| d: f16 | 16 bits: 8 x two high bits of a scale | 4 nibble pairs: low bits of scales | 8 x 16 nibble pairs |

    x = (d (scale[j] - 32)) table[q], the packing is told where it is expanded.
    """
    n = len(blocks)
    x, w = blocks.reshape(n, _PARTS, _N), weights.reshape(n, _PARTS, _N)
    scales = _fit_reference(x, w)
    largest = np.argmax(np.abs(scales), axis=-1)[:, None]
    d, d_bytes = half_reference(np.take_along_axis(scales, largest, axis=-1)[:, 0] * np.float32(-1 / 32))
    nearest = rounded_reference(scales * reciprocal_reference(d)[:, None], -32, 31)
    best, chosen = np.full_like(nearest, np.inf), nearest
    for move in _MOVES:
        s = np.minimum(np.maximum(nearest + np.float32(move), np.float32(-32)), np.float32(31))
        factor = (d[:, None] * s)[..., None]
        off = x - factor * _nearest_reference(x * reciprocal_reference(factor), NONLINEAR)
        error = total_reference(w * off * off)
        chosen = np.where(error < best, s, chosen)
        best = np.where(error < best, error, best)
    q = _index_reference(x * reciprocal_reference(d[:, None] * chosen)[..., None], NONLINEAR)
    s = (chosen + 32).astype(np.uint16)
    high = np.bitwise_or.reduce(s >> np.uint16(4) << np.arange(0, 16, 2, dtype=np.uint16), axis=-1)
    low = (s & 15).astype(np.uint8)
    pairs = low[:, ::2] | low[:, 1::2] << np.uint8(4)
    codes = nibbles_reference(q).reshape(n, 128)
    return np.concatenate([d_bytes, high.astype("<u2")[:, None].view(np.uint8), pairs, codes], axis=-1)


@device
def _chosen_scale(tile, weights, d, nearest):
    least, most = splat_f32(np.float32(-32)), splat_f32(np.float32(31))
    best, chosen = splat_f32(np.float32(np.inf)), nearest
    for move in range(3):
        s = minimum(maximum(nearest + splat_f32(np.float32(_MOVES[move])), least), most)
        factor = d * s
        inverse, error = reciprocal(factor), zero_f32x16()
        for i in range(_N):
            x = load_f32x16(tile + VECTOR_BYTES * i)
            off = x - factor * nearest_nonlinear(x * inverse)
            error = error + load_f32x16(weights + VECTOR_BYTES * i) * off * off
        chosen = select_less(error, best, s, chosen)
        best = minimum(error, best)
    return chosen


@device
def _peak(tile):
    peak, size = zero_f32x16(), zero_f32x16()
    for i in range(_N):
        x = load_f32x16(tile + VECTOR_BYTES * i)
        peak = select_less(size, absolute(x), x, peak)
        size = maximum(absolute(x), size)
    return peak


@device
def _iq4_xs(tile, weights, data, vectors):
    largest, size, zero = zero_f32x16(), zero_f32x16(), zero_f32x16()
    for j in range(_PARTS):
        part, part_weights = tile + _PART_BYTES * j, weights + _PART_BYTES * j
        inverse = reciprocal(_peak(part))
        first, step, n = _ENDS[0]
        best, scale = _fit(part, part_weights, first, step, n, inverse, zero, zero)
        first, step, n = _ENDS[1]
        _, scale = _fit(part, part_weights, first, step, n, inverse, best, scale)
        store_f32x16(vectors + VECTOR_BYTES * j, scale)
        largest = select_less(size, absolute(scale), scale, largest)
        size = maximum(absolute(scale), size)
    bits = to_half(largest * splat_f32(np.float32(-1 / 32)))
    store_half_bits(data, bits)
    d = from_half(bits)
    by_d, high_bits, even = reciprocal(d), zero_i32x16(), zero_i32x16()
    for j in range(_PARTS):
        part = tile + _PART_BYTES * j
        nearest = rounded(
            load_f32x16(vectors + VECTOR_BYTES * j) * by_d, splat_f32(np.float32(-32)), splat_f32(np.float32(31))
        )
        chosen = _chosen_scale(part, weights + _PART_BYTES * j, d, nearest)
        s = whole_to_i32(chosen) + splat_i32(np.int32(32))
        high_bits = high_bits + shift_left(shift_right(s, 4), np.int32(2 * j))
        s = s & splat_i32(np.int32(15))
        if j % 2:
            store_pair(data + LANES * (4 + j // 2), even, s)
        else:
            even = s
        inverse = reciprocal(d * chosen)
        for i in range(16):
            low = index_nonlinear(load_f32x16(part + VECTOR_BYTES * i) * inverse)
            high = index_nonlinear(load_f32x16(part + VECTOR_BYTES * (16 + i)) * inverse)
            store_pair(data + LANES * (8 + 16 * j + i), low, high)
    store_half_bits(data + 2 * LANES, high_bits)


def _iq4_nl_reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """| d: f16 | 16 nibble pairs: q[i], q[i + 16] |   x = d table[q]"""
    d, d_bytes = half_reference(_fit_reference(x, w))
    q = _index_reference(x * reciprocal_reference(d)[:, None], NONLINEAR)
    return np.concatenate([d_bytes, nibbles_reference(q)], axis=-1)


@device
def _iq4_nl(tile, weights, data, vectors):
    inverse, zero = reciprocal(_peak(tile)), zero_f32x16()
    first, step, n = _ENDS[0]
    best, scale = _fit(tile, weights, first, step, n, inverse, zero, zero)
    first, step, n = _ENDS[1]
    _, scale = _fit(tile, weights, first, step, n, inverse, best, scale)
    bits = to_half(scale)
    store_half_bits(data, bits)
    inverse = reciprocal(from_half(bits))
    for i in range(16):
        low = index_nonlinear(load_f32x16(tile + VECTOR_BYTES * i) * inverse)
        high = index_nonlinear(load_f32x16(tile + VECTOR_BYTES * (16 + i)) * inverse)
        store_pair(data + LANES * (2 + i), low, high)


# MXFP4 ---------------------------------------------------------------------------------------------------------------


def _mxfp4_reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """| e: u8 | 16 nibble pairs: q[i], q[i + 16] |   x = 2^(e - 127) table[q]

    Of the exponents that bring the largest element to 4 or above but below 8, and their neighbours, the best.
    """
    exponent = (np.abs(x).max(-1).view(np.int32) >> 23) - 2
    best, chosen = np.full(len(x), np.inf, np.float32), exponent
    for move in _EXPONENT_MOVES:
        e = np.minimum(np.maximum(exponent + move, 1), 253)
        magnitude = np.abs(x) * _power(254 - e)[:, None]
        off = magnitude - _nearest_reference(magnitude, _MAGNITUDES)
        unit = _power(127 + 2 * (e - exponent).clip(-8, 8))
        error = total_reference(w * off * off) * unit
        chosen = np.where(error < best, e, chosen)
        best = np.where(error < best, error, best)
    q = _index_reference(np.abs(x) * _power(254 - chosen)[:, None], _MAGNITUDES)
    codes = q | np.signbit(x) << 3
    return np.concatenate([chosen.astype(np.uint8)[:, None], nibbles_reference(codes)], axis=-1)


def _power(biased: np.ndarray) -> np.ndarray:
    """2^(biased - 127) for biased exponents of normal numbers, float32."""
    return (biased.astype(np.int32) << 23).view(np.float32)


@device
def _power_of(biased):
    return as_f32(shift_left(biased, 23))


minimum_i32 = define(i32x16, (i32x16, i32x16), lambda b, x, y: b.select(b.icmp_signed("<", x, y), x, y))
select_less_i32 = define(
    i32x16, (f32x16, f32x16, i32x16, i32x16), lambda b, i, j, x, y: b.select(b.fcmp_ordered("<", i, j), x, y)
)


@device
def _mxfp4(tile, weights, data, vectors):
    exponent = shift_right(as_i32(absolute(_peak(tile))), 23) - splat_i32(np.int32(2))
    best, chosen = splat_f32(np.float32(np.inf)), exponent
    for move in range(3):
        e = exponent + splat_i32(np.int32(_EXPONENT_MOVES[move]))
        e = minimum_i32(maximum_i32(e, splat_i32(np.int32(1))), splat_i32(np.int32(253)))
        inverse, error = _power_of(splat_i32(np.int32(254)) - e), zero_f32x16()
        for i in range(_N):
            magnitude = absolute(load_f32x16(tile + VECTOR_BYTES * i)) * inverse
            off = magnitude - nearest_magnitude(magnitude)
            error = error + load_f32x16(weights + VECTOR_BYTES * i) * off * off
        moved = minimum_i32(maximum_i32(e - exponent, splat_i32(np.int32(-8))), splat_i32(np.int32(8)))
        error = error * _power_of(splat_i32(np.int32(127)) + moved + moved)
        chosen = select_less_i32(error, best, e, chosen)
        best = minimum(error, best)
    store_i8x16(data, chosen)
    inverse = _power_of(splat_i32(np.int32(254)) - chosen)
    for i in range(16):
        low = _signed_code(load_f32x16(tile + VECTOR_BYTES * i), inverse)
        high = _signed_code(load_f32x16(tile + VECTOR_BYTES * (16 + i)), inverse)
        store_pair(data + LANES * (1 + i), low, high)


@device
def _signed_code(x, inverse):
    return index_magnitude(absolute(x) * inverse) + shift_left(shift_right(as_i32(x), 31), 3)


register_encoder("IQ4_XS", 256, 136, _iq4_xs, _iq4_xs_reference)
register_encoder("IQ4_NL", 32, 18, _iq4_nl, _iq4_nl_reference)
register_encoder("MXFP4", 32, 17, _mxfp4, _mxfp4_reference)
