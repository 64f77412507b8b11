"""Packed weights: sixteen rows side by side, in the layout that one 512-bit register wants.

A group of 16 rows is a sequence of blocks along the inputs. A *quad* is a register of 16 lanes (rows) x 4 bytes (four
consecutive inputs); 32 inputs are 8 quads. The values are those of the file, rearranged, never rounded again:
weight = scale * q - minimum, with q an unsigned integer.

    type    block of 32 inputs x 16 rows, in bytes                                                    minimum
    Q8_0    32: scales f16 | 512: 8 quads, q + 128                                                    128 scale
    Q4_0    32: scales f16 | 256: nibbles                                                             8 scale
    Q4_1    32: scales f16 | 32: -minima f16 | 256: nibbles                                           own
    Q5_0    as Q4_0 with 64: fifth bits after the nibbles                                             16 scale
    Q5_1    as Q4_1 with 64: fifth bits after the nibbles                                             own
    Q4_K    [32: d f16 | 32: dmin f16] before 8 of: 16: scales u8 | 16: minima u8 | 256: nibbles      own
    Q5_K    the same with 64: fifth bits after the nibbles                                            own
    Q6_K    [32: d f16] before 8 of: 2 x 16: scales i8 of 16 inputs | 256: nibbles | 128: upper bits  32 scale

    nibbles      register t holds quad 2t in its low and quad 2t + 1 in its high nibbles
    fifth bits   bit j of each byte belongs to quad j
    upper bits   register 0 holds quads 0..3, register 1 quads 4..7: bits 2j, 2j + 1 of each byte belong to the j-th

F32, F16 and BF16 are 16 values for each input; F32x8 is eight rows of two inputs each, for matrices with no more rows.
The file formats are described in ggml's documentation of GGUF types.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.kernels.layout import HALF_SUMS, LINE_BYTES, SCALES, SUMS
from engine.kernels.memory import load_f32, load_i32, prefetch_lines
from engine.kernels.registry import device
from engine.kernels.simd import (
    HAS_AMX,
    HAS_VNNI512,
    dot_u8i8,
    dot_u8i12,
    fma,
    high_nibbles,
    load_bf16x16,
    load_f16x16,
    load_f32x16,
    load_i8x16,
    load_i32x16,
    load_pair,
    load_u8x16,
    low_nibbles,
    shift_left,
    shift_right,
    splat_f32,
    splat_i32,
    store_f32x16,
    store_i32x16,
    sum_pairs,
    to_f32,
    zero_f32x16,
    zero_i32x16,
)

AHEAD = 4096  # bytes between a weight's prefetch and its use; found by trial: 2304 is 5 % slower, 6144 no faster


@device
def nibble_quads(p):
    a, b, c, d = load_i32x16(p), load_i32x16(p + 64), load_i32x16(p + 128), load_i32x16(p + 192)
    return (
        low_nibbles(a),
        high_nibbles(a),
        low_nibbles(b),
        high_nibbles(b),
        low_nibbles(c),
        high_nibbles(c),
        low_nibbles(d),
        high_nibbles(d),
    )


@device
def byte_quads(p):
    return (
        load_i32x16(p),
        load_i32x16(p + 64),
        load_i32x16(p + 128),
        load_i32x16(p + 192),
        load_i32x16(p + 256),
        load_i32x16(p + 320),
        load_i32x16(p + 384),
        load_i32x16(p + 448),
    )


@device
def fifth_bit(bits, j):
    return shift_left(shift_right(bits, j) & splat_i32(0x01010101), 4)


@device
def five_bit_quads(p):
    q0, q1, q2, q3, q4, q5, q6, q7 = nibble_quads(p)
    bits = load_i32x16(p + 256)
    return (
        q0 | fifth_bit(bits, 0),
        q1 | fifth_bit(bits, 1),
        q2 | fifth_bit(bits, 2),
        q3 | fifth_bit(bits, 3),
        q4 | fifth_bit(bits, 4),
        q5 | fifth_bit(bits, 5),
        q6 | fifth_bit(bits, 6),
        q7 | fifth_bit(bits, 7),
    )


@device
def upper_bits(bits, j):
    return shift_left(shift_right(bits, 2 * j) & splat_i32(0x03030303), 4)


@device
def six_bit_quads(p):
    q0, q1, q2, q3, q4, q5, q6, q7 = nibble_quads(p)
    first, second = load_i32x16(p + 256), load_i32x16(p + 320)
    return (
        q0 | upper_bits(first, 0),
        q1 | upper_bits(first, 1),
        q2 | upper_bits(first, 2),
        q3 | upper_bits(first, 3),
        q4 | upper_bits(second, 0),
        q5 | upper_bits(second, 1),
        q6 | upper_bits(second, 2),
        q7 | upper_bits(second, 3),
    )


@device
def _dot_half_bytes(q0, q1, q2, q3, line):
    """The integer dot products of four quads with the 16 activations whose high parts begin at `line`."""
    high = dot_u8i8(zero_i32x16(), q0, splat_i32(load_i32(line)))
    low = dot_u8i8(zero_i32x16(), q0, splat_i32(load_i32(line + 32)))
    high = dot_u8i8(high, q1, splat_i32(load_i32(line + 4)))
    low = dot_u8i8(low, q1, splat_i32(load_i32(line + 36)))
    high = dot_u8i8(high, q2, splat_i32(load_i32(line + 8)))
    low = dot_u8i8(low, q2, splat_i32(load_i32(line + 40)))
    high = dot_u8i8(high, q3, splat_i32(load_i32(line + 12)))
    low = dot_u8i8(low, q3, splat_i32(load_i32(line + 44)))
    return shift_left(high, 4) + low


@device
def _dot_half_words(q0, q1, q2, q3, line):
    total = dot_u8i12(zero_i32x16(), q0, splat_i32(load_i32(line)), splat_i32(load_i32(line + 32)))
    total = dot_u8i12(total, q1, splat_i32(load_i32(line + 4)), splat_i32(load_i32(line + 36)))
    total = dot_u8i12(total, q2, splat_i32(load_i32(line + 8)), splat_i32(load_i32(line + 40)))
    return dot_u8i12(total, q3, splat_i32(load_i32(line + 12)), splat_i32(load_i32(line + 44)))


dot_half = _dot_half_bytes if HAS_VNNI512 else _dot_half_words


@device
def dot_quads(q, line):
    """The integer dot products of a block's eight quads with the 32 activations of `line`."""
    return dot_half(q[0], q[1], q[2], q[3], line) + dot_half(q[4], q[5], q[6], q[7], line + 16)


@device
def scaled(total, dot, scale, x_scale, minima, x_sum):
    """Add a block to the sums: scale * x_scale * dot, less the minima times the sum of the activations (in `x_sum`)."""
    total = fma(to_f32(dot), scale * splat_f32(load_f32(x_scale)), total)
    return fma(minima, splat_f32(load_f32(x_sum)), total)


@device
def times(scale, offset):
    """The minimum of weights that are kept with an offset: scale * offset."""
    return scale * splat_f32(np.float32(offset))


# Unpacked groups: bytes, then float32 scales, then float32 minima -----------------------------------------------------


@device
def store_quads(quads, block, q):
    target = quads + 512 * block
    store_i32x16(target, q[0])
    store_i32x16(target + 64, q[1])
    store_i32x16(target + 128, q[2])
    store_i32x16(target + 192, q[3])
    store_i32x16(target + 256, q[4])
    store_i32x16(target + 320, q[5])
    store_i32x16(target + 384, q[6])
    store_i32x16(target + 448, q[7])


@device
def store_double_quads(quads, block, q):
    """Four-bit weights for one tile product: 16 q for the activations' high parts, then q for their low parts."""
    high = (
        shift_left(q[0], 4),
        shift_left(q[1], 4),
        shift_left(q[2], 4),
        shift_left(q[3], 4),
        shift_left(q[4], 4),
        shift_left(q[5], 4),
        shift_left(q[6], 4),
        shift_left(q[7], 4),
    )
    store_quads(quads, 2 * block, high)
    store_quads(quads, 2 * block + 1, q)


store_nibble_quads = store_double_quads if HAS_AMX else store_quads
NIBBLE_BLOCK_BYTES, NIBBLE_PLACE = (1024, 512) if HAS_AMX else (512, 0)  # of four-bit quads in unpacked groups


# Weight types ---------------------------------------------------------------------------------------------------------
#
# The dot product of a packed group with a row of quantised activations: (weights, row, n_inputs, start) -> 16 sums.
# The unpacking of a group for many rows: (weights, n_inputs, quads, scales, minima).


def with_offset(offset: int) -> Any:
    """Scales, and minima of weights that are kept with an offset."""

    @device
    def scales_and_minima(w):
        scale = load_f16x16(w)
        return scale, times(scale, offset)

    return scales_and_minima


@device
def with_own_minima(w):
    return load_f16x16(w), zero_f32x16() - load_f16x16(w + 32)


def plain_type(quads: Any, place: int, block_bytes: int, scales_and_minima: Any, store: Any) -> tuple[Any, Any]:
    """Dot product and unpacking of a type whose blocks of 32 inputs stand alone; `place`: where the quads begin."""
    fetch = prefetch_lines(-(-block_bytes // 64))

    @device
    def dot(w, x, n_inputs, total):
        n_blocks = n_inputs // 32
        x_scales, sums = x + SCALES * n_blocks, x + SUMS * n_blocks
        for _ in range(n_blocks):
            fetch(w + AHEAD)
            scale, minima = scales_and_minima(w)
            total = scaled(total, dot_quads(quads(w + place), x), scale, x_scales, minima, sums)
            w, x, x_scales, sums = w + block_bytes, x + LINE_BYTES, x_scales + 4, sums + 4
        return total

    @device
    def unpack(w, n_inputs, target, scales, minima):
        for block in range(n_inputs // 32):
            store(target, block, quads(w + place))
            scale, minimum = scales_and_minima(w)
            store_f32x16(scales + 64 * block, scale)
            store_f32x16(minima + 64 * block, minimum)
            w += block_bytes

    return dot, unpack


def super_type(quads: Any, block_bytes: int, store: Any) -> tuple[Any, Any]:
    """The same of Q4_K and Q5_K, whose blocks of 32 have 6-bit scales and minima within a block of 256."""
    fetch = prefetch_lines(-(-block_bytes // 64))

    @device
    def dot(w, x, n_inputs, total):
        n_blocks = n_inputs // 32
        x_scales, sums = x + SCALES * n_blocks, x + SUMS * n_blocks
        for _ in range(n_inputs // 256):
            d, d_min = load_f16x16(w), load_f16x16(w + 32)
            w += 64
            for _ in range(8):
                fetch(w + AHEAD)
                scale, minima = d * to_f32(load_u8x16(w)), d_min * to_f32(load_u8x16(w + 16))
                total = scaled(total, dot_quads(quads(w + 32), x), scale, x_scales, minima, sums)
                w, x, x_scales, sums = w + block_bytes, x + LINE_BYTES, x_scales + 4, sums + 4
        return total

    @device
    def unpack(w, n_inputs, target, scales, minima):
        for block in range(n_inputs // 32):
            if block % 8 == 0:
                d, d_min = load_f16x16(w), load_f16x16(w + 32)
                w += 64
            store(target, block, quads(w + 32))
            store_f32x16(scales + 64 * block, d * to_f32(load_u8x16(w)))
            store_f32x16(minima + 64 * block, d_min * to_f32(load_u8x16(w + 16)))
            w += block_bytes

    return dot, unpack


dot_q8_0, unpack_q8_0 = plain_type(byte_quads, 32, 544, with_offset(128), store_quads)
dot_q4_0, unpack_q4_0 = plain_type(nibble_quads, 32, 288, with_offset(8), store_nibble_quads)
dot_q4_1, unpack_q4_1 = plain_type(nibble_quads, 64, 320, with_own_minima, store_nibble_quads)
dot_q5_0, unpack_q5_0 = plain_type(five_bit_quads, 32, 352, with_offset(16), store_quads)
dot_q5_1, unpack_q5_1 = plain_type(five_bit_quads, 64, 384, with_own_minima, store_quads)
dot_q4_k, unpack_q4_k = super_type(nibble_quads, 288, store_nibble_quads)
dot_q5_k, unpack_q5_k = super_type(five_bit_quads, 352, store_quads)
fetch_q6_k = prefetch_lines(7)


@device
def dot_q6_k(w, x, n_inputs, total):
    n_blocks = n_inputs // 32
    scales, sums = x + SCALES * n_blocks, x + HALF_SUMS * n_blocks
    for _ in range(n_inputs // 256):
        d = load_f16x16(w)
        w += 32
        for _ in range(8):
            fetch_q6_k(w + AHEAD)
            q = six_bit_quads(w + 32)
            scale = d * to_f32(load_i8x16(w))
            total = scaled(total, dot_half(q[0], q[1], q[2], q[3], x), scale, scales, times(scale, 32), sums)
            scale = d * to_f32(load_i8x16(w + 16))
            total = scaled(total, dot_half(q[4], q[5], q[6], q[7], x + 16), scale, scales, times(scale, 32), sums + 4)
            w, x, scales, sums = w + 416, x + LINE_BYTES, scales + 4, sums + 8
    return total


@device
def unpack_q6_k(w, n_inputs, quads, scales, minima):
    for block in range(n_inputs // 32):
        if block % 8 == 0:
            d = load_f16x16(w)
            w += 32
        store_quads(quads, block, six_bit_quads(w + 32))
        first, second = d * to_f32(load_i8x16(w)), d * to_f32(load_i8x16(w + 16))
        store_f32x16(scales + 128 * block, first)
        store_f32x16(scales + 128 * block + 64, second)
        store_f32x16(minima + 128 * block, times(first, 32))
        store_f32x16(minima + 128 * block + 64, times(second, 32))
        w += 416


# Floating-point weights with floating-point activations ---------------------------------------------------------------


fetch_two, fetch_four = prefetch_lines(2), prefetch_lines(4)


@device
def dot_f32(w, x, n_inputs, total):
    a, b, c, d = total, zero_f32x16(), zero_f32x16(), zero_f32x16()
    for _ in range(n_inputs // 4):
        fetch_four(w + AHEAD)
        a = fma(load_f32x16(w), splat_f32(load_f32(x)), a)
        b = fma(load_f32x16(w + 64), splat_f32(load_f32(x + 4)), b)
        c = fma(load_f32x16(w + 128), splat_f32(load_f32(x + 8)), c)
        d = fma(load_f32x16(w + 192), splat_f32(load_f32(x + 12)), d)
        w, x = w + 256, x + 16
    return (a + b) + (c + d)


@device
def dot_f32x8(w, x, n_inputs, total):
    a, b, c, d = zero_f32x16(), zero_f32x16(), zero_f32x16(), zero_f32x16()
    for _ in range(n_inputs // 8):
        a = fma(load_f32x16(w), load_pair(x), a)
        b = fma(load_f32x16(w + 64), load_pair(x + 8), b)
        c = fma(load_f32x16(w + 128), load_pair(x + 16), c)
        d = fma(load_f32x16(w + 192), load_pair(x + 24), d)
        w, x = w + 256, x + 32
    return total + sum_pairs((a + b) + (c + d))


@device
def dot_f16(w, x, n_inputs, total):
    a, b, c, d = total, zero_f32x16(), zero_f32x16(), zero_f32x16()
    for _ in range(n_inputs // 4):
        fetch_two(w + AHEAD)
        a = fma(load_f16x16(w), splat_f32(load_f32(x)), a)
        b = fma(load_f16x16(w + 32), splat_f32(load_f32(x + 4)), b)
        c = fma(load_f16x16(w + 64), splat_f32(load_f32(x + 8)), c)
        d = fma(load_f16x16(w + 96), splat_f32(load_f32(x + 12)), d)
        w, x = w + 128, x + 16
    return (a + b) + (c + d)


@device
def dot_bf16(w, x, n_inputs, total):
    a, b, c, d = total, zero_f32x16(), zero_f32x16(), zero_f32x16()
    for _ in range(n_inputs // 4):
        fetch_two(w + AHEAD)
        a = fma(load_bf16x16(w), splat_f32(load_f32(x)), a)
        b = fma(load_bf16x16(w + 32), splat_f32(load_f32(x + 4)), b)
        c = fma(load_bf16x16(w + 64), splat_f32(load_f32(x + 8)), c)
        d = fma(load_bf16x16(w + 96), splat_f32(load_f32(x + 12)), d)
        w, x = w + 128, x + 16
    return (a + b) + (c + d)
