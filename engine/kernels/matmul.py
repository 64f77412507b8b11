"""Matrix products of packed weights with rows of activations, one kernel for each weight type.

Work is cut into (rows of activations) x (row chunks of the weights). For a dense matrix the activation rows come in
tiles; for experts each work item names an expert and the rows that chose it. A single row runs straight from the packed
weights at the speed of memory; for several rows a group is unpacked once and stays in the first-level cache. Both do
the same arithmetic in the same order, so a row's result never depends on what else is in the batch.
"""

from __future__ import annotations

from typing import Any

from engine.kernels import blocks
from engine.kernels.layout import ITEM_BYTES, LINE_BYTES
from engine.kernels.memory import load_f32, load_i32, load_i64
from engine.kernels.registry import device, kernel
from engine.kernels.simd import (
    fma,
    load_f32x16,
    load_i32x16,
    shift_right,
    splat_f32,
    splat_i32,
    store_f32x16,
    to_f32,
    zero_f32x16,
    zero_i32x16,
)

UNPACK_FROM = 2  # rows for which unpacking a group pays

# Unpacked groups with quantised activations --------------------------------------------------------------------------


def make_row_product(offset: int, has_minima: bool, halves: bool) -> Any:
    """(quads, scales, minima, activation row, n_inputs, start) -> 16 sums, in the order of the packed dot product."""

    @device
    def product(quads, scales, minima, x, n_inputs, total):
        n_blocks = n_inputs // 32
        x_scales, sums = x + LINE_BYTES * n_blocks, x + (LINE_BYTES + 4) * n_blocks
        for block in range(n_blocks):
            q = blocks.byte_quads(quads)
            x_scale = load_f32(x_scales)
            if halves:
                first = blocks.dot_half(q[0], q[1], q[2], q[3], x, splat_i32(-offset * load_i32(sums)))
                second = blocks.dot_half(q[4], q[5], q[6], q[7], x + 16, splat_i32(-offset * load_i32(sums + 4)))
                total = fma(to_f32(first), load_f32x16(scales + 128 * block) * splat_f32(x_scale), total)
                total = fma(to_f32(second), load_f32x16(scales + 128 * block + 64) * splat_f32(x_scale), total)
            else:
                start = blocks.offset_start(sums, offset) if offset else zero_i32x16()
                dot = blocks.dot_quads(q, x, start)
                total = fma(to_f32(dot), load_f32x16(scales + 64 * block) * splat_f32(x_scale), total)
                if has_minima:
                    total = blocks.subtract_minima(total, load_f32x16(minima + 64 * block), x_scale, sums)
            quads, x, x_scales, sums = quads + 512, x + LINE_BYTES, x_scales + 4, sums + 8
        return total

    return product


def make_float_product(offset: int, has_minima: bool, halves: bool) -> Any:
    """The same with float32 activations: each weight is expanded to the exact value that the file means."""

    @device
    def product(quads, scales, minima, x, n_inputs, total):
        for i in range(n_inputs):
            q = to_f32(shift_right(load_i32x16(quads + 64 * (i // 4)), 8 * (i % 4)) & splat_i32(0xFF))
            scale = load_f32x16(scales + 64 * (i // (16 if halves else 32)))
            if has_minima:
                weight = scale * q - load_f32x16(minima + 64 * (i // 32))
            else:
                weight = scale * (q - to_f32(splat_i32(offset)))
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
    def run(w, start, n_inputs, scratch, x, x_stride, gather, out, out_stride, first, count):
        for row in range(first, first + count):
            store_f32x16(out + out_stride * row, dot(w, source_row(x, x_stride, gather, row), n_inputs, start))

    return run


def unpacking(unpack: Any, product: Any) -> Any:
    """Rows of one group, after unpacking it into the worker's scratch."""

    @device
    def run(w, start, n_inputs, scratch, x, x_stride, gather, out, out_stride, first, count):
        scales = scratch + 16 * n_inputs
        minima = scales + 4 * n_inputs
        unpack(w, n_inputs, scratch, scales, minima)
        for row in range(first, first + count):
            x_row = source_row(x, x_stride, gather, row)
            store_f32x16(out + out_stride * row, product(scratch, scales, minima, x_row, n_inputs, start))

    return run


def by_row_count(one: Any, many: Any) -> Any:
    @device
    def run(w, start, n_inputs, scratch, x, x_stride, gather, out, out_stride, first, count):
        if count < UNPACK_FROM:
            one(w, start, n_inputs, scratch, x, x_stride, gather, out, out_stride, first, count)
        else:
            many(w, start, n_inputs, scratch, x, x_stride, gather, out, out_stride, first, count)

    return run


@device
def source_row(x, x_stride, gather, row):
    return x + x_stride * (load_i32(gather + 4 * row) if gather != 0 else row)


def register_matmul(name: str, run_group: Any) -> None:
    """Register the kernel `name`: out[row] = W x[row] + bias for the activation rows and weight rows of a chunk.

    `weights` is the packed matrix, or with `items` the table of expert addresses, each with the matrix at
    `matrix_offset`. `gather` (int32) maps a row to its row in x; 0 means the same. `n_inputs` is a multiple of 4 for
    floating-point weights, else of the type's block. Rows of `out` hold a multiple of 16 values.
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
        gather: int,
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
        for group in range(first_group, min(first_group + groups_per_chunk, n_groups)):
            start = group_start(bias, group)
            w = base + group_bytes * group
            run_group(w, start, n_inputs, scratch, x, x_stride, gather, out + 64 * group, out_stride, first, count)

    kernel(matmul, name)


def register_quantised(type_name: str, dot: Any, unpack: Any, **form: Any) -> None:
    packed = by_row_count(direct(dot), unpacking(unpack, make_row_product(**form)))
    register_matmul(f"matmul_{type_name}", packed)
    register_matmul(f"matmul_{type_name}_f32", unpacking(unpack, make_float_product(**form)))


register_matmul("matmul_F32", direct(blocks.dot_f32))
register_matmul("matmul_F32x8", direct(blocks.dot_f32x8))
register_matmul("matmul_F16", direct(blocks.dot_f16))
register_matmul("matmul_BF16", direct(blocks.dot_bf16))
register_quantised("Q8_0", blocks.dot_q8_0, blocks.unpack_q8_0, offset=128, has_minima=False, halves=False)
register_quantised("Q4_0", blocks.dot_q4_0, blocks.unpack_q4_0, offset=8, has_minima=False, halves=False)
register_quantised("Q4_1", blocks.dot_q4_1, blocks.unpack_q4_1, offset=0, has_minima=True, halves=False)
register_quantised("Q5_0", blocks.dot_q5_0, blocks.unpack_q5_0, offset=16, has_minima=False, halves=False)
register_quantised("Q5_1", blocks.dot_q5_1, blocks.unpack_q5_1, offset=0, has_minima=True, halves=False)
register_quantised("Q4_K", blocks.dot_q4_k, blocks.unpack_q4_k, offset=0, has_minima=True, halves=False)
register_quantised("Q5_K", blocks.dot_q5_k, blocks.unpack_q5_k, offset=0, has_minima=True, halves=False)
register_quantised("Q6_K", blocks.dot_q6_k, blocks.unpack_q6_k, offset=32, has_minima=False, halves=True)
