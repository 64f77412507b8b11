"""Activation rows through a panel of 16-bit weights, on vector registers: for tiers without tiles.

The activations of a panel are widened to int16 once for all groups that they meet. Then one instruction multiplies two
inputs of 16 weight rows with those of one activation row, exactly, and each load of weights serves several rows:

    wide row   8 blocks of 64 bytes: inputs 0 and 2, 4 and 6, ... of a block, then 1 and 3, 5 and 7, ...
"""

from __future__ import annotations

from functools import reduce
from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.layout import (
    BLOCK,
    LINE_BYTES,
    PAIRS,
    PANEL_BYTES,
    PANEL_MINIMA,
    PANEL_SCALES,
    SCALED_BLOCKS,
    SCALES,
    SUMS,
    TILE_BYTES,
    WIDE_ROW_BYTES,
)
from engine.kernels.panels import WORD_BLOCK_BYTES, Rows, nothing
from engine.kernels.registry import device
from engine.kernels.row_sums import make_finish, make_less_minima, minima_product, row_address
from engine.kernels.simd import (
    F32,
    HAS_AVX2,
    HAS_VNNI512,
    I16,
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
from engine.kernels.together import sums_type, zero_sums

# activation rows that share a load of the weights, and from how many on: at most as leave their sums in registers
_SIZES = ((12, 10), (8, 6), (4, 3), (1, 1)) if HAS_VNNI512 else ((2, 2), (1, 1)) if HAS_AVX2 else ((1, 1),)
_CHAINS = 16 if HAS_VNNI512 else 1  # sums that grow beside each other: fewer would wait for their own last addition
_WIDE = TILE_BYTES + PANEL_BYTES  # where the wide rows lie in the scratch
_address = types.int64
_ZERO = ir.Constant(i32x16.llvm, [0] * 16)


def _widen_line(b: ir.IRBuilder, line: ir.Value, target: ir.Value) -> None:
    """The 32 inputs of a line as 16 * high + low."""
    words, lanes = ir.VectorType(I16, BLOCK), ir.VectorType(I32, BLOCK // 2)
    pairs = load_unaligned(b, line, words)
    eight, four = ir.Constant(words, [8] * BLOCK), ir.Constant(ir.VectorType(I16, BLOCK // 2), [4] * (BLOCK // 2))
    for place, part in ((0, b.ashr(b.shl(pairs, eight), eight)), (32, b.ashr(pairs, eight))):
        high, low = (
            b.shuffle_vector(part, part, ir.Constant(lanes, list(range(first, first + BLOCK // 2))))
            for first in (0, BLOCK // 2)
        )
        store_unaligned(b, b.add(target, ir.Constant(I64, place)), b.add(b.shl(high, four), low))


_widen = define(types.void, (_address, _address), _widen_line)


@device
def widen_rows(scratch, x, x_stride, block, n, count):
    """The `n` blocks from `block` on of `count` activation rows, widened."""
    for row in range(count):
        line, target = x + x_stride * row + LINE_BYTES * block, scratch + _WIDE + WIDE_ROW_BYTES * row
        for i in range(n):
            _widen(line + LINE_BYTES * i, target + 2 * BLOCK * i)


def _here_first(b: ir.IRBuilder, vectors: list[ir.Value]) -> list[ir.Value]:
    """The same vectors, none of which is used before all are computed: else LLVM makes one long chain for each row."""
    if not HAS_VNNI512:
        return vectors
    n, vector = len(vectors), vectors[0].type
    results = ir.LiteralStructType([vector] * n)
    constraints = ",".join(["=v"] * n + [str(i) for i in range(n)])
    passed = b.asm(ir.FunctionType(results, [vector] * n), "", constraints, vectors, side_effect=False)
    return [b.extract_value(passed, i) for i in range(n)]


def _make_step(weight: Any, n_rows: int) -> Any:
    """(sums, words, scales, minimum, wide, x_sums, stride) -> sums with a block added."""
    array, halves, own = sums_type(n_rows), weight.form == "halves", weight.minima == "own"
    n_registers, n_parts = WORD_BLOCK_BYTES // 64, max(_CHAINS // n_rows, 1)
    n_dots = n_rows * n_parts
    ends = {n_registers // 2 - 1: 0, n_registers - 1: 64} if halves else {n_registers - 1: 0}

    def body(b: ir.IRBuilder, given: ir.Value, words: ir.Value, scales: ir.Value, *rest: ir.Value) -> ir.Value:
        minimum, wide, x_sums, stride = rest
        sums = [b.extract_value(given, row) for row in range(n_rows)]
        dots: list[ir.Value] = [_ZERO] * n_dots
        for j in range(n_registers):
            weights = load_unaligned(b, b.add(words, ir.Constant(I64, 64 * j)), i32x16.llvm)
            place, first = 4 * (j // 2) + BLOCK * (j % 2), j % n_parts * n_rows
            for row in range(n_rows):
                here = b.add(wide, ir.Constant(I64, WIDE_ROW_BYTES * row + place))
                inputs = splatted_i32(b, load_unaligned(b, here, I32))
                dots[first + row] = add_dot_pairs(b, dots[first + row], weights, inputs)
            dots = _here_first(b, dots)
            if j in ends:
                factor = load_unaligned(b, b.add(scales, ir.Constant(I64, ends[j])), f32x16.llvm)
                for row in range(n_rows):
                    dot = reduce(b.add, dots[row::n_rows])
                    sums[row] = fused(b, b.sitofp(dot, f32x16.llvm), factor, sums[row])
                dots = [_ZERO] * n_dots
        for row in range(n_rows):
            if own:
                x_sum = splatted(b, load_unaligned(b, row_address(b, x_sums, stride, row), F32))
                sums[row] = fused(b, load_unaligned(b, minimum, f32x16.llvm), x_sum, sums[row])
            given = b.insert_value(given, sums[row], row)
        return given

    return define(array, (array, *[_address] * 5, types.int64), body)


def _make_rows(weight: Any, n_rows: int) -> Any:
    """(panel, n, wide, x, stride, block, n_blocks, totals): `n_rows` activation rows through a panel of `n` blocks."""
    step, less_minima, finish = (
        _make_step(weight, n_rows),
        make_less_minima(n_rows, minima_product),
        make_finish(n_rows),
    )
    super_minima = weight.minima == "super"
    zeros, scale_bytes = zero_sums(n_rows), 128 if weight.form == "halves" else 64

    @device
    def run(panel, n, wide, x, stride, block, n_blocks, totals):
        pairs, x_sums, sums = x + PAIRS * n_blocks + 4 * block, x + SUMS * n_blocks + 4 * block, zeros()
        for i in range(n):
            scales, minimum = panel + PANEL_SCALES + scale_bytes * i, panel + PANEL_MINIMA + 64 * i
            words, here = panel + WORD_BLOCK_BYTES * i, wide + 2 * BLOCK * i
            sums = step(sums, words, scales, minimum, here, x_sums + 4 * i, stride)
        if super_minima:
            sums = less_minima(sums, panel, pairs, stride)
        finish(sums, x + SCALES * n_blocks + 4 * (block // SCALED_BLOCKS), stride, totals)

    return run


def _make_some_rows(weight: Any, sizes: tuple[tuple[int, int], ...]) -> Any:
    """(count, panel, ...) -> how many of `count` rows it has taken; see _make_rows."""
    (n_rows, enough), *fewer = sizes
    take = _make_rows(weight, n_rows)
    take_fewer = _make_some_rows(weight, tuple(fewer)) if fewer else nothing

    @device
    def run(count, panel, n, wide, x, stride, block, n_blocks, totals):
        if count < enough:
            return take_fewer(count, panel, n, wide, x, stride, block, n_blocks, totals)
        take(panel, n, wide, x, stride, block, n_blocks, totals)
        return n_rows

    @device
    def run_last(count, panel, n, wide, x, stride, block, n_blocks, totals):
        take(panel, n, wide, x, stride, block, n_blocks, totals)
        return n_rows

    return run if fewer else run_last


def by_words(weight: Any) -> Rows:
    """Activation rows, some at a time. Reads up to two rows beyond the last, and drops the results."""
    some_rows = _make_some_rows(weight, _SIZES)

    @device
    def through_panel(panel, n, scratch, x, x_stride, block, n_blocks, totals, count):
        row = 0
        while row < count:
            wide, here = scratch + _WIDE + WIDE_ROW_BYTES * row, x + x_stride * row
            row += some_rows(count - row, panel, n, wide, here, x_stride, block, n_blocks, totals + 64 * row)

    return Rows(nothing, 1, widen_rows, through_panel, nothing)
