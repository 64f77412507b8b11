"""Panels: up to 256 inputs of a group of 16 weight rows, unpacked once for many activation rows.

A panel fits the first-level cache beside the activations that pass through it. Its quads are bytes; with AMX they lie
as a tile wants them: signed (less the type's offset), four-bit ones twice, as 16 q and q (see tiles.py).

    panel   8 blocks of 512 bytes of quads, or of 1024: first 16 q, then q
            PANEL_SCALES: a float32 register for each block, or two for each
            PANEL_MINIMA: for each block a float32 register, or one of pairs of int16 (with AMX then zeros, the same
            pairs times 256, and zeros again, each as long: see tiles.py)
            PANEL_D_MIN: a float32 register, what the pairs are multiplied with
            PANEL_OFFSET: the offset of all its weights, twice as an int16

The running sums of up to MOST_ROWS_AT_ONCE activation rows lie behind it, a register each.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.layout import (
    BLOCK,
    PANEL_BYTES,
    PANEL_D_MIN,
    PANEL_MINIMA,
    PANEL_OFFSET,
    PANEL_SCALES,
    SCALED_BLOCKS,
    TILE_BYTES,
    packed_group_bytes,
)
from engine.kernels.memory import fetch_to_write, load_f32, load_i32, prefetch_lines
from engine.kernels.registry import device
from engine.kernels.simd import (
    HAS_AMX,
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
    store_f32x16,
    store_i32x16,
    store_unaligned,
    subtract_bytes,
    to_f32,
    zero_i32x16,
)

NIBBLE_BLOCK_BYTES, NIBBLE_PLACE = (1024, 512) if HAS_AMX else (512, 0)  # of four-bit quads; where q itself begins


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


@device
def store_bytes(panel, block, q, offset):
    store_quads(panel + 512 * block, _less(q, offset) if HAS_AMX else q)


@device
def store_doubled(panel, block, q, offset):
    signed = _less(q, offset)
    store_quads(panel + NIBBLE_BLOCK_BYTES * block, _sixteenfold(signed))
    store_quads(panel + NIBBLE_BLOCK_BYTES * block + NIBBLE_PLACE, signed)


store_nibbles = store_doubled if HAS_AMX else store_bytes


@device
def store_minima(panel, block, pairs):
    """The integer minima of a block's halves, one in each 16 bits."""
    here = panel + PANEL_MINIMA + 64 * block
    store_i32x16(here, pairs)
    if HAS_AMX:
        store_i32x16(here + 512, zero_i32x16())
        store_i32x16(here + 1024, shift_left(pairs, 8))
        store_i32x16(here + 1536, zero_i32x16())


# Activation rows through a panel --------------------------------------------------------------------------------------


def grouped(type_name: str, unpack: Any, through_panel: Any, begin: Any, end: Any) -> Any:
    """Rows of one group, panel by panel: (weights, start, n_inputs, ...) as in matmul.py.

    The packed weights of the next panel are fetched while rows pass through this one.
    """
    fetch = prefetch_lines(-(-packed_group_bytes(type_name, BLOCK * SCALED_BLOCKS) // 64))

    @device
    def run(w, start, n_inputs, scratch, x, x_stride, out, out_stride, first, count):
        panel, totals, n_blocks = scratch + TILE_BYTES, scratch + TILE_BYTES + PANEL_BYTES, n_inputs // BLOCK
        for row in range(count):
            store_f32x16(totals + 64 * row, start)
            fetch_to_write(out + out_stride * (first + row))
        begin(scratch)
        for block in range(0, n_blocks, SCALED_BLOCKS):
            n = min(SCALED_BLOCKS, n_blocks - block)
            w = unpack(w, n, panel)
            fetch(w)
            through_panel(panel, n, scratch, x + x_stride * first, x_stride, block, n_blocks, totals, count)
        end(scratch)
        for row in range(count):
            store_f32x16(out + out_stride * (first + row), load_f32x16(totals + 64 * row))

    return run


@device
def nothing(scratch):
    pass


def float_rows(weight: Any) -> Any:
    """Rows of float32 activations: each weight is expanded to the exact value that the file means."""
    halves, has_offset = weight.form == "halves", weight.minima == "offset"
    own, super_minima = weight.minima == "own", weight.minima == "super"
    block_bytes, place = (NIBBLE_BLOCK_BYTES, NIBBLE_PLACE) if weight.form == "double" else (512, 0)

    @device
    def weight_at(panel, i):
        quad = load_i32x16(panel + block_bytes * (i // 32) + place + 64 * (i % 32 // 4))
        if has_offset and HAS_AMX:
            q = shift_right_signed(shift_left(quad, 24 - 8 * (i % 4)), 24)
        else:
            q = shift_right(quad, 8 * (i % 4)) & splat_i32(0xFF)
            if has_offset:
                q = q - (splat_i32(load_i32(panel + PANEL_OFFSET)) & splat_i32(0xFF))
        value = load_f32x16(panel + PANEL_SCALES + 64 * (i // (16 if halves else 32))) * to_f32(q)
        minimum = panel + PANEL_MINIMA + 64 * (i // 32)
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

    return through_panel
