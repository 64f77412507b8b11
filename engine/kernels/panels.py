"""Panels: up to 256 inputs of a group of 16 weight rows, unpacked once for many activation rows.

A panel fits the first-level cache beside the activations that pass through it. Its weights are signed (less the type's
offset). With AMX they lie as a tile wants them: quads of bytes, four-bit ones twice, as 16 q and q (see tiles.py). Else
each quad becomes two registers of int16, of its even and of its odd bytes (see word_rows.py).

    panel   8 blocks of 512 bytes of quads, or of 1024: first 16 q, then q; or of 1024 bytes of int16
            PANEL_SCALES: a float32 register for each block, or two for each
            PANEL_MINIMA: for each block a float32 register, or one of pairs of int16 (with AMX then zeros, the same
            pairs times 256, and zeros again, each as long: see tiles.py)
            PANEL_D_MIN: a float32 register, what the pairs are multiplied with

Some groups share their activations: all of them take the same inputs before any takes the next, so that these come from
the first-level cache. The running sums of all rows and groups lie in the scratch meanwhile, a register each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.layout import (
    BLOCK,
    N_TOTALS,
    PANEL_BYTES,
    PANEL_D_MIN,
    PANEL_MINIMA,
    PANEL_SCALES,
    ROWS_AT_ONCE,
    SCALED_BLOCKS,
    TILE_BYTES,
    TILE_ROWS,
    WIDE_BYTES,
    packed_group_bytes,
)
from engine.kernels.memory import fetch_to_write, load_f32, prefetch_lines
from engine.kernels.registry import device
from engine.kernels.simd import (
    HAS_AMX,
    I16,
    I64,
    define,
    fma,
    i32x16,
    load_f32x16,
    load_i32x16,
    shift_left,
    shift_right,
    shift_right_signed,
    splat_f32,
    splat_i32,
    splatted_words,
    store_f32x16,
    store_i32x16,
    store_unaligned,
    subtract_bytes,
    to_f32,
    zero_f32x16,
)

BYTE_BLOCK_BYTES, WORD_BLOCK_BYTES = 512, 1024
NIBBLE_BLOCK_BYTES, NIBBLE_PLACE = 1024, 512  # of four-bit quads for tiles; where q itself begins
_TOTALS = TILE_BYTES + PANEL_BYTES + WIDE_BYTES  # where the running sums lie in the scratch


# Unpacking ------------------------------------------------------------------------------------------------------------


def _store_quads(b: ir.IRBuilder, target: ir.Value, quads: ir.Value) -> None:
    for j in range(8):
        store_unaligned(b, b.add(target, ir.Constant(I64, 64 * j)), b.extract_value(quads, j))


store_quads = define(types.void, (types.int64, types.UniTuple(i32x16, 8)), _store_quads)


@device
def _less(q, offset):
    return (
        subtract_bytes(q[0], offset),
        subtract_bytes(q[1], offset),
        subtract_bytes(q[2], offset),
        subtract_bytes(q[3], offset),
        subtract_bytes(q[4], offset),
        subtract_bytes(q[5], offset),
        subtract_bytes(q[6], offset),
        subtract_bytes(q[7], offset),
    )


@device
def _sixteenfold(q):
    """Bytes of at most four bits, times 16."""
    return (
        shift_left(q[0] & splat_i32(0x0F0F0F0F), 4),
        shift_left(q[1] & splat_i32(0x0F0F0F0F), 4),
        shift_left(q[2] & splat_i32(0x0F0F0F0F), 4),
        shift_left(q[3] & splat_i32(0x0F0F0F0F), 4),
        shift_left(q[4] & splat_i32(0x0F0F0F0F), 4),
        shift_left(q[5] & splat_i32(0x0F0F0F0F), 4),
        shift_left(q[6] & splat_i32(0x0F0F0F0F), 4),
        shift_left(q[7] & splat_i32(0x0F0F0F0F), 4),
    )


def _store_words(b: ir.IRBuilder, target: ir.Value, quads: ir.Value, offset: ir.Value) -> None:
    words = ir.VectorType(I16, 32)
    low, eight = ir.Constant(words, [0xFF] * 32), ir.Constant(words, [8] * 32)
    less = splatted_words(b, offset)
    for j in range(8):
        quad = b.bitcast(b.extract_value(quads, j), words)
        for place, part in ((0, b.and_(quad, low)), (64, b.lshr(quad, eight))):
            store_unaligned(b, b.add(target, ir.Constant(I64, 128 * j + place)), b.sub(part, less))


_store_as_words = define(types.void, (types.int64, types.UniTuple(i32x16, 8), types.int64), _store_words)


@device
def _store_quads_less(panel, block, q, offset):
    store_quads(panel + BYTE_BLOCK_BYTES * block, _less(q, offset))


@device
def _store_words_less(panel, block, q, offset):
    _store_as_words(panel + WORD_BLOCK_BYTES * block, q, offset)


@device
def _store_doubled(panel, block, q, offset):
    signed = _less(q, offset)
    store_quads(panel + NIBBLE_BLOCK_BYTES * block, _sixteenfold(signed))
    store_quads(panel + NIBBLE_BLOCK_BYTES * block + NIBBLE_PLACE, signed)


# (panel, block, eight quads, offset): a block's weights less the offset; of four bits, or of more
store_nibbles, store_bytes = (_store_doubled, _store_quads_less) if HAS_AMX else (_store_words_less, _store_words_less)


@device
def store_minima(panel, block, pairs):
    """The integer minima of a block's halves, one in each 16 bits."""
    store_i32x16(panel + PANEL_MINIMA + 64 * block, pairs)


# Activation rows through a panel --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rows:
    """How activation rows pass through panels.

    begin, end      (scratch), around all panels of a run
    shared_from     least rows that groups share; for fewer, weights are read as they lie in memory
    prepare         (scratch, x, x_stride, block, n_blocks, count): what the groups share of the inputs of a panel
    through_panel   (panel, n, scratch, x, x_stride, block, n_blocks, totals, count): add a panel's products
    """

    begin: Any
    shared_from: int
    prepare: Any
    through_panel: Any
    end: Any


def grouped(type_name: str, unpack: Any, rows: Rows) -> Any:
    """Rows of some groups, panel by panel: (weights, group_bytes, first_group, last_group, bias, ...) as in matmul.py.

    The packed weights of the next panel are fetched while rows pass through this one.
    """
    panel_bytes = packed_group_bytes(type_name, BLOCK * SCALED_BLOCKS)
    fetch = prefetch_lines(-(-panel_bytes // 64))
    begin, prepare, through_panel, end = rows.begin, rows.prepare, rows.through_panel, rows.end
    shared_from = rows.shared_from

    @device
    def run_together(base, group_bytes, group, n_groups, bias, n_inputs, scratch, x, x_stride, out, out_stride, count):
        panel, n_blocks, area = scratch + TILE_BYTES, n_inputs // BLOCK, 64 * (count + TILE_ROWS)
        for i in range(n_groups):
            start = group_start(bias, group + i)
            for row in range(count):
                store_f32x16(scratch + _TOTALS + area * i + 64 * row, start)
                fetch_to_write(out + out_stride * row + 64 * (group + i))
        for block in range(0, n_blocks, SCALED_BLOCKS):
            n = min(SCALED_BLOCKS, n_blocks - block)
            w = base + group_bytes * group + panel_bytes * (block // SCALED_BLOCKS)
            prepare(scratch, x, x_stride, block, n, count)
            for i in range(n_groups):
                unpack(w + group_bytes * i, n, panel)
                if i + 1 < n_groups:
                    fetch(w + group_bytes * (i + 1))
                elif n_blocks - block > SCALED_BLOCKS:
                    fetch(w + panel_bytes)
                else:
                    fetch(base + group_bytes * (group + n_groups))
                totals = scratch + _TOTALS + area * i
                through_panel(panel, n, scratch, x, x_stride, block, n_blocks, totals, count)
        for row in range(count):
            for i in range(n_groups):
                total = load_f32x16(scratch + _TOTALS + area * i + 64 * row)
                store_f32x16(out + out_stride * row + 64 * (group + i), total)

    @device
    def run(base, group_bytes, first_group, last_group, bias, n_inputs, scratch, x, x_stride, out, out_stride, count):
        together = N_TOTALS // (count + TILE_ROWS) if count >= shared_from else 1
        begin(scratch)
        for group in range(first_group, last_group, together):
            n = min(together, last_group - group)
            run_together(base, group_bytes, group, n, bias, n_inputs, scratch, x, x_stride, out, out_stride, count)
        end(scratch)

    return run


@device
def group_start(bias, group):
    return load_f32x16(bias + 64 * group) if bias != 0 else zero_f32x16()


@device
def nothing(scratch):
    pass


@device
def as_they_are(scratch, x, x_stride, block, n, count):
    pass


@device
def _byte_at(block, i):
    """Input `i` of a block of quads."""
    return shift_right_signed(shift_left(load_i32x16(block + 64 * (i // 4)), 24 - 8 * (i % 4)), 24)


@device
def _word_at(block, i):
    """Input `i` of a block of int16."""
    return shift_right_signed(
        shift_left(load_i32x16(block + 128 * (i // 4) + 64 * (i % 2)), 16 - 8 * (i % 4 // 2 * 2)), 16
    )


def float_rows(weight: Any) -> Rows:
    """Rows of float32 activations: each weight is expanded to the exact value that the file means."""
    halves, own, super_minima = weight.form == "halves", weight.minima == "own", weight.minima == "super"
    block_bytes, place, integer_at = WORD_BLOCK_BYTES, 0, _word_at
    if HAS_AMX:
        is_double = weight.form == "double"
        block_bytes, place = (NIBBLE_BLOCK_BYTES, NIBBLE_PLACE) if is_double else (BYTE_BLOCK_BYTES, 0)
        integer_at = _byte_at

    @device
    def weight_at(panel, i):
        q = integer_at(panel + block_bytes * (i // BLOCK) + place, i % BLOCK)
        value = load_f32x16(panel + PANEL_SCALES + 64 * (i // (16 if halves else 32))) * to_f32(q)
        minimum = panel + PANEL_MINIMA + 64 * (i // BLOCK)
        if own:
            value = value - load_f32x16(minimum)
        if super_minima:
            integer = shift_right(load_i32x16(minimum), i % 32 // 16 * 16) & splat_i32(0xFF)
            value = value - load_f32x16(panel + PANEL_D_MIN) * to_f32(integer)
        return value

    @device
    def through_panel(panel, n, scratch, x, x_stride, block, n_blocks, totals, count):
        for row in range(count):
            total, here = load_f32x16(totals + 64 * row), x + x_stride * row + 4 * BLOCK * block
            for i in range(BLOCK * n):
                total = fma(weight_at(panel, i), splat_f32(load_f32(here + 4 * i)), total)
            store_f32x16(totals + 64 * row, total)

    return Rows(nothing, ROWS_AT_ONCE + 1, as_they_are, through_panel, nothing)
