"""Sixteen rows of a file's matrix side by side: 16 bytes of each are loaded at once and transposed.

A lane of a column belongs to a row and holds four bytes of it, as packed weights want them (see weight_types.py). All
is plain shuffles, which every tier has in some form.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types

from engine.kernels.registry import device
from engine.kernels.simd import (
    I16,
    I32,
    I64,
    LANES,
    define,
    high_nibbles,
    i32x16,
    join,
    load_unaligned,
    low_nibbles,
    shift_left,
    shift_right,
    splat_i32,
    splatted_i32,
    store_i32x16,
    store_unaligned,
)

_address = types.int64
_FOUR = ir.VectorType(I32, 4)


def _interleave(b: ir.IRBuilder, x: ir.Value, y: ir.Value, pattern: tuple[int, int, int, int]) -> ir.Value:
    """Within every four lanes, pick from those of x (0..3) and of y (4..7)."""
    lanes = [first + place % 4 + LANES * (place // 4) for first in range(0, LANES, 4) for place in pattern]
    return b.shuffle_vector(x, y, ir.Constant(ir.VectorType(I32, LANES), lanes))


def _present(b: ir.IRBuilder, count: ir.Value) -> ir.Value:
    """Which lanes belong to the first `count` rows."""
    return b.icmp_signed("<", ir.Constant(i32x16.llvm, list(range(LANES))), splatted_i32(b, b.trunc(count, I32)))


def _load_columns(b: ir.IRBuilder, source: ir.Value, row_bytes: ir.Value, count: ir.Value) -> ir.Value:
    rows = []
    for row in range(LANES):
        number = ir.Constant(I64, row)
        place = b.select(b.icmp_signed("<", number, count), number, ir.Constant(I64, 0))
        rows.append(load_unaligned(b, b.add(source, b.mul(row_bytes, place)), _FOUR))
    every_fourth = [join(b, rows[first::4]) for first in range(4)]
    low = [_interleave(b, every_fourth[i], every_fourth[i + 1], (0, 4, 1, 5)) for i in (0, 2)]
    high = [_interleave(b, every_fourth[i], every_fourth[i + 1], (2, 6, 3, 7)) for i in (0, 2)]
    columns = [_interleave(b, x, y, pick) for x, y in (low, high) for pick in ((0, 1, 4, 5), (2, 3, 6, 7))]
    present = _present(b, count)
    result: ir.Value = ir.Constant(ir.ArrayType(i32x16.llvm, 4), None)
    for i, column in enumerate(columns):
        result = b.insert_value(result, b.select(present, column, ir.Constant(i32x16.llvm, [0] * LANES)), i)
    return result


# (source, row_bytes, count) -> four registers: lane r holds the four bytes at source + row_bytes * r + 4 * register,
# or zeros from row `count` on, which is not read
load_columns = define(types.UniTuple(i32x16, 4), (_address, types.int64, types.int64), _load_columns)


def _store_halves(b: ir.IRBuilder, target: ir.Value, v: ir.Value) -> None:
    store_unaligned(b, target, b.trunc(v, ir.VectorType(I16, LANES)))


store_halves = define(types.void, (_address, i32x16), _store_halves)  # the lower 16 bits of each lane


def _present_signs(b: ir.IRBuilder, count: ir.Value) -> ir.Value:
    present = _present(b, count)
    return b.select(present, ir.Constant(i32x16.llvm, [0x80808080] * LANES), ir.Constant(i32x16.llvm, [0] * LANES))


present_signs = define(i32x16, (types.int64,), _present_signs)  # the sign bit of every byte of the first `count` lanes


@device
def store_low_nibbles(target, a, b):
    """The nibbles of a block, from the low ones of 32 bytes of each row."""
    store_i32x16(target, low_nibbles(a[0]) | shift_left(low_nibbles(a[1]), 4))
    store_i32x16(target + 64, low_nibbles(a[2]) | shift_left(low_nibbles(a[3]), 4))
    store_i32x16(target + 128, low_nibbles(b[0]) | shift_left(low_nibbles(b[1]), 4))
    store_i32x16(target + 192, low_nibbles(b[2]) | shift_left(low_nibbles(b[3]), 4))


@device
def store_high_nibbles(target, a, b):
    """The same from the high ones."""
    store_i32x16(target, high_nibbles(a[0]) | shift_left(high_nibbles(a[1]), 4))
    store_i32x16(target + 64, high_nibbles(a[2]) | shift_left(high_nibbles(a[3]), 4))
    store_i32x16(target + 128, high_nibbles(b[0]) | shift_left(high_nibbles(b[1]), 4))
    store_i32x16(target + 192, high_nibbles(b[2]) | shift_left(high_nibbles(b[3]), 4))


@device
def store_split_nibbles(target, q):
    """32 inputs that the file keeps as 16 low nibbles (inputs 0..15) and 16 high ones."""
    store_i32x16(target, low_nibbles(q[0]) | shift_left(low_nibbles(q[1]), 4))
    store_i32x16(target + 64, low_nibbles(q[2]) | shift_left(low_nibbles(q[3]), 4))
    store_i32x16(target + 128, high_nibbles(q[0]) | shift_left(high_nibbles(q[1]), 4))
    store_i32x16(target + 192, high_nibbles(q[2]) | shift_left(high_nibbles(q[3]), 4))


def _spread_bits(b: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    def splat(n: int) -> ir.Constant:
        return ir.Constant(i32x16.llvm, [n] * LANES)

    spread: ir.Value = splat(0)
    for quad in range(8):
        four = b.and_(b.lshr(bits, splat(4 * quad)), splat(15))
        each = b.and_(b.mul(four, splat(1 | 1 << 7 | 1 << 14 | 1 << 21)), splat(0x01010101))
        spread = b.or_(spread, b.shl(each, splat(quad)))
    return spread


spread_bits = define(i32x16, (i32x16,), _spread_bits)  # 32 bits, bit i of input i -> bit j of a byte belongs to quad j


@device
def _bits_at(four, place, quad):
    return shift_left(shift_right(four, place) & splat_i32(0x01010101), quad)


@device
def fifth_bits(a, b, place):
    """Bit `place` of 32 bytes of each row -> bit j of a byte belongs to quad j."""
    low = _bits_at(a[0], place, 0) | _bits_at(a[1], place, 1) | _bits_at(a[2], place, 2) | _bits_at(a[3], place, 3)
    high = _bits_at(b[0], place, 4) | _bits_at(b[1], place, 5) | _bits_at(b[2], place, 6) | _bits_at(b[3], place, 7)
    return low | high


@device
def _pair_at(four, place, quad):
    return shift_left(shift_right(four, place) & splat_i32(0x03030303), 2 * quad)


@device
def upper_pairs(q, place):
    """Bits `place` and the next of 16 bytes of each row -> bits 2j, 2j + 1 of a byte belong to quad j."""
    return _pair_at(q[0], place, 0) | _pair_at(q[1], place, 1) | _pair_at(q[2], place, 2) | _pair_at(q[3], place, 3)
