"""Weights behind codes from the file's blocks to the packed groups of code_weights.py, value for value.

One kernel a type of the file, as in repack.py; code_types.py tells how the file keeps codes and scales. What stands
alone (GGUF):

    IQ4_NL   d f16 | 16 nibble pairs          MXFP4   e u8 | 16 nibble pairs
    Q2_K     16 x (scale, minimum) | 64 x four pairs of bits | d f16 | dmin f16
    TQ2_0    64 x four pairs of bits | d f16  TQ1_0   32, 16: five digits in base 3 | 4: four digits | d f16
"""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.kernels.code_types import FOUR_BIT_TYPES, THREE_BIT_TYPES, CodeType, two_bits
from engine.kernels.columns import load_columns, store_split_nibbles
from engine.kernels.layout import CODE_FACTOR, CODE_HEADER_BYTES, CODE_OFFSET, CODE_TABLE
from engine.kernels.lookup import constant_address
from engine.kernels.memory import (
    load_i64,
    load_u8,
    load_u16,
    store_f32,
    store_i32,
    store_i64,
    store_u8,
    store_u16,
)
from engine.kernels.registry import device
from engine.kernels.repack import by_rows, columns_q4_0, register_repack
from engine.kernels.simd import store_i8x16

_LOW_HALF, _LOW_PAIRS, _LOW_BITS = 0xFFFFFFFF, 0x03030303, 0x01010101
_ONE_AND_ONE = 0x11  # a scale and a minimum of one


@device
def columns_mxfp4(source, row_bytes, count, n_inputs, target):
    for _ in range(n_inputs // 32):
        store_i8x16(target, load_columns(source, row_bytes, count)[0])
        store_split_nibbles(target + 16, load_columns(source + 1, row_bytes, count))
        source, target = source + 17, target + 272


@device
def store_nibbles(target, lane, part, eight):
    """Eight consecutive 4-bit inputs, one in each byte of `eight`, into register `part` of a block's nibbles."""
    store_i32(target + 64 * part + 4 * lane, eight & _LOW_HALF | (eight >> 32 & _LOW_HALF) << 4)


# Types of code_types.py -----------------------------------------------------------------------------------------------


def header_of(kind: CodeType) -> Any:
    """(target, lane, block): a lane's scale; the first lane, which every group has, writes what all share."""
    table = constant_address(kind.table)
    d_bits, factor, offset = kind.d_bits, np.float32(kind.factor), kind.offset * 0x10001

    @device
    def store_header(target, lane, block):
        store_u16(target + 2 * lane, d_bits(block))
        if lane == 0:
            store_i64(target + CODE_TABLE, load_i64(table()))
            store_i64(target + CODE_TABLE + 8, load_i64(table() + 8))
            store_f32(target + CODE_FACTOR, factor)
            store_i32(target + CODE_OFFSET, offset)
            store_i64(target + CODE_OFFSET + 4, 0)

    return store_header


@device
def store_pairs_of_bits(target, lane, register, first, second):
    """Sixteen inputs, two bits in each byte of `first` and `second`, into register `register` of a block's pairs."""
    bits = first & _LOW_PAIRS | (first >> 32 & _LOW_PAIRS) << 2
    bits |= (second & _LOW_PAIRS) << 4 | (second >> 32 & _LOW_PAIRS) << 6
    store_i32(target + 64 * register + 4 * lane, bits)


@device
def third_bits(eight):
    """The third bits of two quads, at the places of quads 0 and 1."""
    return eight >> 2 & _LOW_BITS | (eight >> 34 & _LOW_BITS) << 1


def four_bit_lane(kind: CodeType) -> Any:
    store_header, codes, multiplier, block_bytes = header_of(kind), kind.codes, kind.multiplier, kind.block_bytes

    @device
    def lane_codes4(source, target, lane, n_inputs):
        for _ in range(n_inputs // 256):
            store_header(target, lane, source)
            target += CODE_HEADER_BYTES
            for sub in range(8):
                store_u8(target + lane, multiplier(source, 2 * sub))
                for part in range(4):
                    store_nibbles(target + 16, lane, part, codes(source, 4 * sub + part))
                target += 272
            source += block_bytes

    return lane_codes4


def three_bit_lane(kind: CodeType) -> Any:
    store_header, codes, multiplier, block_bytes = header_of(kind), kind.codes, kind.multiplier, kind.block_bytes

    @device
    def lane_codes3(source, target, lane, n_inputs):
        for _ in range(n_inputs // 256):
            store_header(target, lane, source)
            target += CODE_HEADER_BYTES
            for sub in range(8):
                high = 0
                for half in range(2):
                    store_u8(target + 16 * half + lane, multiplier(source, 2 * sub + half))
                    first, second = codes(source, 4 * sub + 2 * half), codes(source, 4 * sub + 2 * half + 1)
                    store_pairs_of_bits(target + 32, lane, half, first, second)
                    high |= (third_bits(first) | third_bits(second) << 2) << 4 * half
                store_i32(target + 160 + 4 * lane, high)
                target += 224
            source += block_bytes

    return lane_codes3


# Q2_K and the ternary types -------------------------------------------------------------------------------------------


@device
def codes_tq1_0(block, eight):
    """Eight digits, 0 to 2: the byte is a fraction in base 3, whose k-th digit shows after k multiplications by 3."""
    eight_codes = 0
    for j in range(8):
        i = 8 * eight + j
        if i < 160:
            byte, digit = i & 31, i >> 5
        elif i < 240:
            byte, digit = 32 + (i & 15), i - 160 >> 4
        else:
            byte, digit = 48 + (i & 3), i - 240 >> 2
        fraction = load_u8(block + byte)
        for _ in range(digit):
            fraction = 3 * fraction & 255
        eight_codes |= (3 * fraction >> 8) << 8 * j
    return eight_codes


@device
def codes_tq2_0(block, eight):
    return two_bits(block, eight)


@device
def codes_q2_k(block, eight):
    return two_bits(block + 16, eight)


@device
def scales_q2_k(block, sixteen):
    return load_u8(block + sixteen)


@device
def scales_ternary(block, sixteen):
    return _ONE_AND_ONE


def two_bit_lane(block_bytes: int, d: int, d_min: int, scales: Any, codes: Any) -> Any:
    """`d`, `d_min`: where a block has these; `scales` (block, sixteen): a nibble each for scale and minimum."""

    @device
    def lane_q2_k(source, target, lane, n_inputs):
        for _ in range(n_inputs // 256):
            store_u16(target + 2 * lane, load_u16(source + d))
            store_u16(target + 32 + 2 * lane, load_u16(source + d_min))
            target += 64
            for sub in range(8):
                for half in range(2):
                    store_u8(target + 16 * half + lane, scales(source, 2 * sub + half))
                    first, second = codes(source, 4 * sub + 2 * half), codes(source, 4 * sub + 2 * half + 1)
                    store_pairs_of_bits(target + 32, lane, half, first, second)
                target += 160
            source += block_bytes

    return lane_q2_k


register_repack("IQ4_NL", columns_q4_0)  # its blocks lie as those of Q4_0
register_repack("MXFP4", columns_mxfp4)
for _kind in FOUR_BIT_TYPES:
    register_repack(_kind.name, by_rows(four_bit_lane(_kind)))
for _kind in THREE_BIT_TYPES:
    register_repack(_kind.name, by_rows(three_bit_lane(_kind)))
register_repack("Q2_K", by_rows(two_bit_lane(84, 80, 82, scales_q2_k, codes_q2_k)))
register_repack("TQ1_0", by_rows(two_bit_lane(54, 52, 52, scales_ternary, codes_tq1_0)))
register_repack("TQ2_0", by_rows(two_bit_lane(66, 64, 64, scales_ternary, codes_tq2_0)))
