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
from engine.kernels.layout import (
    CODE_FACTOR,
    CODE_HEADER_BYTES,
    CODE_OFFSET,
    CODE_TABLE,
    PACKED_BLOCKS,
    PANEL_D_MIN,
    PANEL_SCALES,
)
from engine.kernels.lookup import constant_table, load_table, look_up
from engine.kernels.memory import load_f32, load_i32
from engine.kernels.panels import store_bytes, store_minima
from engine.kernels.quads import dot_block, nibble_quads
from engine.kernels.registry import device
from engine.kernels.simd import (
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
    to_f32,
    zero_i32x16,
)
from engine.kernels.weight_types import (
    WeightType,
    add_halves,
    add_minima,
    half_scale_pair,
    less_minima,
    offset_start,
    packed_dot,
    plain_type,
    signed_scales,
    store_half_scales,
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
    name = "CODES4"
    block_bytes = PACKED_BLOCKS[name][3]

    @device
    def add_block(part, minima, header, w, x, pairs, sums):
        d, table, offset = header
        q = looked_up(table, nibble_quads(w + 16))
        return fma(to_f32(dot_block(q, x, offset_start(offset, pairs))), d * to_f32(load_i8x16(w)), part), minima

    @device
    def unpack(w, n_blocks, panel):
        d, table, offset = code_header(w)
        w += CODE_HEADER_BYTES
        for block in range(n_blocks):
            store_bytes(panel, block, looked_up(table, nibble_quads(w + 16)), offset)
            store_f32x16(panel + PANEL_SCALES + 64 * block, d * to_f32(load_i8x16(w)))
            w += block_bytes
        return w

    return WeightType(packed_dot(name, add_block, code_header), unpack, "single", "offset")


def _codes3() -> WeightType:
    name = "CODES3"
    block_bytes = PACKED_BLOCKS[name][3]

    @device
    def add_block(part, minima, header, w, x, pairs, sums):
        d, table, offset = header
        starts = offset_start(offset & 0xFFFF, pairs), offset_start(offset << 16, pairs)
        return add_halves(part, looked_up(table, three_bit_quads(w + 32)), x, starts, signed_scales(w, d)), minima

    @device
    def unpack(w, n_blocks, panel):
        d, table, offset = code_header(w)
        w += CODE_HEADER_BYTES
        for block in range(n_blocks):
            store_bytes(panel, block, looked_up(table, three_bit_quads(w + 32)), offset)
            store_half_scales(panel, block, signed_scales(w, d))
            w += block_bytes
        return w

    return WeightType(packed_dot(name, add_block, code_header), unpack, "halves", "offset")


# Q2_K -----------------------------------------------------------------------------------------------------------------


@device
def low_scales(w, d):
    """The scales of both halves of a block: d times the low nibbles of 2 x 16 bytes."""
    return d * to_f32(load_u8x16(w) & splat_i32(15)), d * to_f32(load_u8x16(w + 16) & splat_i32(15))


@device
def minimum_pairs(p):
    """The minima of both halves of a block, as a pair of int16, from 2 x 16 bytes' high nibbles."""
    return shift_right(load_u8x16(p), 4) | shift_left(shift_right(load_u8x16(p + 16), 4), 16)


def _q2_k() -> WeightType:
    name = "Q2_K"
    _, header_bytes, _, block_bytes = PACKED_BLOCKS[name]

    @device
    def add_block(part, minima, header, w, x, pairs, sums):
        starts = zero_i32x16(), zero_i32x16()
        part = add_halves(part, two_bit_quads(w + 32), x, starts, low_scales(w, header[0]))
        return part, add_minima(minima, minimum_pairs(w), pairs)

    @device
    def unpack(w, n_blocks, panel):
        d, d_min = half_scale_pair(w)
        store_f32x16(panel + PANEL_D_MIN, d_min)
        w += header_bytes
        for block in range(n_blocks):
            store_bytes(panel, block, two_bit_quads(w + 32), 0)
            store_half_scales(panel, block, low_scales(w, d))
            store_minima(panel, block, minimum_pairs(w))
            w += block_bytes
        return w

    return WeightType(packed_dot(name, add_block, half_scale_pair, less_minima), unpack, "halves", "super")


CODED_TYPES = {
    "IQ4_NL": plain_type("IQ4_NL", table_quads(NONLINEAR, NONLINEAR_OFFSET), "single", NONLINEAR_OFFSET),
    "MXFP4": plain_type("MXFP4", table_quads(E2M1_DOUBLED, E2M1_OFFSET), "single", E2M1_OFFSET, exponent_scales),
    "CODES4": _codes4(),
    "CODES3": _codes3(),
    "Q2_K": _q2_k(),
}
