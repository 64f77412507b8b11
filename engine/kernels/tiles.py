"""Activation rows through a panel on AMX tiles, as exact integers like everywhere else.

A tile product takes one block of 32 inputs, since each block has its own scales; its 256 sums are then scaled and added
to 16 registers, one for each activation row, in the order in which a single row adds them. The products of two blocks
are always under way before the scaling of an earlier one. Intel's manual describes the instructions (volume 2, TDPBUSD
and its kin; volume 1, chapter 18 the tile configuration).

    double   four-bit weights: one product of (high, low) activations with (16 q, q), 64 inputs deep
    single   wider weights: two products, of the high and of the low parts, joined as 16 * high + low
    halves   weights with a scale for every 16 inputs: the same twice

There are tiles of 16 and of 8 activation rows; the latter, for what is left, take half the time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.layout import (
    LINE_BYTES,
    PAIRS,
    PANEL_MINIMA,
    PANEL_SCALES,
    SCALED_BLOCKS,
    SCALES,
    SUMS,
)
from engine.kernels.memory import store_u8, store_u16, zero_bytes
from engine.kernels.registry import device
from engine.kernels.row_products import make_finish, make_zeros, row_address
from engine.kernels.simd import (
    F32,
    I8,
    I64,
    call_llvm,
    define,
    f32x16,
    fused,
    i32x16,
    load_f32x16,
    load_unaligned,
    pointer,
    splatted,
    zero_f32x16,
)

_VOID, _address = ir.VoidType(), types.int64
_RESULTS = 1024  # bytes into the scratch: the products of four steps
_STEPS_KEPT = 4
DEPTHS = {"double": 64, "single": 32, "halves": 16}  # bytes of an activation row that a product takes


def _with_tiles(name: str, *tiles: int) -> Any:
    """An instruction on fixed tile registers."""

    def body(b: ir.IRBuilder) -> None:
        call_llvm(b, name, _VOID, [ir.Constant(I8, tile) for tile in tiles])

    return define(types.void, (), body)


def _with_memory(name: str, tile: int) -> Any:
    """A load or store of a tile register: address and bytes from row to row."""

    def body(b: ir.IRBuilder, address: ir.Value, stride: ir.Value) -> None:
        call_llvm(b, name, _VOID, [ir.Constant(I8, tile), pointer(b, address, I8), stride])

    return define(types.void, (_address, types.int64), body)


def _configure(b: ir.IRBuilder, address: ir.Value) -> None:
    call_llvm(b, "llvm.x86.ldtilecfg", _VOID, [pointer(b, address, I8)])


_load_configuration = define(types.void, (_address,), _configure)
_release = _with_tiles("llvm.x86.tilerelease")

_WEIGHTS = 6
_FULL, _HALF = (16, 0, 1, 4), (8, 2, 3, 5)  # activation rows, tiles of the two results and of the activations


def make_configure(form: str) -> Any:
    """(scratch): set the shapes of all tiles."""
    depth = DEPTHS[form]
    results = [(tile, 64, rows) for rows, *tiles, _ in (_FULL, _HALF) for tile in tiles]
    inputs = [(tile, depth, rows) for rows, *_, tile in (_FULL, _HALF)]
    shapes = (*results, *inputs, (_WEIGHTS, 64, depth // 4))  # tile, bytes of a row, rows

    @device
    def configure(scratch):
        zero_bytes(scratch, 64)
        store_u8(scratch, 1)  # palette 1
        for tile, row_bytes, rows in shapes:
            store_u16(scratch + 16 + 2 * tile, row_bytes)
            store_u8(scratch + 48 + tile, rows)
        _load_configuration(scratch)

    return configure


@device
def release(scratch):
    _release()


def _make_multiply(form: str, is_signed: bool, shape: tuple[int, int, int, int]) -> Any:
    """(line, stride, panel, step, results): the products of one step, stored."""
    _, result, second, rows = shape
    dot = "llvm.x86.tdpbssd" if is_signed else "llvm.x86.tdpbsud"
    load_weights, load_rows = (_with_memory("llvm.x86.tileloadd64", tile) for tile in (_WEIGHTS, rows))
    zero, zero_second = (_with_tiles("llvm.x86.tilezero", tile) for tile in (result, second))
    store, store_second = (_with_memory("llvm.x86.tilestored64", tile) for tile in (result, second))
    multiply, multiply_second = (_with_tiles(dot, tile, rows, _WEIGHTS) for tile in (result, second))

    @device
    def double(line, stride, panel, step, results):
        target = results + 1024 * (step % _STEPS_KEPT)
        zero(), load_rows(line + LINE_BYTES * step, stride), load_weights(panel + 1024 * step, 64)
        multiply(), store(target, 64)

    @device
    def wide(line, stride, weights, target):
        load_weights(weights, 64)
        zero(), load_rows(line, stride), multiply(), store(target, 64)
        zero_second(), load_rows(line + 32, stride), multiply_second(), store_second(target + 1024, 64)

    @device
    def single(line, stride, panel, step, results):
        wide(line + LINE_BYTES * step, stride, panel + 512 * step, results + 2048 * (step % _STEPS_KEPT))

    @device
    def halves(line, stride, panel, step, results):
        x = line + LINE_BYTES * (step // 2) + 16 * (step % 2)
        wide(x, stride, panel + 256 * step, results + 2048 * (step % _STEPS_KEPT))

    return {"double": double, "single": single, "halves": halves}[form]


def _make_scale(n_rows: int, joined: bool, own: bool) -> Any:
    """(sums, results, scale, minimum, x_sum, stride) -> sums, as for one row; x_sum is that of the first row."""
    array = types.UniTuple(f32x16, n_rows)

    def body(b: ir.IRBuilder, sums: ir.Value, results: ir.Value, *rest: ir.Value) -> ir.Value:
        scale, minimum, x_sum, stride = rest
        for row in range(n_rows):
            dot = load_unaligned(b, b.add(results, ir.Constant(I64, 64 * row)), i32x16.llvm)
            if joined:  # the first result tile is of the high parts, the next one of the low parts
                low = load_unaligned(b, b.add(results, ir.Constant(I64, 1024 + 64 * row)), i32x16.llvm)
                dot = b.add(b.shl(dot, ir.Constant(i32x16.llvm, [4] * 16)), low)
            total = fused(b, b.sitofp(dot, f32x16.llvm), scale, b.extract_value(sums, row))
            if own:
                total = fused(
                    b, minimum, splatted(b, load_unaligned(b, row_address(b, x_sum, stride, row), F32)), total
                )
            sums = b.insert_value(sums, total, row)
        return sums

    return define(array, (array, _address, f32x16, f32x16, _address, types.int64), body)


def _make_rows(weight: Any, shape: tuple[int, int, int, int]) -> Any:
    """A tile of activation rows through a panel."""
    n_rows = shape[0]
    halves, own = weight.form == "halves", weight.minima == "own"
    multiply = _make_multiply(weight.form, weight.minima == "offset", shape)
    scale, finish = _make_scale(n_rows, weight.form != "double", own), make_finish(n_rows, weight.minima == "super")
    zeros, result_bytes = make_zeros(n_rows), 1024 if weight.form == "double" else 2048

    @device
    def run(panel, n, results, line, stride, pairs, x_sums, x_scale, totals):
        n_steps, sums = 2 * n if halves else n, zeros()
        for step in range(min(2, n_steps)):
            multiply(line, stride, panel, step, results)
        for step in range(n_steps):
            if step + 2 < n_steps:
                multiply(line, stride, panel, step + 2, results)
            here, scales = results + result_bytes * (step % _STEPS_KEPT), load_f32x16(panel + PANEL_SCALES + 64 * step)
            minimum = load_f32x16(panel + PANEL_MINIMA + 64 * step) if own else zero_f32x16()
            sums = scale(sums, here, scales, minimum, x_sums + 4 * step, stride)
        finish(sums, panel, pairs, x_scale, stride, totals)

    return run


def tiles(weight: Any) -> Any:
    """Activation rows through a panel, 16 at a time. Reads up to 15 rows beyond the last, and drops the results."""
    sixteen, eight = _make_rows(weight, _FULL), _make_rows(weight, _HALF)

    @device
    def through_panel(panel, n, scratch, x, x_stride, block, n_blocks, totals, count):
        results = scratch + _RESULTS
        for row in range(0, count, 16):
            here, target = x + x_stride * row, totals + 64 * row
            pairs, sums = here + PAIRS * n_blocks + 4 * block, here + SUMS * n_blocks + 4 * block
            x_scale, line = here + SCALES * n_blocks + 4 * (block // SCALED_BLOCKS), here + LINE_BYTES * block
            if count - row > 8:
                sixteen(panel, n, results, line, x_stride, pairs, sums, x_scale, target)
            else:
                eight(panel, n, results, line, x_stride, pairs, sums, x_scale, target)

    return through_panel
