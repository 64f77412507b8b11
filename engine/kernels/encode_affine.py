"""Encoders of Q4_K, Q5_K, Q4_1 and Q5_1: 32 elements have a scale and a minimum, fitted by weighted least squares."""

from __future__ import annotations

import numpy as np

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
    load_f32x16,
    maximum,
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

_N, _PARTS = 32, 8
_PART_BYTES = _N * VECTOR_BYTES
# the range of a part is stretched over so many steps more than there are: (first, step, number)
_STRETCH = {15: (-1.0, 0.125, 21), 31: (-1.0, 0.25, 13)}
_MOVES = (0, -1, 1)
_INVERSES, _OFFSETS, _FIRST_FOUR = (
    i * _PARTS * VECTOR_BYTES for i in (1, 2, 3)
)  # places among the encoder's own vectors


def _fit_reference(x: np.ndarray, w: np.ndarray, highest: int) -> tuple[np.ndarray, np.ndarray]:
    """x, w (..., 32) -> scales and minima (...), x ~ scale q + minimum with q from 0 to `highest`, minimum <= 0."""
    low, high = np.minimum(x.min(-1), np.float32(0)) + np.float32(0), x.max(-1)
    inverse = reciprocal_reference(high - low)
    sum_w, sum_x = total_reference(w), total_reference(w * x)
    scale, minimum_, best = np.zeros_like(low), low, np.full_like(low, -np.inf)
    first, step, n = _STRETCH[highest]
    for i in range(n):
        factor = np.float32(highest + first + step * i) * inverse
        q = rounded_reference((x - low[..., None]) * factor[..., None], 0, highest)
        weighted = w * q
        sum_q, sum_qq, sum_xq = (
            total_reference(weighted),
            total_reference(weighted * q),
            total_reference(weighted * x),
        )
        determinant = sum_w * sum_qq - sum_q * sum_q
        fitted = quotient_reference(sum_w * sum_xq - sum_x * sum_q, determinant)
        offset = quotient_reference(sum_qq * sum_x - sum_q * sum_xq, determinant)
        alone = quotient_reference(sum_xq, sum_qq)
        fitted = np.where(offset > 0, alone, fitted)
        offset = np.minimum(offset, np.float32(0))
        gain = fitted * sum_xq + offset * sum_x
        better = (best < gain) & (fitted > 0)
        scale, minimum_ = np.where(better, fitted, scale), np.where(better, offset, minimum_)
        best = np.where(better, gain, best)
    return scale, minimum_


@device
def _fit(tile, weights, highest, first, step, n):
    zero = zero_f32x16()
    low, high = zero, load_f32x16(tile)
    sum_w, sum_x = zero, zero
    for i in range(_N):
        x, w = load_f32x16(tile + VECTOR_BYTES * i), load_f32x16(weights + VECTOR_BYTES * i)
        low, high = minimum(x, low), maximum(x, high)
        sum_w, sum_x = sum_w + w, sum_x + w * x
    inverse = reciprocal(high - low)
    scale, offset_of_best, best = zero, low, splat_f32(np.float32(-np.inf))
    top = splat_f32(np.float32(highest))
    for i in range(n):
        factor = splat_f32(np.float32(highest + first + step * i)) * inverse
        sum_q, sum_qq, sum_xq = zero, zero, zero
        for k in range(_N):
            x = load_f32x16(tile + VECTOR_BYTES * k)
            q = rounded((x - low) * factor, zero, top)
            weighted = load_f32x16(weights + VECTOR_BYTES * k) * q
            sum_q = sum_q + weighted
            sum_qq = sum_qq + weighted * q
            sum_xq = sum_xq + weighted * x
        determinant = sum_w * sum_qq - sum_q * sum_q
        fitted = quotient(sum_w * sum_xq - sum_x * sum_q, determinant)
        offset = quotient(sum_qq * sum_x - sum_q * sum_xq, determinant)
        fitted = select_less(zero, offset, quotient(sum_xq, sum_qq), fitted)
        offset = minimum(offset, zero)
        gain = fitted * sum_xq + offset * sum_x
        gain = select_less(zero, fitted, gain, splat_f32(np.float32(-np.inf)))
        scale = select_less(best, gain, fitted, scale)
        offset_of_best = select_less(best, gain, offset, offset_of_best)
        best = maximum(gain, best)
    return scale, offset_of_best


def _encode_reference(blocks: np.ndarray, weights: np.ndarray, highest: int) -> np.ndarray:
    """| d: f16 | dmin: f16 | 12 bytes: 8 x (scale, min) of 6 bits | Q5_K: 32 bytes of bits 4 | 4 x 32 nibble pairs |

    The packing is told where it is expanded: x = (d scale[j]) q - dmin min[j]
    """
    n = len(blocks)
    x, w = blocks.reshape(n, _PARTS, _N), weights.reshape(n, _PARTS, _N)
    scales, minima = _fit_reference(x, w, highest)
    d, d_bytes = half_reference(scales.max(-1) * np.float32(1 / 63))
    d_min, d_min_bytes = half_reference((np.float32(0) - minima.min(-1)) * np.float32(1 / 63))
    nearest_s = rounded_reference(scales * reciprocal_reference(d)[:, None], 0, 63)
    nearest_m = rounded_reference((np.float32(0) - minima) * reciprocal_reference(d_min)[:, None], 0, 63)
    best, chosen_s, chosen_m = np.full_like(nearest_s, np.inf), nearest_s, nearest_m
    for move_s in _MOVES:
        s = np.minimum(np.maximum(nearest_s + np.float32(move_s), np.float32(0)), np.float32(63))
        scale = d[:, None] * s
        inverse = reciprocal_reference(scale)
        for move_m in _MOVES:
            m = np.minimum(np.maximum(nearest_m + np.float32(move_m), np.float32(0)), np.float32(63))
            raised = x + (d_min[:, None] * m)[..., None]
            off = raised - scale[..., None] * rounded_reference(raised * inverse[..., None], 0, highest)
            error = total_reference(w * off * off)
            better = error < best
            chosen_s, chosen_m = np.where(better, s, chosen_s), np.where(better, m, chosen_m)
            best = np.where(better, error, best)
    inverse = reciprocal_reference(d[:, None] * chosen_s)[..., None]
    q = rounded_reference((x + (d_min[:, None] * chosen_m)[..., None]) * inverse, 0, highest).astype(np.uint8)
    s, m = chosen_s.astype(np.uint8), chosen_m.astype(np.uint8)
    high_bits = np.uint8(4)
    packed = [
        s[:, :4] | s[:, 4:] >> high_bits << np.uint8(6),
        m[:, :4] | m[:, 4:] >> high_bits << np.uint8(6),
        s[:, 4:] & 15 | (m[:, 4:] & 15) << high_bits,
    ]
    parts = [d_bytes, d_min_bytes, *packed]
    if highest > 15:
        parts.append(np.bitwise_or.reduce(q >> high_bits << np.arange(8, dtype=np.uint8)[:, None], axis=1))
    parts.append(nibbles_reference((q & 15).reshape(n, 4, 64)).reshape(n, 128))
    return np.concatenate(parts, axis=-1)


@device
def _refine(tile, weights, d, d_min, nearest_s, nearest_m, highest):
    """Scale and minimum, among the nearest whole ones and their neighbours, whose error is least."""
    zero, most = zero_f32x16(), splat_f32(np.float32(63))
    top = splat_f32(np.float32(highest))
    best, chosen_s, chosen_m = splat_f32(np.float32(np.inf)), nearest_s, nearest_m
    for first in range(3):
        s = minimum(maximum(nearest_s + splat_f32(np.float32(_MOVES[first])), zero), most)
        scale = d * s
        inverse = reciprocal(scale)
        for second in range(3):
            m = minimum(maximum(nearest_m + splat_f32(np.float32(_MOVES[second])), zero), most)
            offset, error = d_min * m, zero
            for i in range(_N):
                raised = load_f32x16(tile + VECTOR_BYTES * i) + offset
                off = raised - scale * rounded(raised * inverse, zero, top)
                error = error + load_f32x16(weights + VECTOR_BYTES * i) * off * off
            chosen_s = select_less(error, best, s, chosen_s)
            chosen_m = select_less(error, best, m, chosen_m)
            best = minimum(error, best)
    return chosen_s, chosen_m


@device
def _scales_and_minima(tile, weights, data, vectors, highest, first, step, n):
    """Work them out, and store them; leaves each part's inverse scale and minimum among the vectors."""
    zero, most = zero_f32x16(), splat_f32(np.float32(63))
    largest, lowest = zero, zero
    for j in range(_PARTS):
        scale, offset = _fit(tile + _PART_BYTES * j, weights + _PART_BYTES * j, highest, first, step, n)
        store_f32x16(vectors + VECTOR_BYTES * j, scale)
        store_f32x16(vectors + _OFFSETS + VECTOR_BYTES * j, offset)
        largest, lowest = maximum(scale, largest), minimum(offset, lowest)
    per_63 = splat_f32(np.float32(1 / 63))
    d_bits, m_bits = to_half(largest * per_63), to_half((zero - lowest) * per_63)
    store_half_bits(data, d_bits)
    store_half_bits(data + 2 * LANES, m_bits)
    d, d_min = from_half(d_bits), from_half(m_bits)
    by_d, by_min = reciprocal(d), reciprocal(d_min)
    for j in range(_PARTS):
        s = rounded(load_f32x16(vectors + VECTOR_BYTES * j) * by_d, zero, most)
        m = rounded((zero - load_f32x16(vectors + _OFFSETS + VECTOR_BYTES * j)) * by_min, zero, most)
        s, m = _refine(tile + _PART_BYTES * j, weights + _PART_BYTES * j, d, d_min, s, m, highest)
        store_f32x16(vectors + _INVERSES + VECTOR_BYTES * j, reciprocal(d * s))
        store_f32x16(vectors + _OFFSETS + VECTOR_BYTES * j, d_min * m)
        whole_s, whole_m = whole_to_i32(s), whole_to_i32(m)
        if j < 4:
            store_f32x16(vectors + _FIRST_FOUR + VECTOR_BYTES * j, s)
            store_f32x16(vectors + _FIRST_FOUR + VECTOR_BYTES * (4 + j), m)
        else:
            fifteen = splat_i32(np.int32(15))
            store_pair(data + LANES * (8 + j), whole_s & fifteen, whole_m & fifteen)
            low_s = whole_to_i32(load_f32x16(vectors + _FIRST_FOUR + VECTOR_BYTES * (j - 4)))
            low_m = whole_to_i32(load_f32x16(vectors + _FIRST_FOUR + VECTOR_BYTES * j))
            store_i8x16(data + LANES * j, low_s + shift_left(shift_right(whole_s, 4), 6))
            store_i8x16(data + LANES * (4 + j), low_m + shift_left(shift_right(whole_m, 4), 6))


@device
def _code(tile, vectors, part, i, highest):
    raised = load_f32x16(tile + _PART_BYTES * part + VECTOR_BYTES * i)
    raised = raised + load_f32x16(vectors + _OFFSETS + VECTOR_BYTES * part)
    inverse = load_f32x16(vectors + _INVERSES + VECTOR_BYTES * part)
    return whole_to_i32(rounded(raised * inverse, zero_f32x16(), splat_f32(np.float32(highest))))


@device
def _q4_k(tile, weights, data, vectors):
    first, step, n = _STRETCH_4
    _scales_and_minima(tile, weights, data, vectors, 15, first, step, n)
    for pair in range(4):
        for i in range(_N):
            low, high = _code(tile, vectors, 2 * pair, i, 15), _code(tile, vectors, 2 * pair + 1, i, 15)
            store_pair(data + LANES * (16 + _N * pair + i), low, high)


@device
def _q5_k(tile, weights, data, vectors):
    first, step, n = _STRETCH_5
    _scales_and_minima(tile, weights, data, vectors, 31, first, step, n)
    fifteen = splat_i32(np.int32(15))
    for i in range(_N):
        fifth_bits = zero_i32x16()
        for pair in range(4):
            low, high = _code(tile, vectors, 2 * pair, i, 31), _code(tile, vectors, 2 * pair + 1, i, 31)
            store_pair(data + LANES * (48 + _N * pair + i), low & fifteen, high & fifteen)
            both = shift_right(low, 4) + shift_left(shift_right(high, 4), 1)
            fifth_bits = fifth_bits + shift_left(both, np.int32(2 * pair))
        store_i8x16(data + LANES * (16 + i), fifth_bits)


def _q4_1_reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """| d: f16 | m: f16 | 16 nibble pairs: q[i], q[i + 16] |   x = d q + m"""
    scales, minima = _fit_reference(x, w, 15)
    (d, d_bytes), (m, m_bytes) = half_reference(scales), half_reference(minima)
    q = rounded_reference((x - m[:, None]) * reciprocal_reference(d)[:, None], 0, 15)
    return np.concatenate([d_bytes, m_bytes, nibbles_reference(q)], axis=-1)


@device
def _q4_1(tile, weights, data, vectors):
    first, step, n = _STRETCH_4
    scale, offset = _fit(tile, weights, 15, first, step, n)
    d_bits, m_bits = to_half(scale), to_half(offset)
    store_half_bits(data, d_bits)
    store_half_bits(data + 2 * LANES, m_bits)
    factor, m = reciprocal(from_half(d_bits)), from_half(m_bits)
    zero, top = zero_f32x16(), splat_f32(np.float32(15))
    for i in range(16):
        place = tile + VECTOR_BYTES * i
        low = whole_to_i32(rounded((load_f32x16(place) - m) * factor, zero, top))
        high = whole_to_i32(rounded((load_f32x16(place + VECTOR_BYTES * 16) - m) * factor, zero, top))
        store_pair(data + LANES * (4 + i), low, high)


def _q5_1_reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """| d: f16 | m: f16 | 32 bits: bit 4 of q[i] | 16 nibble pairs: bits 0 to 3 of q[i], q[i + 16] |   x = d q + m"""
    scales, minima = _fit_reference(x, w, 31)
    (d, d_bytes), (m, m_bytes) = half_reference(scales), half_reference(minima)
    q = rounded_reference((x - m[:, None]) * reciprocal_reference(d)[:, None], 0, 31).astype(np.uint8)
    high = np.packbits(q >> 4, axis=-1, bitorder="little")
    return np.concatenate([d_bytes, m_bytes, high, nibbles_reference(q & 15)], axis=-1)


@device
def _q5_1(tile, weights, data, vectors):
    first, step, n = _STRETCH_5
    scale, offset = _fit(tile, weights, 31, first, step, n)
    d_bits, m_bits = to_half(scale), to_half(offset)
    store_half_bits(data, d_bits)
    store_half_bits(data + 2 * LANES, m_bits)
    factor, m, fifteen = reciprocal(from_half(d_bits)), from_half(m_bits), splat_i32(np.int32(15))
    zero, top = zero_f32x16(), splat_f32(np.float32(31))
    for eight in range(2):
        low_bits, high_bits = zero_i32x16(), zero_i32x16()
        for i in range(8):
            place = tile + VECTOR_BYTES * (8 * eight + i)
            low = whole_to_i32(rounded((load_f32x16(place) - m) * factor, zero, top))
            high = whole_to_i32(rounded((load_f32x16(place + VECTOR_BYTES * 16) - m) * factor, zero, top))
            store_pair(data + LANES * (8 + 8 * eight + i), low & fifteen, high & fifteen)
            low_bits = low_bits + shift_left(shift_right(low, 4), np.int32(i))
            high_bits = high_bits + shift_left(shift_right(high, 4), np.int32(i))
        store_i8x16(data + LANES * (4 + eight), low_bits)
        store_i8x16(data + LANES * (6 + eight), high_bits)


_STRETCH_4, _STRETCH_5 = _STRETCH[15], _STRETCH[31]

register_encoder("Q4_K", 256, 144, _q4_k, lambda x, w: _encode_reference(x, w, 15))
register_encoder("Q5_K", 256, 176, _q5_k, lambda x, w: _encode_reference(x, w, 31))
register_encoder("Q4_1", 32, 20, _q4_1, _q4_1_reference)
register_encoder("Q5_1", 32, 24, _q5_1, _q5_1_reference)
