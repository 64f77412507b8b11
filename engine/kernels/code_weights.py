"""Packed weights behind codes: groups and quads as in weight_types.py, with a table between bits and integers.

    type     block of 32 inputs x 16 rows, in bytes                                                     bits a weight
    IQ4_NL   32: scales f16 | 256: nibbles                                                                      4.5
    MXFP4    16: exponents | 256: nibbles                                                                       4.25
    CODES4   [header] before 8 of: 16: multipliers i8 | 256: nibbles                                            4.375
    CODES3   [header] before 8 of: 2 x 16: multipliers i8 of 16 inputs | 128: pairs of bits | 64: third bits    3.625
    Q2_K     [32: d f16 | 32: dmin f16] before 8 of: 2 x 16: scale and minimum, a nibble each | 128: pairs      2.625

    header         32: d f16 | 16: table of unsigned values | factor f32 | offset, twice as i16 | 8: zeros
    nibbles        register t holds quad 2t in its low and quad 2t + 1 in its high nibbles
    pairs of bits  register 0 holds quads 0..3, register 1 quads 4..7: bits 2j, 2j + 1 of each byte belong to the j-th
    third bits     bit j of each byte belongs to quad j

CODES3 and CODES4 serve all types of code_types.py: weight = d * factor * multiplier * (table[code] - offset).
Q2_K serves the ternary types too, with a scale and a minimum of one: d * q - d.
"""

from __future__ import annotations

from typing import Any

from engine.gguf.expansions.tables import E2M1_DOUBLED, NONLINEAR
from engine.kernels.float_weights import AHEAD
from engine.kernels.layout import (
    CODE_FACTOR,
    CODE_HEADER_BYTES,
    CODE_OFFSET,
    CODE_TABLE,
    LINE_BYTES,
    PACKED_BLOCKS,
    PAIRS,
    PANEL_D_MIN,
    PANEL_MINIMA,
    PANEL_OFFSET,
    PANEL_SCALES,
    SCALES,
)
from engine.kernels.lookup import constant_table, load_table, look_up
from engine.kernels.memory import load_f32, load_i32, prefetch_lines, store_i32
from engine.kernels.panels import store_bytes
from engine.kernels.quads import dot_block, dot_first_half, dot_second_half, nibble_quads
from engine.kernels.registry import device
from engine.kernels.simd import (
    add_pairs,
    as_f32,
    fma,
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
    store_i32x16,
    to_f32,
    zero_f32x16,
    zero_i32x16,
)
from engine.kernels.weight_types import WeightType, plain_type

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
    """2^(e - 128) from 16 bytes e: bits of floats, not normalised for e below 2 (the larger there)."""
    e = load_u8x16(w)
    return as_f32(maximum_i32(shift_left(e - splat_i32(1), 23), shift_left(e + splat_i32(1), 21)))


# Codes ----------------------------------------------------------------------------------------------------------------


@device
def code_header(w):
    """Scales, table and offset (twice as an int16) of 256 inputs."""
    d = load_f16x16(w) * splat_f32(load_f32(w + CODE_FACTOR))
    return d, load_table(w + CODE_TABLE), load_i32(w + CODE_OFFSET)


def _codes4() -> WeightType:
    block_bytes = PACKED_BLOCKS["CODES4"][3]
    fetch = prefetch_lines(-(-block_bytes // 64))

    @device
    def dot(w, x, n_inputs, total):
        n_blocks = n_inputs // 32
        pairs, x_scale = x + PAIRS * n_blocks, x + SCALES * n_blocks
        for _ in range(n_inputs // 256):
            d, table, offset = code_header(w)
            part = zero_f32x16()
            w += CODE_HEADER_BYTES
            for _ in range(8):
                fetch(w + AHEAD)
                start = add_pairs(zero_i32x16(), splat_i32(offset), splat_i32(load_i32(pairs)))
                q = looked_up(table, nibble_quads(w + 16))
                part = fma(to_f32(dot_block(q, x, start)), d * to_f32(load_i8x16(w)), part)
                w, x, pairs = w + block_bytes, x + LINE_BYTES, pairs + 4
            total = fma(part, splat_f32(load_f32(x_scale)), total)
            x_scale += 4
        return total

    @device
    def unpack(w, n_blocks, panel):
        d, table, offset = code_header(w)
        store_i32(panel + PANEL_OFFSET, offset)
        w += CODE_HEADER_BYTES
        for block in range(n_blocks):
            store_bytes(panel, block, looked_up(table, nibble_quads(w + 16)), offset)
            store_f32x16(panel + PANEL_SCALES + 64 * block, d * to_f32(load_i8x16(w)))
            w += block_bytes
        return w

    return WeightType(dot, unpack, "single", "offset")


def _codes3() -> WeightType:
    block_bytes = PACKED_BLOCKS["CODES3"][3]
    fetch = prefetch_lines(-(-block_bytes // 64))

    @device
    def dot(w, x, n_inputs, total):
        n_blocks = n_inputs // 32
        pairs, x_scale = x + PAIRS * n_blocks, x + SCALES * n_blocks
        for _ in range(n_inputs // 256):
            d, table, offset = code_header(w)
            part, low, high = zero_f32x16(), splat_i32(offset & 0xFFFF), splat_i32(offset << 16)
            w += CODE_HEADER_BYTES
            for _ in range(8):
                fetch(w + AHEAD)
                q, pair = looked_up(table, three_bit_quads(w + 32)), splat_i32(load_i32(pairs))
                first = dot_first_half(q, x, add_pairs(zero_i32x16(), low, pair))
                part = fma(to_f32(first), d * to_f32(load_i8x16(w)), part)
                second = dot_second_half(q, x, add_pairs(zero_i32x16(), high, pair))
                part = fma(to_f32(second), d * to_f32(load_i8x16(w + 16)), part)
                w, x, pairs = w + block_bytes, x + LINE_BYTES, pairs + 4
            total = fma(part, splat_f32(load_f32(x_scale)), total)
            x_scale += 4
        return total

    @device
    def unpack(w, n_blocks, panel):
        d, table, offset = code_header(w)
        store_i32(panel + PANEL_OFFSET, offset)
        w += CODE_HEADER_BYTES
        for block in range(n_blocks):
            store_bytes(panel, block, looked_up(table, three_bit_quads(w + 32)), offset)
            store_f32x16(panel + PANEL_SCALES + 128 * block, d * to_f32(load_i8x16(w)))
            store_f32x16(panel + PANEL_SCALES + 128 * block + 64, d * to_f32(load_i8x16(w + 16)))
            w += block_bytes
        return w

    return WeightType(dot, unpack, "halves", "offset")


# Q2_K -----------------------------------------------------------------------------------------------------------------


@device
def low_scales(p, d):
    return d * to_f32(load_u8x16(p) & splat_i32(15))


@device
def minimum_pairs(p):
    """The minima of both halves of a block, as a pair of int16, from 2 x 16 bytes' high nibbles."""
    return shift_right(load_u8x16(p), 4) | shift_left(shift_right(load_u8x16(p + 16), 4), 16)


def _q2_k() -> WeightType:
    block_bytes = PACKED_BLOCKS["Q2_K"][3]
    fetch = prefetch_lines(-(-block_bytes // 64))

    @device
    def dot(w, x, n_inputs, total):
        n_blocks = n_inputs // 32
        pairs, x_scale = x + PAIRS * n_blocks, x + SCALES * n_blocks
        for _ in range(n_inputs // 256):
            d, d_min = load_f16x16(w), load_f16x16(w + 32)
            part, minima = zero_f32x16(), zero_i32x16()
            w += 64
            for _ in range(8):
                fetch(w + AHEAD)
                q = two_bit_quads(w + 32)
                part = fma(to_f32(dot_first_half(q, x, zero_i32x16())), low_scales(w, d), part)
                part = fma(to_f32(dot_second_half(q, x, zero_i32x16())), low_scales(w + 16, d), part)
                minima = add_pairs(minima, minimum_pairs(w), splat_i32(load_i32(pairs)))
                w, x, pairs = w + block_bytes, x + LINE_BYTES, pairs + 4
            total = fma(fma(to_f32(minima), d_min, part), splat_f32(load_f32(x_scale)), total)
            x_scale += 4
        return total

    @device
    def unpack(w, n_blocks, panel):
        d = load_f16x16(w)
        store_f32x16(panel + PANEL_D_MIN, load_f16x16(w + 32))
        w += 64
        for block in range(n_blocks):
            store_bytes(panel, block, two_bit_quads(w + 32), 0)
            store_f32x16(panel + PANEL_SCALES + 128 * block, low_scales(w, d))
            store_f32x16(panel + PANEL_SCALES + 128 * block + 64, low_scales(w + 16, d))
            store_i32x16(panel + PANEL_MINIMA + 64 * block, minimum_pairs(w))
            w += block_bytes
        return w

    return WeightType(dot, unpack, "halves", "super")


CODED_TYPES = {
    "IQ4_NL": plain_type("IQ4_NL", table_quads(NONLINEAR, NONLINEAR_OFFSET), "single", NONLINEAR_OFFSET),
    "MXFP4": plain_type("MXFP4", table_quads(E2M1_DOUBLED, E2M1_OFFSET), "single", E2M1_OFFSET, exponent_scales),
    "CODES4": _codes4(),
    "CODES3": _codes3(),
    "Q2_K": _q2_k(),
}
