"""Weights from the file's row-major blocks to the packed groups of weight_types.py, value for value.

One kernel a type; a chunk is some groups of 16 rows. Rows beyond the matrix's last are zeros. The file layouts (GGUF):

    Q8_0   d f16 | 32 x i8                                  Q4_0   d f16 | 16 x (value i, value i + 16)
    Q4_1   d f16 | m f16 | 16 nibble pairs                  Q4_K   d, dmin f16 | 12 bytes, 6-bit scales | 4 x 32 nibbles
    Q5_0   d f16 | 32 bits | as Q4_0                        Q5_1   d f16 | m f16 | 32 bits | as Q4_1
    Q5_K   d, dmin f16 | 12 | 32 bytes, fifth bits | 128    Q6_K   128 low nibbles | 64 upper | 16 x i8 scale | d f16
"""

from __future__ import annotations

from typing import Any

from engine.kernels.columns import (
    fifth_bits,
    load_columns,
    present_signs,
    spread_bits,
    store_halves,
    store_high_nibbles,
    store_low_nibbles,
    store_split_nibbles,
    upper_pairs,
)
from engine.kernels.layout import GROUP, PACKED_BLOCKS
from engine.kernels.memory import load_u16, load_u32, store_i32, store_u16, zero_bytes
from engine.kernels.registry import device, kernel
from engine.kernels.simd import shift_left, shift_right, splat_i32, store_i8x16, store_i32x16


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


# Quantised types: (source, row_bytes, count, n_inputs, target), a group of `count` rows, block by block --------------


@device
def columns_q8_0(source, row_bytes, count, n_inputs, target):
    signs = present_signs(count)
    for _ in range(n_inputs // 32):
        store_halves(target, load_columns(source, row_bytes, count)[0])
        for half in range(2):
            q, quads = load_columns(source + 2 + 16 * half, row_bytes, count), target + 32 + 256 * half
            store_i32x16(quads, q[0] ^ signs)
            store_i32x16(quads + 64, q[1] ^ signs)
            store_i32x16(quads + 128, q[2] ^ signs)
            store_i32x16(quads + 192, q[3] ^ signs)
        source, target = source + 34, target + 544


@device
def columns_q4_0(source, row_bytes, count, n_inputs, target):
    for _ in range(n_inputs // 32):
        store_halves(target, load_columns(source, row_bytes, count)[0])
        store_split_nibbles(target + 32, load_columns(source + 2, row_bytes, count))
        source, target = source + 18, target + 288


@device
def columns_q4_1(source, row_bytes, count, n_inputs, target):
    for _ in range(n_inputs // 32):
        store_half_pair(target, load_columns(source, row_bytes, count)[0])
        store_split_nibbles(target + 64, load_columns(source + 4, row_bytes, count))
        source, target = source + 20, target + 320


@device
def columns_q5_0(source, row_bytes, count, n_inputs, target):
    for _ in range(n_inputs // 32):
        head = load_columns(source, row_bytes, count)
        store_halves(target, head[0])
        store_split_nibbles(target + 32, load_columns(source + 6, row_bytes, count))
        store_i32x16(target + 288, spread_bits(shift_right(head[0], 16) | shift_left(head[1], 16)))
        source, target = source + 22, target + 352


@device
def columns_q5_1(source, row_bytes, count, n_inputs, target):
    for _ in range(n_inputs // 32):
        head = load_columns(source, row_bytes, count)
        store_half_pair(target, head[0])
        store_split_nibbles(target + 64, load_columns(source + 8, row_bytes, count))
        store_i32x16(target + 320, spread_bits(head[1]))
        source, target = source + 24, target + 384


@device
def store_half_pair(target, pair):
    store_halves(target, pair)
    store_halves(target + 32, shift_right(pair, 16))


@device
def store_k_scales(target, head, sub):
    """The 6-bit scale and minimum of sub-block `sub`; head[1..3] are the 12 bytes that the file packs them into."""
    place = 8 * (sub % 4)
    scale, minimum, rest = shift_right(head[1], place), shift_right(head[2], place), shift_right(head[3], place)
    six, four = splat_i32(63), splat_i32(15)
    if sub < 4:
        scale, minimum = scale & six, minimum & six
    else:
        scale, minimum = (
            rest & four | shift_left(shift_right(scale, 6) & splat_i32(3), 4),
            shift_right(rest, 4) & four | shift_left(shift_right(minimum, 6) & splat_i32(3), 4),
        )
    store_i8x16(target, scale)
    store_i8x16(target + 16, minimum)


@device
def columns_q4_k(source, row_bytes, count, n_inputs, target):
    for _ in range(n_inputs // 256):
        head = load_columns(source, row_bytes, count)
        store_half_pair(target, head[0])
        target += 64
        for sub in range(0, 8, 2):
            q = source + 16 + 16 * sub
            a, b = load_columns(q, row_bytes, count), load_columns(q + 16, row_bytes, count)
            store_k_scales(target, head, sub)
            store_low_nibbles(target + 32, a, b)
            store_k_scales(target + 288, head, sub + 1)
            store_high_nibbles(target + 320, a, b)
            target += 576
        source += 144


@device
def columns_q5_k(source, row_bytes, count, n_inputs, target):
    for _ in range(n_inputs // 256):
        head = load_columns(source, row_bytes, count)
        bits = load_columns(source + 16, row_bytes, count), load_columns(source + 32, row_bytes, count)
        store_half_pair(target, head[0])
        target += 64
        for sub in range(0, 8, 2):
            q = source + 48 + 16 * sub
            a, b = load_columns(q, row_bytes, count), load_columns(q + 16, row_bytes, count)
            store_k_scales(target, head, sub)
            store_low_nibbles(target + 32, a, b)
            store_i32x16(target + 288, fifth_bits(bits[0], bits[1], sub))
            store_k_scales(target + 352, head, sub + 1)
            store_high_nibbles(target + 384, a, b)
            store_i32x16(target + 640, fifth_bits(bits[0], bits[1], sub + 1))
            target += 704
        source += 176


@device
def _six_bit_rest(target, scales, upper, quarter):
    """Scales and upper bits of a sub-block; `scales` begins with its own two."""
    store_i8x16(target, scales)
    store_i8x16(target + 16, shift_right(scales, 8))
    store_i32x16(target + 288, upper_pairs(upper[0], 2 * quarter))
    store_i32x16(target + 352, upper_pairs(upper[1], 2 * quarter))


@device
def _six_bit_half(low, high, row_bytes, count, scales, target):
    """128 inputs: 64 bytes of low nibbles and 32 of upper bits."""
    a, b = load_columns(low, row_bytes, count), load_columns(low + 16, row_bytes, count)
    c, d = load_columns(low + 32, row_bytes, count), load_columns(low + 48, row_bytes, count)
    upper = load_columns(high, row_bytes, count), load_columns(high + 16, row_bytes, count)
    store_low_nibbles(target + 32, a, b)
    store_low_nibbles(target + 448, c, d)
    store_high_nibbles(target + 864, a, b)
    store_high_nibbles(target + 1280, c, d)
    _six_bit_rest(target, scales[0], upper, 0)
    _six_bit_rest(target + 416, shift_right(scales[0], 16), upper, 1)
    _six_bit_rest(target + 832, scales[1], upper, 2)
    _six_bit_rest(target + 1248, shift_right(scales[1], 16), upper, 3)


@device
def columns_q6_k(source, row_bytes, count, n_inputs, target):
    for _ in range(n_inputs // 256):
        scales = load_columns(source + 192, row_bytes, count)
        store_halves(target, shift_right(load_columns(source + 194, row_bytes, count)[3], 16))
        target += 32
        _six_bit_half(source, source + 128, row_bytes, count, scales[:2], target)
        _six_bit_half(source + 64, source + 160, row_bytes, count, scales[2:], target + 1664)
        source, target = source + 210, target + 3328


# Registration ---------------------------------------------------------------------------------------------------------


def by_rows(lane: Any) -> Any:
    """A group's rows one after the other: (source, target, lane, n_inputs) for each."""

    @device
    def group(source, row_bytes, count, n_inputs, target):
        for row in range(count):
            lane(source + row_bytes * row, target, row, n_inputs)

    return group


def register_repack(type_name: str, pack_group: Any) -> None:
    """Register `repack_TYPE`: groups chunk * groups_per_chunk ... of a matrix of `n_rows` rows of `row_bytes`."""
    inputs, header, n_parts, part = PACKED_BLOCKS[type_name]
    block_bytes = header + n_parts * part

    def repack(
        chunk, scratch, source: int, row_bytes: int, n_rows: int, n_inputs: int, target: int, groups_per_chunk: int
    ):
        group_bytes = n_inputs // inputs * block_bytes
        n_groups = (n_rows + GROUP - 1) // GROUP
        for group in range(chunk * groups_per_chunk, min((chunk + 1) * groups_per_chunk, n_groups)):
            packed, row = target + group_bytes * group, group * GROUP
            if row + GROUP > n_rows:
                zero_bytes(packed, group_bytes)
            pack_group(source + row_bytes * row, row_bytes, min(n_rows - row, GROUP), n_inputs, packed)

    kernel(repack, f"repack_{type_name}")


register_repack("F32", by_rows(lane_f32))
register_repack("F32x8", by_rows(lane_f32x8))
register_repack("F16", by_rows(lane_f16))
register_repack("BF16", by_rows(lane_f16))
register_repack("Q8_0", columns_q8_0)
register_repack("Q4_0", columns_q4_0)
register_repack("Q4_1", columns_q4_1)
register_repack("Q5_0", columns_q5_0)
register_repack("Q5_1", columns_q5_1)
register_repack("Q4_K", columns_q4_k)
register_repack("Q5_K", columns_q5_k)
register_repack("Q6_K", columns_q6_k)
