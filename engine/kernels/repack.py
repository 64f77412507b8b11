"""Weights from the file's row-major blocks to the packed groups of weight_types.py, value for value.

One kernel a type; a chunk is some groups of 16 rows. Rows beyond the matrix's last are zeros. The file layouts (GGUF):

    Q8_0   d f16 | 32 x i8                                  Q4_0   d f16 | 16 x (value i, value i + 16)
    Q4_1   d f16 | m f16 | 16 nibble pairs                  Q4_K   d, dmin f16 | 12 bytes, 6-bit scales | 4 x 32 nibbles
    Q5_0   d f16 | 32 bits | as Q4_0                        Q5_1   d f16 | m f16 | 32 bits | as Q4_1
    Q5_K   d, dmin f16 | 12 | 32 bytes, fifth bits | 128    Q6_K   128 low nibbles | 64 upper | 16 x i8 scale | d f16
"""

from __future__ import annotations

from typing import Any

from engine.kernels.embed import six_bit_minimum, six_bit_scale
from engine.kernels.layout import GROUP, PACKED_BLOCKS
from engine.kernels.memory import load_i64, load_u16, load_u32, store_i32, store_u8, store_u16, zero_bytes
from engine.kernels.registry import device, kernel

_LOW_NIBBLES, _LOW_PAIRS, _LOW_BITS, _SIGNS = 0x0F0F0F0F0F0F0F0F, 0x03030303, 0x01010101, 0x80808080
_LOW_HALF = 0xFFFFFFFF


@device
def store_nibbles(target, lane, part, eight):
    """Eight consecutive 4-bit inputs, one in each byte of `eight`, into register `part` of a block's nibbles."""
    store_i32(target + 64 * part + 4 * lane, eight & _LOW_HALF | (eight >> 32 & _LOW_HALF) << 4)


@device
def store_split_nibbles(target, lane, quants):
    """32 inputs that the file keeps as 16 low nibbles (inputs 0..15) and 16 high ones."""
    for half in range(2):
        eight = load_i64(quants + 8 * half)
        store_nibbles(target, lane, half, eight & _LOW_NIBBLES)
        store_nibbles(target, lane, 2 + half, eight >> 4 & _LOW_NIBBLES)


@device
def lane_f16(source, target, lane, n_inputs):
    for i in range(n_inputs):
        store_u16(target + 32 * i + 2 * lane, load_u16(source + 2 * i))


@device
def lane_f32(source, target, lane, n_inputs):
    for i in range(n_inputs):
        store_i32(target + 64 * i + 4 * lane, load_u32(source + 4 * i))


@device
def lane_f32x8(source, target, lane, n_inputs):
    for i in range(n_inputs):
        store_i32(target + 64 * (i // 2) + 8 * lane + 4 * (i % 2), load_u32(source + 4 * i))


@device
def lane_q8_0(source, target, lane, n_inputs):
    for _ in range(n_inputs // 32):
        store_u16(target + 2 * lane, load_u16(source))
        for quad in range(8):
            store_i32(target + 32 + 64 * quad + 4 * lane, load_u32(source + 2 + 4 * quad) ^ _SIGNS)
        source, target = source + 34, target + 544


@device
def lane_q4_0(source, target, lane, n_inputs):
    for _ in range(n_inputs // 32):
        store_u16(target + 2 * lane, load_u16(source))
        store_split_nibbles(target + 32, lane, source + 2)
        source, target = source + 18, target + 288


@device
def lane_q4_1(source, target, lane, n_inputs):
    for _ in range(n_inputs // 32):
        store_u16(target + 2 * lane, load_u16(source))
        store_u16(target + 32 + 2 * lane, load_u16(source + 2))
        store_split_nibbles(target + 64, lane, source + 4)
        source, target = source + 20, target + 320


@device
def store_fifth_bits(target, lane, bits):
    """The 32 fifth bits of a lane, bit i for input i, spread over the quads' bytes."""
    spread = 0
    for quad in range(8):
        four = bits >> (4 * quad) & 15
        spread |= (four & 1 | (four & 2) << 7 | (four & 4) << 14 | (four & 8) << 21) << quad
    store_i32(target + 4 * lane, spread)


@device
def lane_q5_0(source, target, lane, n_inputs):
    for _ in range(n_inputs // 32):
        store_u16(target + 2 * lane, load_u16(source))
        store_split_nibbles(target + 32, lane, source + 6)
        store_fifth_bits(target + 288, lane, load_u32(source + 2))
        source, target = source + 22, target + 352


@device
def lane_q5_1(source, target, lane, n_inputs):
    for _ in range(n_inputs // 32):
        store_u16(target + 2 * lane, load_u16(source))
        store_u16(target + 32 + 2 * lane, load_u16(source + 2))
        store_split_nibbles(target + 64, lane, source + 8)
        store_fifth_bits(target + 320, lane, load_u32(source + 4))
        source, target = source + 24, target + 384


@device
def store_k_scales(target, lane, packed, sub):
    store_u8(target + lane, six_bit_scale(packed, sub))
    store_u8(target + 16 + lane, six_bit_minimum(packed, sub))


@device
def store_k_nibbles(target, lane, quants, sub):
    """Sub-block `sub`: the low (even) or high (odd) nibbles of 32 bytes that two sub-blocks share."""
    for part in range(4):
        eight = load_i64(quants + 32 * (sub // 2) + 8 * part) >> (4 * (sub % 2)) & _LOW_NIBBLES
        store_nibbles(target, lane, part, eight)


@device
def lane_q4_k(source, target, lane, n_inputs):
    for _ in range(n_inputs // 256):
        store_u16(target + 2 * lane, load_u16(source))
        store_u16(target + 32 + 2 * lane, load_u16(source + 2))
        target += 64
        for sub in range(8):
            store_k_scales(target, lane, source + 4, sub)
            store_k_nibbles(target + 32, lane, source + 16, sub)
            target += 288
        source += 144


@device
def lane_q5_k(source, target, lane, n_inputs):
    for _ in range(n_inputs // 256):
        store_u16(target + 2 * lane, load_u16(source))
        store_u16(target + 32 + 2 * lane, load_u16(source + 2))
        target += 64
        for sub in range(8):
            store_k_scales(target, lane, source + 4, sub)
            store_k_nibbles(target + 32, lane, source + 48, sub)
            bits = 0
            for quad in range(8):
                bits |= (load_u32(source + 16 + 4 * quad) >> sub & _LOW_BITS) << quad
            store_i32(target + 288 + 4 * lane, bits)
            target += 352
        source += 176


@device
def lane_q6_k(source, target, lane, n_inputs):
    for _ in range(n_inputs // 256):
        store_u16(target + 2 * lane, load_u16(source + 208))
        target += 32
        for sub in range(8):
            half, quarter = sub // 4, sub % 4
            store_u8(target + lane, load_u16(source + 192 + 2 * sub))
            store_u8(target + 16 + lane, load_u16(source + 192 + 2 * sub) >> 8)
            low = source + 64 * half + 32 * (quarter % 2)
            for part in range(4):
                eight = load_i64(low + 8 * part) >> (4 * (quarter // 2)) & _LOW_NIBBLES
                store_nibbles(target + 32, lane, part, eight)
            for register in range(2):
                bits = 0
                for quad in range(4):
                    four = load_u32(source + 128 + 32 * half + 16 * register + 4 * quad)
                    bits |= (four >> (2 * quarter) & _LOW_PAIRS) << (2 * quad)
                store_i32(target + 288 + 64 * register + 4 * lane, bits)
            target += 416
        source += 210


def register_repack(type_name: str, lane: Any) -> None:
    """Register `repack_TYPE`: groups chunk * groups_per_chunk ... of a matrix of `n_rows` rows of `row_bytes`."""
    inputs, header, n_parts, part = PACKED_BLOCKS[type_name]
    block_bytes = header + n_parts * part

    def repack(
        chunk, scratch, source: int, row_bytes: int, n_rows: int, n_inputs: int, target: int, groups_per_chunk: int
    ):
        group_bytes = n_inputs // inputs * block_bytes
        n_groups = (n_rows + GROUP - 1) // GROUP
        for group in range(chunk * groups_per_chunk, min((chunk + 1) * groups_per_chunk, n_groups)):
            packed = target + group_bytes * group
            if (group + 1) * GROUP > n_rows:
                zero_bytes(packed, group_bytes)
            for row in range(group * GROUP, min((group + 1) * GROUP, n_rows)):
                lane(source + row_bytes * row, packed, row % GROUP, n_inputs)

    kernel(repack, f"repack_{type_name}")


register_repack("F32", lane_f32)
register_repack("F32x8", lane_f32x8)
register_repack("F16", lane_f16)
register_repack("BF16", lane_f16)
register_repack("Q8_0", lane_q8_0)
register_repack("Q4_0", lane_q4_0)
register_repack("Q4_1", lane_q4_1)
register_repack("Q5_0", lane_q5_0)
register_repack("Q5_1", lane_q5_1)
register_repack("Q4_K", lane_q4_k)
register_repack("Q5_K", lane_q5_k)
register_repack("Q6_K", lane_q6_k)
