"""Matrix products of packed weights with rows of activations, one kernel for each weight type.

Work is cut into (rows of activations) x (row chunks of the weights). For a dense matrix the activation rows come in
tiles; for experts each work item names an expert and the rows that chose it. A single row runs straight from the packed
weights at the speed of memory; for several rows a group is unpacked once and stays in the first-level cache. Both do
the same arithmetic in the same order, so a row's result never depends on what else is in the batch.
"""

from __future__ import annotations

from typing import Any

from engine.kernels import blocks
from engine.kernels.layout import HALF_SUMS, ITEM_BYTES, LINE_BYTES, SCALES, SUMS, TILE_BYTES
from engine.kernels.memory import load_f32, load_i64
from engine.kernels.registry import device, kernel
from engine.kernels.simd import (
    HAS_AMX,
    fma,
    load_f32x16,
    load_i32x16,
    shift_right,
    splat_f32,
    splat_i32,
    store_f32x16,
    to_f32,
    zero_f32x16,
)
from engine.kernels.tiles import double_product, halves_product, single_product, tiled

UNPACK_FROM = 2  # rows for which unpacking a group pays
TILES_FROM = 3  # rows for which a product of 16 does

TILE_FORMS = {"double": (double_product, 64), "single": (single_product, 32), "halves": (halves_product, 16)}

# Unpacked groups with quantised activations --------------------------------------------------------------------------


def make_row_product(halves: bool) -> Any:
    """(quads, scales, minima, activation row, n_inputs, start) -> 16 sums, in the order of the packed dot product."""

    @device
    def product(quads, scales, minima, x, n_inputs, total):
        n_blocks = n_inputs // 32
        x_scales, sums = x + SCALES * n_blocks, x + (HALF_SUMS if halves else SUMS) * n_blocks
        for _ in range(n_blocks):
            q = blocks.byte_quads(quads)
            s, m = load_f32x16(scales), load_f32x16(minima)
            if halves:
                total = blocks.scaled(total, blocks.dot_half(q[0], q[1], q[2], q[3], x), s, x_scales, m, sums)
                s, m = load_f32x16(scales + 64), load_f32x16(minima + 64)
                second = blocks.dot_half(q[4], q[5], q[6], q[7], x + 16)
                total = blocks.scaled(total, second, s, x_scales, m, sums + 4)
                scales, minima, sums = scales + 128, minima + 128, sums + 8
            else:
                total = blocks.scaled(total, blocks.dot_quads(q, x), s, x_scales, m, sums)
                scales, minima, sums = scales + 64, minima + 64, sums + 4
            quads, x, x_scales = quads + 512, x + LINE_BYTES, x_scales + 4
        return total

    return product


def make_float_product(halves: bool, block_bytes: int, place: int) -> Any:
    """The same with float32 activations: each weight is expanded to the exact value that the file means.

    A block's quads lie `block_bytes` apart, `place` bytes in.
    """

    @device
    def product(quads, scales, minima, x, n_inputs, total):
        for i in range(n_inputs):
            quad = quads + block_bytes * (i // 32) + place + 64 * (i % 32 // 4)
            q = to_f32(shift_right(load_i32x16(quad), 8 * (i % 4)) & splat_i32(0xFF))
            own = 64 * (i // (16 if halves else 32))
            weight = load_f32x16(scales + own) * q - load_f32x16(minima + own)
            total = fma(weight, splat_f32(load_f32(x + 4 * i)), total)
        return total

    return product


# The kernels ---------------------------------------------------------------------------------------------------------


@device
def row_range(chunk, row_chunks, extent, unit, items):
    """First activation row and number of rows of a chunk, and its expert (-1: a dense matrix)."""
    part = chunk // row_chunks
    if items == 0:
        first = part * unit
        return first, min(unit, load_i64(extent) - first), -1
    item = items + ITEM_BYTES * part
    return load_i64(item + 8), load_i64(item + 16), load_i64(item)


@device
def group_start(bias, group):
    return load_f32x16(bias + 64 * group) if bias != 0 else zero_f32x16()


def direct(dot: Any) -> Any:
    """Rows of one group, each straight from the packed weights."""

    @device
    def run(w, start, n_inputs, scratch, x, x_stride, out, out_stride, first, count):
        for row in range(first, first + count):
            store_f32x16(out + out_stride * row, dot(w, x + x_stride * row, n_inputs, start))

    return run


def unpacking(unpack: Any, product: Any) -> Any:
    """Rows of one group, after unpacking it into the worker's scratch."""

    @device
    def run(w, start, n_inputs, scratch, x, x_stride, out, out_stride, first, count):
        quads = scratch + TILE_BYTES
        scales = quads + 32 * n_inputs
        minima = scales + 4 * n_inputs
        unpack(w, n_inputs, quads, scales, minima)
        for row in range(first, first + count):
            total = product(quads, scales, minima, x + x_stride * row, n_inputs, start)
            store_f32x16(out + out_stride * row, total)

    return run


def by_row_count(few: Any, many: Any, many_from: int) -> Any:
    @device
    def run(w, start, n_inputs, scratch, x, x_stride, out, out_stride, first, count):
        if count < many_from:
            few(w, start, n_inputs, scratch, x, x_stride, out, out_stride, first, count)
        else:
            many(w, start, n_inputs, scratch, x, x_stride, out, out_stride, first, count)

    return run


def register_matmul(name: str, run_group: Any) -> None:
    """Register the kernel `name`: out[row] = W x[row] + bias for the activation rows and weight rows of a chunk.

    `weights` is the packed matrix, or with `items` the table of expert addresses, each with the matrix at
    `matrix_offset`. `n_inputs` is a multiple of 4 for floating-point weights, else of the type's block. Rows of `out`
    hold a multiple of 16 values. At most `rows_at_once` rows are taken through all weights before the next, so that
    they stay in the cache.
    """

    def matmul(
        chunk,
        scratch,
        weights: int,
        matrix_offset: int,
        group_bytes: int,
        n_groups: int,
        groups_per_chunk: int,
        row_chunks: int,
        n_inputs: int,
        x: int,
        x_stride: int,
        rows_at_once: int,
        out: int,
        out_stride: int,
        bias: int,
        extent: int,
        unit: int,
        items: int,
    ):
        first, count, expert = row_range(chunk, row_chunks, extent, unit, items)
        base = weights if expert < 0 else load_i64(weights + 8 * expert) + matrix_offset
        first_group = chunk % row_chunks * groups_per_chunk
        last = first + count
        while first < last:
            n = min(rows_at_once, last - first)
            for group in range(first_group, min(first_group + groups_per_chunk, n_groups)):
                start = group_start(bias, group)
                w = base + group_bytes * group
                run_group(w, start, n_inputs, scratch, x, x_stride, out + 64 * group, out_stride, first, n)
            first += n

    kernel(matmul, name)


def register_quantised(type_name: str, dot: Any, unpack: Any, form: str) -> None:
    halves = form == "halves"
    block_bytes, place = (blocks.NIBBLE_BLOCK_BYTES, blocks.NIBBLE_PLACE) if form == "double" else (512, 0)
    if HAS_AMX:
        product, depth = TILE_FORMS[form]
        run_group = by_row_count(direct(dot), tiled(unpack, product, depth), TILES_FROM)
    else:
        run_group = by_row_count(direct(dot), unpacking(unpack, make_row_product(halves)), UNPACK_FROM)
    register_matmul(f"matmul_{type_name}", run_group)
    register_matmul(f"matmul_{type_name}_f32", unpacking(unpack, make_float_product(halves, block_bytes, place)))


register_matmul("matmul_F32", direct(blocks.dot_f32))
register_matmul("matmul_F32x8", direct(blocks.dot_f32x8))
register_matmul("matmul_F16", direct(blocks.dot_f16))
register_matmul("matmul_BF16", direct(blocks.dot_bf16))
register_quantised("Q8_0", blocks.dot_q8_0, blocks.unpack_q8_0, "single")
register_quantised("Q4_0", blocks.dot_q4_0, blocks.unpack_q4_0, "double")
register_quantised("Q4_1", blocks.dot_q4_1, blocks.unpack_q4_1, "double")
register_quantised("Q5_0", blocks.dot_q5_0, blocks.unpack_q5_0, "single")
register_quantised("Q5_1", blocks.dot_q5_1, blocks.unpack_q5_1, "single")
register_quantised("Q4_K", blocks.dot_q4_k, blocks.unpack_q4_k, "double")
register_quantised("Q5_K", blocks.dot_q5_k, blocks.unpack_q5_k, "single")
register_quantised("Q6_K", blocks.dot_q6_k, blocks.unpack_q6_k, "halves")
