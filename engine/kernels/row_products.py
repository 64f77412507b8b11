"""Some activation rows through a panel by instructions on registers: each quad is loaded once for all of them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.layout import (
    LINE_BYTES,
    PAIRS,
    PANEL_D_MIN,
    PANEL_MINIMA,
    PANEL_OFFSET,
    PANEL_SCALES,
    SCALED_BLOCKS,
    SCALES,
    SUMS,
)
from engine.kernels.memory import load_i32
from engine.kernels.quads import byte_quads, dot_products
from engine.kernels.registry import device
from engine.kernels.simd import (
    F32,
    HAS_VNNI512,
    I32,
    I64,
    add_dot_pairs,
    define,
    f32x16,
    fused,
    i32x16,
    load_unaligned,
    splat_i32,
    splatted,
    splatted_i32,
    store_unaligned,
)
from engine.kernels.together import sums_type, zero_sums

ROWS_TOGETHER = 4 if HAS_VNNI512 else 1  # as many as leave their sums in registers
_address = types.int64
_ZERO = ir.Constant(i32x16.llvm, [0] * 16)


def row_address(b: ir.IRBuilder, address: ir.Value, stride: ir.Value, row: int) -> ir.Value:
    return b.add(address, b.mul(stride, ir.Constant(I64, row)))


def _make_step(weight: Any, n_rows: int) -> Any:
    """(sums, quads, scales, minimum, offset, line, pairs, x_sums, stride) -> sums with a block added."""
    array, halves = sums_type(n_rows), weight.form == "halves"
    has_offset, own = weight.minima == "offset", weight.minima == "own"

    def body(b: ir.IRBuilder, sums: ir.Value, quads: ir.Value, scales: ir.Value, *rest: ir.Value) -> ir.Value:
        minimum, offset, line, pairs, x_sums, stride = rest
        parts = [b.extract_value(quads, j) for j in range(8)]
        second = load_unaligned(b, b.add(scales, ir.Constant(I64, 64)), f32x16.llvm) if halves else None
        scale = load_unaligned(b, scales, f32x16.llvm)
        offsets = [offset]
        if halves:
            offsets = [b.and_(offset, ir.Constant(i32x16.llvm, [0xFFFF] * 16))]
            offsets.append(b.shl(offset, ir.Constant(i32x16.llvm, [16] * 16)))
        for row in range(n_rows):
            here, total = row_address(b, line, stride, row), b.extract_value(sums, row)
            starts = [_ZERO] * len(offsets)
            if has_offset:
                pair = splatted_i32(b, load_unaligned(b, row_address(b, pairs, stride, row), I32))
                starts = [add_dot_pairs(b, _ZERO, each, pair) for each in offsets]
            if halves:
                dots = [dot_products(b, parts[:4], here, 0, starts[0]), dot_products(b, parts[4:], here, 16, starts[1])]
            else:
                dots = [dot_products(b, parts, here, 0, starts[0])]
            for dot, factor in zip(dots, (scale, second), strict=False):
                total = fused(b, b.sitofp(dot, f32x16.llvm), factor, total)
            if own:
                x_sum = splatted(b, load_unaligned(b, row_address(b, x_sums, stride, row), F32))
                total = fused(b, load_unaligned(b, minimum, f32x16.llvm), x_sum, total)
            sums = b.insert_value(sums, total, row)
        return sums

    arguments = (array, types.UniTuple(i32x16, 8), _address, _address, i32x16, *[_address] * 3, types.int64)
    return define(array, arguments, body)


def _make_less_minima(n_rows: int) -> Any:
    """(sums, panel, pairs, stride) -> sums less the integer minima."""
    array = sums_type(n_rows)

    def body(b: ir.IRBuilder, sums: ir.Value, panel: ir.Value, pairs: ir.Value, stride: ir.Value) -> ir.Value:
        at = b.add(panel, ir.Constant(I64, PANEL_MINIMA))
        minima = [load_unaligned(b, b.add(at, ir.Constant(I64, 64 * i)), i32x16.llvm) for i in range(SCALED_BLOCKS)]
        d_min = load_unaligned(b, b.add(panel, ir.Constant(I64, PANEL_D_MIN)), f32x16.llvm)
        for row in range(n_rows):
            product: ir.Value = _ZERO
            for i, minimum in enumerate(minima):
                pair = load_unaligned(b, b.add(row_address(b, pairs, stride, row), ir.Constant(I64, 4 * i)), I32)
                product = add_dot_pairs(b, product, minimum, splatted_i32(b, pair))
            total = fused(b, b.sitofp(product, f32x16.llvm), d_min, b.extract_value(sums, row))
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


def make_rows(weight: Any, n_rows: int) -> Any:
    """(panel, n, row, stride, block, n_blocks, totals): `n_rows` activation rows through a panel of `n` blocks."""
    step, less_minima, finish = _make_step(weight, n_rows), _make_less_minima(n_rows), make_finish(n_rows)
    super_minima = weight.minima == "super"
    zeros, scale_bytes = zero_sums(n_rows), 128 if weight.form == "halves" else 64

    @device
    def run(panel, n, x, stride, block, n_blocks, totals):
        line, pairs, x_sums = x + LINE_BYTES * block, x + PAIRS * n_blocks + 4 * block, x + SUMS * n_blocks + 4 * block
        offset, sums = splat_i32(load_i32(panel + PANEL_OFFSET)), zeros()
        for i in range(n):
            scales, minimum = panel + PANEL_SCALES + scale_bytes * i, panel + PANEL_MINIMA + 64 * i
            quads, here, at = byte_quads(panel + 512 * i), line + LINE_BYTES * i, 4 * i
            sums = step(sums, quads, scales, minimum, offset, here, pairs + at, x_sums + at, stride)
        if super_minima:
            sums = less_minima(sums, panel, pairs, stride)
        finish(sums, x + SCALES * n_blocks + 4 * (block // SCALED_BLOCKS), stride, totals)

    return run


def by_rows(weight: Any) -> Any:
    """Quantised activation rows, some at a time, by instructions on registers: for tiers without tiles."""
    several, one = make_rows(weight, ROWS_TOGETHER), make_rows(weight, 1)

    @device
    def through_panel(panel, n, scratch, x, x_stride, block, n_blocks, totals, count):
        whole = count // ROWS_TOGETHER * ROWS_TOGETHER
        for row in range(0, whole, ROWS_TOGETHER):
            several(panel, n, x + x_stride * row, x_stride, block, n_blocks, totals + 64 * row)
        for row in range(whole, count):
            one(panel, n, x + x_stride * row, x_stride, block, n_blocks, totals + 64 * row)

    return through_panel
