"""Encoders of types without a minimum: Q8_0, Q4_0, Q5_0 and Q6_K, whose scales are fitted by weighted least squares.

Of several inverse scales, which bring the largest element near an end of the range, the one whose codes explain most of
the weighted squares is taken, with the scale that fits these codes best.
"""

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
    absolute,
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

# where the largest element is brought to: (first, step, number) towards either end
_Q8_0_ENDS = (127.0, -1.0, 6)
_Q4_0_NEGATIVE, _Q4_0_POSITIVE = (-8.75, 0.25, 7), (6.5, 0.25, 6)
_Q5_0_NEGATIVE, _Q5_0_POSITIVE = (-16.75, 0.25, 7), (14.5, 0.25, 6)
_Q6_K_NEGATIVE, _Q6_K_POSITIVE = (-33.0, 0.5, 8), (29.5, 0.5, 6)
_MOVES = (0, -1, 1)


def fit_reference(
    x: np.ndarray, w: np.ndarray, lowest: float, highest: float, ends: tuple[tuple[float, float, int], ...]
) -> np.ndarray:
    """x, w (..., n) -> the scales (...) of the best codes from `lowest` to `highest`."""
    largest = np.argmax(np.abs(x), axis=-1, keepdims=True)
    inverse = reciprocal_reference(np.take_along_axis(x, largest, axis=-1)[..., 0])
    best = scale = np.zeros_like(inverse)
    for first, step, n in ends:
        for i in range(n):
            q = rounded_reference(x * (np.float32(first + step * i) * inverse)[..., None], lowest, highest)
            weighted = w * q
            x_q = total_reference(weighted * x)
            fitted = quotient_reference(x_q, total_reference(weighted * q))
            gain = fitted * x_q
            scale = np.where(best < gain, fitted, scale)
            best = np.where(best < gain, gain, best)
    return scale


@device
def peak_of(tile, n):
    """Of each lane, the element of largest magnitude: the first of equals."""
    peak, size = zero_f32x16(), zero_f32x16()
    for i in range(n):
        x = load_f32x16(tile + VECTOR_BYTES * i)
        peak = select_less(size, absolute(x), x, peak)
        size = maximum(absolute(x), size)
    return peak


@device
def fit(tile, weights, n, lowest, highest, first, step, n_ends, inverse, best, scale):
    """The best gain and scale so far, and after some more places for the largest element."""
    low, high = splat_f32(np.float32(lowest)), splat_f32(np.float32(highest))
    for end in range(n_ends):
        factor = splat_f32(np.float32(first + step * end)) * inverse
        x_q, q_q = zero_f32x16(), zero_f32x16()
        for i in range(n):
            x = load_f32x16(tile + VECTOR_BYTES * i)
            q = rounded(x * factor, low, high)
            weighted = load_f32x16(weights + VECTOR_BYTES * i) * q
            x_q = x_q + weighted * x
            q_q = q_q + weighted * q
        fitted = quotient(x_q, q_q)
        gain = fitted * x_q
        scale = select_less(best, gain, fitted, scale)
        best = maximum(gain, best)
    return best, scale


def _q8_0_reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """| d: f16 | 32 x int8 q |   x = d q"""
    scale = np.abs(fit_reference(x, w, -127, 127, (_Q8_0_ENDS,)))
    d, d_bytes = half_reference(scale)
    q = rounded_reference(x * reciprocal_reference(d)[:, None], -127, 127)
    return np.concatenate([d_bytes, q.astype(np.int8).view(np.uint8)], axis=-1)


@device
def _q8_0(tile, weights, data, vectors):
    first, step, n = _Q8_0_ENDS
    zero, inverse = zero_f32x16(), reciprocal(peak_of(tile, 32))
    _, scale = fit(tile, weights, 32, -127.0, 127.0, first, step, n, inverse, zero, zero)
    bits = to_half(absolute(scale))
    store_half_bits(data, bits)
    factor = reciprocal(from_half(bits))
    low, high = splat_f32(np.float32(-127)), splat_f32(np.float32(127))
    for i in range(32):
        q = rounded(load_f32x16(tile + VECTOR_BYTES * i) * factor, low, high)
        store_i8x16(data + LANES * (2 + i), whole_to_i32(q))


def _q4_0_reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """| d: f16 | 16 nibble pairs: q[i], q[i + 16] |   x = d (q - 8)"""
    d, d_bytes = half_reference(fit_reference(x, w, -8, 7, (_Q4_0_NEGATIVE, _Q4_0_POSITIVE)))
    q = rounded_reference(x * reciprocal_reference(d)[:, None], -8, 7)
    return np.concatenate([d_bytes, nibbles_reference(q + 8)], axis=-1)


@device
def _q4_0(tile, weights, data, vectors):
    zero, inverse = zero_f32x16(), reciprocal(peak_of(tile, 32))
    first, step, n = _Q4_0_NEGATIVE
    best, scale = fit(tile, weights, 32, -8.0, 7.0, first, step, n, inverse, zero, zero)
    first, step, n = _Q4_0_POSITIVE
    _, scale = fit(tile, weights, 32, -8.0, 7.0, first, step, n, inverse, best, scale)
    bits = to_half(scale)
    store_half_bits(data, bits)
    factor = reciprocal(from_half(bits))
    for i in range(16):
        store_pair(data + LANES * (2 + i), _code(tile, i, factor, 8), _code(tile, 16 + i, factor, 8))


@device
def _code(tile, i, factor, half):
    """Element i as a code from 0 to 2 half - 1."""
    low, high = splat_f32(np.float32(-half)), splat_f32(np.float32(half - 1))
    q = rounded(load_f32x16(tile + VECTOR_BYTES * i) * factor, low, high)
    return whole_to_i32(q) + splat_i32(np.int32(half))


def _q5_0_reference(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """| d: f16 | 32 bits: bit 4 of q[i] | 16 nibble pairs: bits 0 to 3 of q[i], q[i + 16] |   x = d (q - 16)"""
    d, d_bytes = half_reference(fit_reference(x, w, -16, 15, (_Q5_0_NEGATIVE, _Q5_0_POSITIVE)))
    q = (rounded_reference(x * reciprocal_reference(d)[:, None], -16, 15) + 16).astype(np.uint8)
    high = np.packbits(q >> 4, axis=-1, bitorder="little")
    return np.concatenate([d_bytes, high, nibbles_reference(q & 15)], axis=-1)


@device
def _q5_0(tile, weights, data, vectors):
    zero, inverse = zero_f32x16(), reciprocal(peak_of(tile, 32))
    first, step, n = _Q5_0_NEGATIVE
    best, scale = fit(tile, weights, 32, -16.0, 15.0, first, step, n, inverse, zero, zero)
    first, step, n = _Q5_0_POSITIVE
    _, scale = fit(tile, weights, 32, -16.0, 15.0, first, step, n, inverse, best, scale)
    bits = to_half(scale)
    store_half_bits(data, bits)
    factor, fifteen = reciprocal(from_half(bits)), splat_i32(np.int32(15))
    for eight in range(2):
        low_bits, high_bits = zero_i32x16(), zero_i32x16()
        for i in range(8):
            first_q = _code(tile, 8 * eight + i, factor, 16)
            second_q = _code(tile, 16 + 8 * eight + i, factor, 16)
            store_pair(data + LANES * (6 + 8 * eight + i), first_q & fifteen, second_q & fifteen)
            low_bits = low_bits + shift_left(shift_right(first_q, 4), np.int32(i))
            high_bits = high_bits + shift_left(shift_right(second_q, 4), np.int32(i))
        store_i8x16(data + LANES * (2 + eight), low_bits)
        store_i8x16(data + LANES * (4 + eight), high_bits)


def _q6_k_reference(blocks: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """| 128 bytes: low bits | 64 bytes: high bits | 16 x int8 scale | d: f16 |   x = (d scale[j]) (q - 32)

    The packing is told where it is expanded.
    """
    n = len(blocks)
    x, w = blocks.reshape(n, 16, 16), weights.reshape(n, 16, 16)
    scales = fit_reference(x, w, -32, 31, (_Q6_K_NEGATIVE, _Q6_K_POSITIVE))  # (n, 16)
    largest = np.argmax(np.abs(scales), axis=-1)[:, None]
    d, d_bytes = half_reference(np.take_along_axis(scales, largest, axis=-1)[:, 0] * np.float32(-1 / 128))
    nearest = rounded_reference(scales * reciprocal_reference(d)[:, None], -128, 127)
    best, chosen = np.full_like(nearest, np.inf), nearest
    for move in _MOVES:
        s = np.minimum(np.maximum(nearest + np.float32(move), np.float32(-128)), np.float32(127))
        factor = (d[:, None] * s)[..., None]
        off = x - factor * rounded_reference(x * reciprocal_reference(factor), -32, 31)
        error = total_reference(w * off * off)
        chosen = np.where(error < best, s, chosen)
        best = np.where(error < best, error, best)
    q = rounded_reference(x * reciprocal_reference(d[:, None] * chosen)[..., None], -32, 31)
    q = (q + 32).astype(np.uint8).reshape(n, 2, 4, 32)
    low = nibbles_reference((q & 15).reshape(n, 2, 128)).reshape(n, 128)
    high = np.bitwise_or.reduce(q >> 4 << np.arange(0, 8, 2, dtype=np.uint8)[:, None], axis=2).reshape(n, 64)
    return np.concatenate([low, high, chosen.astype(np.int8).view(np.uint8), d_bytes], axis=-1)


@device
def _q6_k_scale(tile, weights, d, nearest):
    """The scale among `nearest` and its neighbours whose error is least, for 16 elements."""
    low, high = splat_f32(np.float32(-32)), splat_f32(np.float32(31))
    best, chosen = splat_f32(np.float32(np.inf)), nearest
    for move in range(3):
        s = nearest + splat_f32(np.float32(_MOVES[move]))
        s = minimum(maximum(s, splat_f32(np.float32(-128))), splat_f32(np.float32(127)))
        factor = d * s
        inverse, error = reciprocal(factor), zero_f32x16()
        for i in range(16):
            x = load_f32x16(tile + VECTOR_BYTES * i)
            off = x - factor * rounded(x * inverse, low, high)
            error = error + load_f32x16(weights + VECTOR_BYTES * i) * off * off
        chosen = select_less(error, best, s, chosen)
        best = minimum(error, best)
    return chosen


@device
def _q6_k(tile, weights, data, vectors):
    largest, size, zero = zero_f32x16(), zero_f32x16(), zero_f32x16()
    for j in range(16):
        part, part_weights = tile + VECTOR_BYTES * 16 * j, weights + VECTOR_BYTES * 16 * j
        inverse = reciprocal(peak_of(part, 16))
        first, step, n = _Q6_K_NEGATIVE
        best, scale = fit(part, part_weights, 16, -32.0, 31.0, first, step, n, inverse, zero, zero)
        first, step, n = _Q6_K_POSITIVE
        _, scale = fit(part, part_weights, 16, -32.0, 31.0, first, step, n, inverse, best, scale)
        store_f32x16(vectors + VECTOR_BYTES * j, scale)
        largest = select_less(size, absolute(scale), scale, largest)
        size = maximum(absolute(scale), size)
    bits = to_half(largest * splat_f32(np.float32(-1 / 128)))
    store_half_bits(data + LANES * 208, bits)
    d = from_half(bits)
    inverse = reciprocal(d)
    least, most = splat_f32(np.float32(-128)), splat_f32(np.float32(127))
    for j in range(16):
        nearest = rounded(load_f32x16(vectors + VECTOR_BYTES * j) * inverse, least, most)
        chosen = _q6_k_scale(tile + VECTOR_BYTES * 16 * j, weights + VECTOR_BYTES * 16 * j, d, nearest)
        store_i8x16(data + LANES * (192 + j), whole_to_i32(chosen))
        store_f32x16(vectors + VECTOR_BYTES * j, reciprocal(d * chosen))
    for half in range(2):
        for i in range(32):
            a = _q6_k_code(tile, vectors, 128 * half + i)
            b = _q6_k_code(tile, vectors, 128 * half + 32 + i)
            c = _q6_k_code(tile, vectors, 128 * half + 64 + i)
            e = _q6_k_code(tile, vectors, 128 * half + 96 + i)
            fifteen = splat_i32(np.int32(15))
            store_pair(data + LANES * (64 * half + i), a & fifteen, c & fifteen)
            store_pair(data + LANES * (64 * half + 32 + i), b & fifteen, e & fifteen)
            high = shift_right(a, 4) + shift_left(shift_right(b, 4), 2)
            high = high + shift_left(shift_right(c, 4), 4) + shift_left(shift_right(e, 4), 6)
            store_i8x16(data + LANES * (128 + 32 * half + i), high)


@device
def _q6_k_code(tile, vectors, i):
    inverse = load_f32x16(vectors + VECTOR_BYTES * (i // 16))
    q = rounded(load_f32x16(tile + VECTOR_BYTES * i) * inverse, splat_f32(np.float32(-32)), splat_f32(np.float32(31)))
    return whole_to_i32(q) + splat_i32(np.int32(32))


register_encoder("Q8_0", 32, 34, _q8_0, _q8_0_reference)
register_encoder("Q4_0", 32, 18, _q4_0, _q4_0_reference)
register_encoder("Q5_0", 32, 22, _q5_0, _q5_0_reference)
register_encoder("Q6_K", 256, 210, _q6_k, _q6_k_reference)
