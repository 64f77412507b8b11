"""Packed weights behind codes: as in blocks.py groups of 16 rows and quads, with a table between bits and integers.

    type     block of 32 inputs x 16 rows, in bytes                                                     bits a weight
    IQ4_NL   32: scales f16 | 256: nibbles                                                                      4.5
    MXFP4    16: exponents | 256: nibbles                                                                       4.25
    CODES4   [header] before 8 of: 16: multipliers i8 | 256: nibbles                                            4.375
    CODES3   [header] before 8 of: 2 x 16: multipliers i8 of 16 inputs | 128: pairs of bits | 64: third bits    3.625
    Q2_K     [32: d f16 | 32: dmin f16] before 8 of: 2 x 16: scale and minimum, a nibble each | 128: pairs      2.625

    header         32: d f16 | 16: table of unsigned values | factor f32 | offset f32 | 8: zeros
    nibbles        register t holds quad 2t in its low and quad 2t + 1 in its high nibbles
    pairs of bits  register 0 holds quads 0..3, register 1 quads 4..7: bits 2j, 2j + 1 of each byte belong to the j-th
    third bits     bit j of each byte belongs to quad j

CODES3 and CODES4 serve all types of code_types.py: weight = d * factor * multiplier * (table[code] - offset).
Q2_K serves the ternary types too, with a scale and a minimum of one: d * q - d.
"""

from __future__ import annotations

from typing import Any

from engine.gguf.expansions.tables import E2M1_DOUBLED, NONLINEAR
from engine.kernels.blocks import (
    AHEAD,
    dot_half,
    dot_quads,
    nibble_quads,
    plain_type,
    scaled,
    store_quads,
    times,
    with_offset,
)
from engine.kernels.layout import (
    CODE_FACTOR,
    CODE_HEADER_BYTES,
    CODE_OFFSET,
    CODE_TABLE,
    HALF_SUMS,
    LINE_BYTES,
    SCALES,
    SUMS,
)
from engine.kernels.lookup import constant_table, load_table, look_up
from engine.kernels.memory import load_f32, prefetch_lines
from engine.kernels.registry import device
from engine.kernels.simd import (
    as_f32,
    load_f16x16,
    load_i8x16,
    load_i32x16,
    load_u8x16,
    maximum_i32,
    shift_left,
    shift_right,
    splat_f32,
    splat_i32,
    store_f32x16,
    to_f32,
)

NONLINEAR_OFFSET, E2M1_OFFSET = -min(NONLINEAR), -min(E2M1_DOUBLED)


@device
def looked_up(table, q):
    return (
        look_up(table, q[0]),
        look_up(table, q[1]),
        look_up(table, q[2]),
        look_up(table, q[3]),
        look_up(table, q[4]),
        look_up(table, q[5]),
        look_up(table, q[6]),
        look_up(table, q[7]),
    )


@device
def pair(bits, j):
    return shift_right(bits, 2 * j) & splat_i32(0x03030303)


@device
def two_bit_quads(p):
    a, b = load_i32x16(p), load_i32x16(p + 64)
    return pair(a, 0), pair(a, 1), pair(a, 2), pair(a, 3), pair(b, 0), pair(b, 1), pair(b, 2), pair(b, 3)


@device
def third_bit(bits, j):
    return shift_left(shift_right(bits, j) & splat_i32(0x01010101), 2)


@device
def three_bit_quads(p):
    q0, q1, q2, q3, q4, q5, q6, q7 = two_bit_quads(p)
    bits = load_i32x16(p + 128)
    return (
        q0 | third_bit(bits, 0),
        q1 | third_bit(bits, 1),
        q2 | third_bit(bits, 2),
        q3 | third_bit(bits, 3),
        q4 | third_bit(bits, 4),
        q5 | third_bit(bits, 5),
        q6 | third_bit(bits, 6),
        q7 | third_bit(bits, 7),
    )


# IQ4_NL and MXFP4 -----------------------------------------------------------------------------------------------------


def table_quads(values: tuple[int, ...], offset: int) -> Any:
    """Quads of the unsigned integers `value` + `offset` from nibbles."""
    table = constant_table([value + offset for value in values])

    @device
    def quads(p):
        return looked_up(table(), nibble_quads(p))

    return quads


@device
def exponent_scales(w):
    """2^(e - 128) from 16 bytes e, and the minima: bits of floats, not normalised for e below 2 (the larger there)."""
    e = load_u8x16(w)
    normal, small = shift_left(e - splat_i32(1), 23), shift_left(e + splat_i32(1), 21)
    scale = as_f32(maximum_i32(normal, small))
    return scale, times(scale, E2M1_OFFSET)


nonlinear_quads = table_quads(NONLINEAR, NONLINEAR_OFFSET)
e2m1_quads = table_quads(E2M1_DOUBLED, E2M1_OFFSET)
dot_iq4_nl, unpack_iq4_nl = plain_type(nonlinear_quads, 32, 288, with_offset(NONLINEAR_OFFSET), store_quads)
dot_mxfp4, unpack_mxfp4 = plain_type(e2m1_quads, 16, 272, exponent_scales, store_quads)


# Codes ----------------------------------------------------------------------------------------------------------------

fetch_codes4, fetch_codes3, fetch_q2_k = prefetch_lines(5), prefetch_lines(4), prefetch_lines(3)


@device
def code_header(w):
    """Scales, table and offset of 256 inputs."""
    d = load_f16x16(w) * splat_f32(load_f32(w + CODE_FACTOR))
    return d, load_table(w + CODE_TABLE), splat_f32(load_f32(w + CODE_OFFSET))


@device
def dot_codes4(w, x, n_inputs, total):
    n_blocks = n_inputs // 32
    x_scales, sums = x + SCALES * n_blocks, x + SUMS * n_blocks
    for _ in range(n_inputs // 256):
        d, table, offset = code_header(w)
        w += CODE_HEADER_BYTES
        for _ in range(8):
            fetch_codes4(w + AHEAD)
            scale = d * to_f32(load_i8x16(w))
            q = looked_up(table, nibble_quads(w + 16))
            total = scaled(total, dot_quads(q, x), scale, x_scales, scale * offset, sums)
            w, x, x_scales, sums = w + 272, x + LINE_BYTES, x_scales + 4, sums + 4
    return total


@device
def unpack_codes4(w, n_inputs, quads, scales, minima):
    block = 0
    for _ in range(n_inputs // 256):
        d, table, offset = code_header(w)
        w += CODE_HEADER_BYTES
        for _ in range(8):
            store_quads(quads, block, looked_up(table, nibble_quads(w + 16)))
            scale = d * to_f32(load_i8x16(w))
            store_f32x16(scales + 64 * block, scale)
            store_f32x16(minima + 64 * block, scale * offset)
            block, w = block + 1, w + 272


@device
def dot_codes3(w, x, n_inputs, total):
    n_blocks = n_inputs // 32
    x_scales, sums = x + SCALES * n_blocks, x + HALF_SUMS * n_blocks
    for _ in range(n_inputs // 256):
        d, table, offset = code_header(w)
        w += CODE_HEADER_BYTES
        for _ in range(8):
            fetch_codes3(w + AHEAD)
            q = looked_up(table, three_bit_quads(w + 32))
            scale = d * to_f32(load_i8x16(w))
            total = scaled(total, dot_half(q[0], q[1], q[2], q[3], x), scale, x_scales, scale * offset, sums)
            scale = d * to_f32(load_i8x16(w + 16))
            second = dot_half(q[4], q[5], q[6], q[7], x + 16)
            total = scaled(total, second, scale, x_scales, scale * offset, sums + 4)
            w, x, x_scales, sums = w + 224, x + LINE_BYTES, x_scales + 4, sums + 8
    return total


@device
def store_halves(target, block, first, second):
    store_f32x16(target + 128 * block, first)
    store_f32x16(target + 128 * block + 64, second)


@device
def unpack_codes3(w, n_inputs, quads, scales, minima):
    block = 0
    for _ in range(n_inputs // 256):
        d, table, offset = code_header(w)
        w += CODE_HEADER_BYTES
        for _ in range(8):
            store_quads(quads, block, looked_up(table, three_bit_quads(w + 32)))
            first, second = d * to_f32(load_i8x16(w)), d * to_f32(load_i8x16(w + 16))
            store_halves(scales, block, first, second)
            store_halves(minima, block, first * offset, second * offset)
            block, w = block + 1, w + 224


# Q2_K -----------------------------------------------------------------------------------------------------------------


@device
def nibble_scales(p, d, d_min):
    """Scales and minima of 16 rows from a byte each."""
    both = load_u8x16(p)
    return d * to_f32(both & splat_i32(15)), d_min * to_f32(shift_right(both, 4))


@device
def dot_q2_k(w, x, n_inputs, total):
    n_blocks = n_inputs // 32
    x_scales, sums = x + SCALES * n_blocks, x + HALF_SUMS * n_blocks
    for _ in range(n_inputs // 256):
        d, d_min = load_f16x16(w), load_f16x16(w + 32)
        w += 64
        for _ in range(8):
            fetch_q2_k(w + AHEAD)
            q = two_bit_quads(w + 32)
            scale, minima = nibble_scales(w, d, d_min)
            total = scaled(total, dot_half(q[0], q[1], q[2], q[3], x), scale, x_scales, minima, sums)
            scale, minima = nibble_scales(w + 16, d, d_min)
            total = scaled(total, dot_half(q[4], q[5], q[6], q[7], x + 16), scale, x_scales, minima, sums + 4)
            w, x, x_scales, sums = w + 160, x + LINE_BYTES, x_scales + 4, sums + 8
    return total


@device
def unpack_q2_k(w, n_inputs, quads, scales, minima):
    block = 0
    for _ in range(n_inputs // 256):
        d, d_min = load_f16x16(w), load_f16x16(w + 32)
        w += 64
        for _ in range(8):
            store_quads(quads, block, two_bit_quads(w + 32))
            first, first_minima = nibble_scales(w, d, d_min)
            second, second_minima = nibble_scales(w + 16, d, d_min)
            store_halves(scales, block, first, second)
            store_halves(minima, block, first_minima, second_minima)
            block, w = block + 1, w + 160
