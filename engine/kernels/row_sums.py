"""What ends the pass of some activation rows through a panel: integer minima, the activation scale, the totals."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.layout import PANEL_D_MIN, PANEL_MINIMA, SCALED_BLOCKS
from engine.kernels.simd import (
    F32,
    I32,
    I64,
    add_dot_pairs,
    define,
    f32x16,
    fused,
    i32x16,
    load_unaligned,
    splatted,
    splatted_i32,
    store_unaligned,
)
from engine.kernels.together import sums_type

_address = types.int64


def row_address(b: ir.IRBuilder, address: ir.Value, stride: ir.Value, row: int) -> ir.Value:
    return b.add(address, b.mul(stride, ir.Constant(I64, row)))


def minima_product(b: ir.IRBuilder, minima: ir.Value, pairs: ir.Value) -> ir.Value:
    """The exact product of a panel's integer minima with the half sums of one activation row."""
    product: ir.Value = ir.Constant(i32x16.llvm, [0] * 16)
    for i in range(SCALED_BLOCKS):
        minimum = load_unaligned(b, b.add(minima, ir.Constant(I64, 64 * i)), i32x16.llvm)
        pair = load_unaligned(b, b.add(pairs, ir.Constant(I64, 4 * i)), I32)
        product = add_dot_pairs(b, product, minimum, splatted_i32(b, pair))
    return product


def kept_product(b: ir.IRBuilder, _minima: ir.Value, place: ir.Value) -> ir.Value:
    """A minima_product that has been stored."""
    return load_unaligned(b, place, i32x16.llvm)


def make_less_minima(n_rows: int, product: Any) -> Any:
    """(sums, panel, address, stride) -> sums less the integer minima.

    product: minima_product, and each row's half sums are at the address; or kept_product, and each row's product is.
    """
    array = sums_type(n_rows)

    def body(b: ir.IRBuilder, sums: ir.Value, panel: ir.Value, address: ir.Value, stride: ir.Value) -> ir.Value:
        minima = b.add(panel, ir.Constant(I64, PANEL_MINIMA))
        d_min = load_unaligned(b, b.add(panel, ir.Constant(I64, PANEL_D_MIN)), f32x16.llvm)
        for row in range(n_rows):
            integers = product(b, minima, row_address(b, address, stride, row))
            total = fused(b, b.sitofp(integers, f32x16.llvm), d_min, b.extract_value(sums, row))
            sums = b.insert_value(sums, total, row)
        return sums

    return define(array, (array, _address, _address, types.int64), body)


def make_finish(n_rows: int) -> Any:
    """(sums, x_scale, stride, totals): multiply by the activation scale and add to the totals."""

    def body(b: ir.IRBuilder, sums: ir.Value, x_scale: ir.Value, stride: ir.Value, totals: ir.Value) -> None:
        for row in range(n_rows):
            factor = splatted(b, load_unaligned(b, row_address(b, x_scale, stride, row), F32))
            target = b.add(totals, ir.Constant(I64, 64 * row))
            total = fused(b, b.extract_value(sums, row), factor, load_unaligned(b, target, f32x16.llvm))
            store_unaligned(b, target, total)

    return define(types.void, (sums_type(n_rows), _address, types.int64, _address), body)
