"""Products of 16 activation rows with 16 weight rows on AMX tiles, as exact integers like everywhere else.

A tile product takes one block of 32 inputs, since each block has its own scales; its 256 sums are then scaled and added
to 16 registers, one for each activation row, in the order in which a single row adds them. Intel's manual describes the
instructions (volume 2, TDPBSUD; volume 1, chapter 18 the tile configuration).

    double   four-bit weights: one product of (high, low) activations with (16 q, q), 64 inputs deep
    single   wider weights: two products, of the high and of the low parts, joined as 16 * high + low
    halves   weights with a scale for every 16 inputs: the same twice
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.layout import HALF_SUMS, LINE_BYTES, SCALES, SUMS, TILE_BYTES, TILE_ROWS
from engine.kernels.memory import store_u8, store_u16, zero_bytes
from engine.kernels.registry import device
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
    store_unaligned,
)

_VOID, _address = ir.VoidType(), types.int64
_Sums = types.UniTuple(f32x16, TILE_ROWS)  # one register for each activation row, a lane for each weight row
RESULTS = 1024  # bytes into the scratch: two pairs of result tiles


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


configure = define(types.void, (_address,), _configure)
release = _with_tiles("llvm.x86.tilerelease")
# tiles 0 and 1 hold results, 4 and 5 activations, 6 and 7 weights
zero0, zero1 = (_with_tiles("llvm.x86.tilezero", tile) for tile in range(2))
load4, load5, load6, load7 = (_with_memory("llvm.x86.tileloadd64", tile) for tile in range(4, 8))
store0, store1 = (_with_memory("llvm.x86.tilestored64", tile) for tile in range(2))
multiply046, multiply157, multiply156 = (
    _with_tiles("llvm.x86.tdpbsud", *tiles) for tiles in ((0, 4, 6), (1, 5, 7), (1, 5, 6))
)


@device
def configure_tiles(scratch, depth):
    """Activation tiles of 16 rows x `depth` bytes, weight tiles of `depth` / 4 rows x 64 bytes, results 16 x 64."""
    zero_bytes(scratch, 64)
    store_u8(scratch, 1)  # palette 1
    for tile in range(8):
        store_u16(scratch + 16 + 2 * tile, depth if tile in (4, 5) else 64)
        store_u8(scratch + 48 + tile, depth // 4 if tile in (6, 7) else TILE_ROWS)
    configure(scratch)


def _spread(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    sums = ir.Constant(ir.ArrayType(f32x16.llvm, TILE_ROWS), ir.Undefined)
    for row in range(TILE_ROWS):
        sums = b.insert_value(sums, value, row)
    return sums


def _store_sums(b: ir.IRBuilder, out: ir.Value, stride: ir.Value, count: ir.Value, sums: ir.Value) -> None:
    for row in range(TILE_ROWS):
        with b.if_then(b.icmp_signed("<", ir.Constant(I64, row), count)):
            address = b.add(out, b.mul(stride, ir.Constant(I64, row)))
            store_unaligned(b, address, b.extract_value(sums, row))


def _make_scaled(joined: bool) -> Any:
    """What `blocks.scaled` does for one row, for 16 rows whose scales and sums lie `stride` bytes apart."""

    def body(
        b: ir.IRBuilder,
        sums: ir.Value,
        results: ir.Value,
        scale: ir.Value,
        x_scale: ir.Value,
        minima: ir.Value,
        x_sum: ir.Value,
        stride: ir.Value,
    ) -> ir.Value:
        for row in range(TILE_ROWS):
            apart = b.mul(stride, ir.Constant(I64, row))
            dot = load_unaligned(b, b.add(results, ir.Constant(I64, 64 * row)), i32x16.llvm)
            if joined:  # the first result tile is of the high parts, the next one of the low parts
                low = load_unaligned(b, b.add(results, ir.Constant(I64, 1024 + 64 * row)), i32x16.llvm)
                dot = b.add(b.shl(dot, ir.Constant(i32x16.llvm, [4] * TILE_ROWS)), low)
            factor = b.fmul(scale, splatted(b, load_unaligned(b, b.add(x_scale, apart), F32)))
            total = fused(b, b.sitofp(dot, f32x16.llvm), factor, b.extract_value(sums, row))
            total = fused(b, minima, splatted(b, load_unaligned(b, b.add(x_sum, apart), F32)), total)
            sums = b.insert_value(sums, total, row)
        return sums

    arguments = (_Sums, _address, f32x16, _address, f32x16, _address, types.int64)
    return define(_Sums, arguments, body)


spread = define(_Sums, (f32x16,), _spread)
store_sums = define(types.void, (_address, types.int64, types.int64, _Sums), _store_sums)
add_scaled, add_scaled_joined = _make_scaled(False), _make_scaled(True)


@device
def double_product(quads, scales, minima, x, x_stride, n_blocks, results, sums):
    """16 rows at `x` with a group of four-bit weights; of two blocks, one's tiles run under the other's sums."""
    x_scales, x_sums = x + SCALES * n_blocks, x + SUMS * n_blocks
    for block in range(0, n_blocks, 2):
        line, q = x + LINE_BYTES * block, quads + 1024 * block
        zero0(), load4(line, x_stride), load6(q, 64), multiply046(), store0(results, 64)
        is_pair = block + 1 < n_blocks
        if is_pair:
            zero1(), load5(line + LINE_BYTES, x_stride), load7(q + 1024, 64), multiply157()
            store1(results + 1024, 64)
        s, m = scales + 64 * block, minima + 64 * block
        xs, xm = x_scales + 4 * block, x_sums + 4 * block
        sums = add_scaled(sums, results, load_f32x16(s), xs, load_f32x16(m), xm, x_stride)
        if is_pair:
            s, m = s + 64, m + 64
            sums = add_scaled(sums, results + 1024, load_f32x16(s), xs + 4, load_f32x16(m), xm + 4, x_stride)
    return sums


@device
def single_product(quads, scales, minima, x, x_stride, n_blocks, results, sums):
    x_scales, x_sums = x + SCALES * n_blocks, x + SUMS * n_blocks
    for block in range(n_blocks):
        line, q = x + LINE_BYTES * block, quads + 512 * block
        here = results + 2048 * (block % 2)
        load6(q, 64)
        zero0(), load4(line, x_stride), multiply046(), store0(here, 64)
        zero1(), load5(line + 32, x_stride), multiply156(), store1(here + 1024, 64)
        s, m = load_f32x16(scales + 64 * block), load_f32x16(minima + 64 * block)
        sums = add_scaled_joined(sums, here, s, x_scales + 4 * block, m, x_sums + 4 * block, x_stride)
    return sums


@device
def halves_product(quads, scales, minima, x, x_stride, n_blocks, results, sums):
    x_scales, x_sums = x + SCALES * n_blocks, x + HALF_SUMS * n_blocks
    for half in range(2 * n_blocks):
        line, q = x + LINE_BYTES * (half // 2) + 16 * (half % 2), quads + 256 * half
        here = results + 2048 * (half % 2)
        load6(q, 64)
        zero0(), load4(line, x_stride), multiply046(), store0(here, 64)
        zero1(), load5(line + 32, x_stride), multiply156(), store1(here + 1024, 64)
        s, m = load_f32x16(scales + 64 * half), load_f32x16(minima + 64 * half)
        sums = add_scaled_joined(sums, here, s, x_scales + 4 * (half // 2), m, x_sums + 4 * half, x_stride)
    return sums


def tiled(unpack: Any, product: Any, depth: int) -> Any:
    """Rows of one group in tiles of 16. Reads up to 15 rows beyond the last, whose results are dropped."""

    @device
    def run(w, start, n_inputs, scratch, x, x_stride, out, out_stride, first, count):
        quads = scratch + TILE_BYTES
        scales = quads + 32 * n_inputs
        minima = scales + 4 * n_inputs
        unpack(w, n_inputs, quads, scales, minima)
        configure_tiles(scratch, depth)
        for row in range(first, first + count, TILE_ROWS):
            sums = product(
                quads, scales, minima, x + x_stride * row, x_stride, n_inputs // 32, scratch + RESULTS, spread(start)
            )
            store_sums(out + out_stride * row, out_stride, first + count - row, sums)
        release()

    return run
