"""Quads of quantised weights: how they are read from packed blocks, and their integer products with activations.

A quad is a register of 16 lanes (rows) x 4 bytes (four consecutive inputs); 32 inputs are 8 quads of unsigned bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.registry import device
from engine.kernels.simd import (
    HAS_VNNI512,
    I32,
    I64,
    add_dot_u8i8,
    add_dot_u8i12,
    define,
    high_nibbles,
    i32x16,
    load_i32x16,
    load_unaligned,
    low_nibbles,
    shift_left,
    shift_right,
    splat_i32,
    splatted_i32,
)

_address = types.int64


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


# Integer products -----------------------------------------------------------------------------------------------------


def _activations(b: ir.IRBuilder, line: ir.Value, offset: int) -> ir.Value:
    return splatted_i32(b, load_unaligned(b, b.add(line, ir.Constant(I64, offset)), I32))


def dot_products(b: ir.IRBuilder, quads: Sequence[ir.Value], line: ir.Value, place: int, start: ir.Value) -> ir.Value:
    """start + the dot products of `quads` with the activations of `line` from input `place` on."""
    offsets = [place + 4 * j for j in range(len(quads))]
    if HAS_VNNI512:
        high: ir.Value = ir.Constant(i32x16.llvm, [0] * 16)
        for quad, offset in zip(quads, offsets, strict=True):
            high = add_dot_u8i8(b, high, quad, _activations(b, line, offset))
            start = add_dot_u8i8(b, start, quad, _activations(b, line, 32 + offset))
        return b.add(b.shl(high, ir.Constant(i32x16.llvm, [4] * 16)), start)
    for quad, offset in zip(quads, offsets, strict=True):
        start = add_dot_u8i12(b, start, quad, _activations(b, line, offset), _activations(b, line, 32 + offset))
    return start


def _dot_block(b: ir.IRBuilder, quads: ir.Value, line: ir.Value, start: ir.Value) -> ir.Value:
    parts = [b.extract_value(quads, j) for j in range(8)]
    zero = ir.Constant(i32x16.llvm, [0] * 16)
    return b.add(dot_products(b, parts[:4], line, 0, start), dot_products(b, parts[4:], line, 16, zero))


def _make_dot_half(half: int) -> Any:
    def body(b: ir.IRBuilder, quads: ir.Value, line: ir.Value, start: ir.Value) -> ir.Value:
        return dot_products(b, [b.extract_value(quads, 4 * half + j) for j in range(4)], line, 16 * half, start)

    return define(i32x16, (types.UniTuple(i32x16, 8), _address, i32x16), body)


# (eight quads, activation line, start) -> start + the exact dot products of the block, or of a half of it
dot_block = define(i32x16, (types.UniTuple(i32x16, 8), _address, i32x16), _dot_block)
dot_first_half, dot_second_half = _make_dot_half(0), _make_dot_half(1)
