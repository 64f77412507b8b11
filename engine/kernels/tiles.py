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

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

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
from engine.kernels.panels import Rows, as_they_are
from engine.kernels.registry import device
from engine.kernels.row_sums import kept_product, make_finish, make_less_minima, minima_product, row_address
from engine.kernels.simd import (
    F32,
    I8,
    I64,
    call_llvm,
    define,
    f32x16,
    fused,
    i32x16,
    load_unaligned,
    pointer,
    splatted,
    store_unaligned,
)
from engine.kernels.together import sums_type, zero_sums

_VOID, _address = ir.VoidType(), types.int64
_RESULTS = 1024  # bytes into the scratch: the products of two steps, then the products of minima
_STEPS_KEPT = 2
_MANY = 8  # steps written out one after the other
_SHARED_FROM = 16
_MINIMA_RESULTS = 4096
DEPTHS = {"double": 64, "single": 32, "halves": 16}  # bytes of an activation row that a product takes


def _tile(b: ir.IRBuilder, name: str, *tiles: int) -> None:
    """An instruction on tile registers."""
    call_llvm(b, f"llvm.x86.{name}", _VOID, [ir.Constant(I8, tile) for tile in tiles])


def _memory(b: ir.IRBuilder, name: str, tile: int, address: ir.Value, stride: ir.Value) -> None:
    """A load or store of a tile register; `stride`: bytes from row to row."""
    call_llvm(b, f"llvm.x86.{name}", _VOID, [ir.Constant(I8, tile), pointer(b, address, I8), stride])


def _plus(b: ir.IRBuilder, address: ir.Value, n_bytes: int) -> ir.Value:
    return b.add(address, ir.Constant(I64, n_bytes))


def _configure(b: ir.IRBuilder, address: ir.Value) -> None:
    call_llvm(b, "llvm.x86.ldtilecfg", _VOID, [pointer(b, address, I8)])


_load_configuration = define(types.void, (_address,), _configure)
_release = define(types.void, (), lambda b: _tile(b, "tilerelease"))


class Shape(NamedTuple):
    """Activation rows taken together, and the tile registers for their products and for the rows themselves."""

    rows: int
    results: tuple[int, int]
    inputs: int


_WEIGHTS = 6
_FULL, _HALF = Shape(16, (0, 1), 4), Shape(8, (2, 3), 5)
Product = tuple[int, int]  # the tile register that holds it, and its place among the results


def _make_configure(form: str) -> Any:
    """(scratch): set the shapes of all tiles."""
    depth = DEPTHS[form]
    results = [(tile, 64, shape.rows) for shape in (_FULL, _HALF) for tile in shape.results]
    inputs = [(shape.inputs, depth, shape.rows) for shape in (_FULL, _HALF)]
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
def _release_all(scratch):
    _release()


def _steps_of_block(form: str) -> int:
    return 2 if form == "halves" else 1


def _products(form: str, step: int) -> tuple[int, int, list[int]]:
    """Of a step: where its weights lie and how many bytes they are, and where each product's activations begin."""
    if form == "double":
        return 1024 * step, 1024, [LINE_BYTES * step]
    if form == "single":
        return 512 * step, 512, [LINE_BYTES * step, LINE_BYTES * step + 32]
    line = LINE_BYTES * (step // 2) + 16 * (step % 2)
    return 256 * step, 256, [line, line + 32]


def _make_steps(weight: Any, shape: Shape, n_steps: int) -> Any:
    """(sums, line, stride, quads, scales, minima, x_sums, results, kept) -> sums with `n_steps` steps added to them.

    `line` and `x_sums` are the first row's. A product is stored while the next one is under way, and a step is scaled
    two steps later: tile products, tile stores and arithmetic take about 16 cycles each, and so they overlap. Of types
    with integer minima, `x_sums` are the pairs of some rows, whose products with all minima of the panel are `kept`.
    """
    form, own, array = weight.form, weight.minima == "own", sums_type(shape.rows)
    n_kept = shape.rows // _steps_of_block(form) if weight.minima == "super" and n_steps == _MANY else 0
    dot_name = "tdpbssd" if weight.minima == "offset" else "tdpbsud"
    parts = 1 if form == "double" else 2

    def slot(step: int, part: int) -> int:
        return 1024 * (parts * (step % _STEPS_KEPT) + part)

    def issue(b: ir.IRBuilder, step: int, line: ir.Value, stride: ir.Value, quads: ir.Value) -> Iterator[Product]:
        place, _, rows = _products(form, step)
        _memory(b, "tileloadd64", _WEIGHTS, _plus(b, quads, place), ir.Constant(I64, 64))
        for part, row in enumerate(rows):
            result = shape.results[(step * parts + part) % 2]
            _tile(b, "tilezero", result)
            _memory(b, "tileloadd64", shape.inputs, _plus(b, line, row), stride)
            _tile(b, dot_name, result, shape.inputs, _WEIGHTS)
            yield result, slot(step, part)

    def store(b: ir.IRBuilder, product: Product, results: ir.Value) -> None:
        result, place = product
        _memory(b, "tilestored64", result, _plus(b, results, place), ir.Constant(I64, 64))

    def scale(b: ir.IRBuilder, step: int, sums: list[ir.Value], operands: Sequence[ir.Value]) -> list[ir.Value]:
        scales, minima, x_sums, stride, results = operands
        factor = load_unaligned(b, _plus(b, scales, 64 * step), f32x16.llvm)
        minimum = load_unaligned(b, _plus(b, minima, 64 * step), f32x16.llvm) if own else None
        for row in range(shape.rows):
            dot = load_unaligned(b, _plus(b, results, slot(step, 0) + 64 * row), i32x16.llvm)
            if parts == 2:  # the first product is of the high parts, the second of the low parts
                low = load_unaligned(b, _plus(b, results, slot(step, 1) + 64 * row), i32x16.llvm)
                dot = b.add(b.shl(dot, ir.Constant(i32x16.llvm, [4] * 16)), low)
            sums[row] = fused(b, b.sitofp(dot, f32x16.llvm), factor, sums[row])
            if own:
                x_sum = load_unaligned(b, _plus(b, row_address(b, x_sums, stride, row), 4 * step), F32)
                sums[row] = fused(b, minimum, splatted(b, x_sum), sums[row])
        return sums

    def keep_minima(b: ir.IRBuilder, row: int, minima: ir.Value, pairs: ir.Value, kept: ir.Value) -> None:
        store_unaligned(b, _plus(b, kept, 64 * row), minima_product(b, minima, pairs))

    def body(b: ir.IRBuilder, given: ir.Value, line: ir.Value, stride: ir.Value, *rest: ir.Value) -> ir.Value:
        quads, scales, minima, x_sums, results, kept = rest
        sums = [b.extract_value(given, row) for row in range(shape.rows)]
        operands = scales, minima, x_sums, stride, results
        waiting: Product | None = None
        for step in range(n_steps + 2):
            products = issue(b, step, line, stride, quads) if step < n_steps else iter([None])
            for part, product in enumerate(products):
                if waiting:
                    store(b, waiting, results)
                if part == 0 and step >= 2:  # before the next product takes its place
                    sums = scale(b, step - 2, sums, operands)
                waiting = product
            for row in range(n_kept * step // n_steps, min(n_kept * (step + 1) // n_steps, n_kept)):
                keep_minima(b, row, minima, row_address(b, x_sums, stride, row), kept)
        for row, total in enumerate(sums):
            given = b.insert_value(given, total, row)
        return given

    arguments = (array, _address, types.int64, *[_address] * 6)
    return define(array, arguments, body)


def _make_rows(weight: Any, shape: Shape) -> Any:
    """A tile of activation rows through a panel: eight steps at once where they are all there."""
    eight, one = _make_steps(weight, shape, _MANY), _make_steps(weight, shape, 1)
    finish, zeros, super_minima = make_finish(shape.rows), zero_sums(shape.rows), weight.minima == "super"
    less_minima, steps_of_block = make_less_minima(shape.rows, kept_product), _steps_of_block(weight.form)
    quad_bytes, n_rows = _products(weight.form, 1)[1], shape.rows

    @device
    def run(panel, n, results, line, stride, pairs, x_sums, x_scale, totals):
        sums, kept = zeros(), results + _MINIMA_RESULTS
        step, n_steps = 0, steps_of_block * n
        while step + _MANY <= n_steps:
            here, quads = line + LINE_BYTES * (step // steps_of_block), panel + quad_bytes * step
            scales, minima, row = panel + PANEL_SCALES + 64 * step, panel + PANEL_MINIMA, step * n_rows // n_steps
            if super_minima:  # those of a part of the rows
                first = pairs + stride * row
                sums = eight(sums, here, stride, quads, scales, minima, first, results, kept + 64 * row)
            else:
                sums = eight(sums, here, stride, quads, scales, minima + 64 * step, x_sums + 4 * step, results, kept)
            step += _MANY
        while step < n_steps:
            here = line + LINE_BYTES * (step // steps_of_block) + 16 * (step % steps_of_block)
            quads, scales = panel + quad_bytes * step, panel + PANEL_SCALES + 64 * step
            minima = panel + PANEL_MINIMA + 64 * step
            sums = one(sums, here, stride, quads, scales, minima, x_sums + 4 * step, results, kept)
            step += 1
        if super_minima:
            sums = less_minima(sums, panel, kept, 64)
        finish(sums, x_scale, stride, totals)

    return run


def tiles(weight: Any) -> Rows:
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

    return Rows(_make_configure(weight.form), _SHARED_FROM, as_they_are, through_panel, _release_all)
