"""Matrix products of packed weights with rows of activations, one kernel for each weight type.

Work is cut into (rows of activations) x (row chunks of the weights). For a dense matrix the activation rows come in
tiles; for experts each work item names an expert and the rows that chose it. A single row runs straight from the packed
weights at the speed of memory; for several rows a group is unpacked panel by panel, and all rows pass through each
panel while it is in the first-level cache. Both do the same arithmetic in the same order, so a row's result never
depends on what else is in the batch.
"""

from __future__ import annotations

from typing import Any

from engine.kernels.float_weights import dot_bf16, dot_f16, dot_f32, dot_f32x8, dots_bf16, dots_f16, dots_f32
from engine.kernels.layout import ITEM_BYTES, ROWS_AT_ONCE
from engine.kernels.memory import load_i64
from engine.kernels.panels import float_rows, group_start, grouped
from engine.kernels.registry import device, kernel
from engine.kernels.simd import HAS_AMX, HAS_VNNI512, store_f32x16
from engine.kernels.tiles import tiles
from engine.kernels.weight_types import WEIGHT_TYPES, WeightType
from engine.kernels.word_rows import by_words

UNPACK_FROM = 5 if HAS_VNNI512 else 2  # rows for which unpacking a group pays
TILES_FROM = 3  # rows for which a product of 16 does


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


def direct(dot: Any) -> Any:
    """Rows of some groups, each straight from the packed weights."""

    @device
    def run(base, group_bytes, first_group, last_group, bias, n_inputs, scratch, x, x_stride, out, out_stride, count):
        for group in range(first_group, last_group):
            w, start = base + group_bytes * group, group_start(bias, group)
            for row in range(count):
                store_f32x16(out + out_stride * row + 64 * group, dot(w, x + x_stride * row, n_inputs, start))

    return run


def four_at_a_time(dot: Any, dots: Any) -> Any:
    """Rows of some groups, four of which share each load of the weights."""

    @device
    def run(base, group_bytes, first_group, last_group, bias, n_inputs, scratch, x, x_stride, out, out_stride, count):
        whole = count // 4 * 4
        for group in range(first_group, last_group):
            w, start, here = base + group_bytes * group, group_start(bias, group), out + 64 * group
            for row in range(0, whole, 4):
                dots(w, x + x_stride * row, x_stride, n_inputs, start, here + out_stride * row, out_stride)
            for row in range(whole, count):
                store_f32x16(here + out_stride * row, dot(w, x + x_stride * row, n_inputs, start))

    return run


def by_row_count(few: Any, many: Any, many_from: int) -> Any:
    @device
    def run(base, group_bytes, first_group, last_group, bias, n_inputs, scratch, x, x_stride, out, out_stride, count):
        if count < many_from:
            few(
                base, group_bytes, first_group, last_group, bias, n_inputs, scratch, x, x_stride, out, out_stride, count
            )
        else:
            many(
                base, group_bytes, first_group, last_group, bias, n_inputs, scratch, x, x_stride, out, out_stride, count
            )

    return run


def register_matmul(name: str, run_groups: Any) -> None:
    """Register the kernel `name`: out[row] = W x[row] + bias for the activation rows and weight rows of a chunk.

    `weights` is the packed matrix, or with `items` the table of expert addresses, each with the matrix at
    `matrix_offset`. `n_inputs` is a multiple of 4 for floating-point weights, else of the type's block. Rows of `out`
    hold a multiple of 16 values. ROWS_AT_ONCE rows are taken through all weights before the next.
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
        last_group = min(first_group + groups_per_chunk, n_groups)
        for row in range(first, first + count, ROWS_AT_ONCE):
            n, here, target = min(ROWS_AT_ONCE, first + count - row), x + x_stride * row, out + out_stride * row
            run_groups(
                base,
                group_bytes,
                first_group,
                last_group,
                bias,
                n_inputs,
                scratch,
                here,
                x_stride,
                target,
                out_stride,
                n,
            )

    kernel(matmul, name)


def register_quantised(type_name: str, weight: WeightType) -> None:
    many = grouped(type_name, weight.unpack, tiles(weight) if HAS_AMX else by_words(weight))
    run_groups = by_row_count(direct(weight.dot), many, TILES_FROM if HAS_AMX else UNPACK_FROM)
    register_matmul(f"matmul_{type_name}", run_groups)
    register_matmul(f"matmul_{type_name}_f32", grouped(type_name, weight.unpack, float_rows(weight)))


register_matmul("matmul_F32", four_at_a_time(dot_f32, dots_f32))
register_matmul("matmul_F32x8", direct(dot_f32x8))
register_matmul("matmul_F16", four_at_a_time(dot_f16, dots_f16))
register_matmul("matmul_BF16", four_at_a_time(dot_bf16, dots_bf16))
for _name, _weight in WEIGHT_TYPES.items():
    register_quantised(_name, _weight)
