"""Packed weights: sixteen rows side by side, in the layout that one 512-bit register wants.

A group of 16 rows is a sequence of blocks along the inputs. The values are those of the file, rearranged, never rounded
again: weight = scale * (q - offset) - minimum, with q an unsigned integer.

    type    block of 32 inputs x 16 rows, in bytes                                                    offset or minimum
    Q8_0    32: scales f16 | 512: 8 quads, q + 128                                                    128
    Q4_0    32: scales f16 | 256: nibbles                                                             8
    Q4_1    32: scales f16 | 32: -minima f16 | 256: nibbles                                           own
    Q5_0    as Q4_0 with 64: fifth bits after the nibbles                                             16
    Q5_1    as Q4_1 with 64: fifth bits after the nibbles                                             own
    Q4_K    [32: d f16 | 32: dmin f16] before 8 of: 16: scales u8 | 16: minima u8 | 256: nibbles      dmin * minimum
    Q5_K    the same with 64: fifth bits after the nibbles                                            dmin * minimum
    Q6_K    [32: d f16] before 8 of: 2 x 16: scales i8 of 16 inputs | 256: nibbles | 128: upper bits  32

    nibbles      register t holds quad 2t in its low and quad 2t + 1 in its high nibbles
    fifth bits   bit j of each byte belongs to quad j
    upper bits   register 0 holds quads 0..3, register 1 quads 4..7: bits 2j, 2j + 1 of each byte belong to the j-th

Every product of such a group with an activation row takes the same steps, whatever kernel it runs in, so that its bits
are the same: for each 256 inputs (one activation scale), sum = fma(exact integer product, scale, sum) block by block,
with own minima fma(minimum, -(sum of q), sum) after each; then, with dmin, fma(exact integer product of minima and
-(sums of q), dmin, sum); then total = fma(sum, activation scale, total).

F32, F16 and BF16 are 16 values for each input; F32x8 is eight rows of two inputs each, for matrices with no more rows.
The file formats are described in ggml's documentation of GGUF types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.kernels.float_weights import AHEAD
from engine.kernels.layout import (
    BLOCK,
    LINE_BYTES,
    PACKED_BLOCKS,
    PAIRS,
    PANEL_D_MIN,
    PANEL_MINIMA,
    PANEL_SCALES,
    SCALED_BLOCKS,
    SCALES,
    SUMS,
)
from engine.kernels.memory import load_f32, load_i32, prefetch_lines
from engine.kernels.panels import store_bytes, store_minima, store_nibbles
from engine.kernels.quads import (
    byte_quads,
    dot_block,
    dot_first_half,
    dot_second_half,
    five_bit_quads,
    nibble_quads,
    six_bit_quads,
)
from engine.kernels.registry import device
from engine.kernels.simd import (
    add_pairs,
    fma,
    load_f16x16,
    load_i8x16,
    load_u8x16,
    shift_left,
    splat_f32,
    splat_i32,
    store_f32x16,
    to_f32,
    zero_f32x16,
    zero_i32x16,
)

# bytes of a block's quads, which end it
QUAD_BYTES = {"Q8_0": 512, "Q4_0": 256, "Q4_1": 256, "Q5_0": 320, "Q5_1": 320, "IQ4_NL": 256, "MXFP4": 256}


@dataclass(frozen=True, slots=True)
class WeightType:
    """How a type's packed groups are multiplied and unpacked.

    dot       (weights, activation row, n_inputs, start) -> 16 sums, straight from the packed weights
    unpack    (weights, n_blocks, panel) -> the weights behind: up to 256 inputs into a panel (see panels.py)
    form      "double", "single" or "halves": how tiles take its quads
    minima    "offset", the same for all of a panel; "own", a float32 for each block; "super", integers times dmin
    """

    dot: Any
    unpack: Any
    form: str
    minima: str


@device
def no_header(w):
    return zero_f32x16(), zero_f32x16()


@device
def as_it_is(part, minima, header):
    return part


def packed_dot(name: str, add_block: Any, header: Any = no_header, finish: Any = as_it_is) -> Any:
    """The dot product of a type whose blocks `add_block` adds, in the order that all kernels keep.

    header      (weights) -> what the blocks of one activation scale share
    add_block   (sum, minima, header, block, activation line, pair, sum of q) -> sum and minima
    finish      (sum, minima, header) -> the sum less the minima
    """
    inputs, header_bytes, _, block_bytes = PACKED_BLOCKS[name]
    is_whole = inputs == BLOCK * SCALED_BLOCKS  # the blocks of a scale are always all there
    fetch = prefetch_lines(-(-block_bytes // 64))

    @device
    def dot(w, x, n_inputs, total):
        n_blocks = n_inputs // BLOCK
        pairs, sums, x_scale = x + PAIRS * n_blocks, x + SUMS * n_blocks, x + SCALES * n_blocks
        for first in range(0, n_blocks, SCALED_BLOCKS):
            shared = header(w)
            w += header_bytes
            part, minima = zero_f32x16(), zero_i32x16()
            for _ in range(SCALED_BLOCKS if is_whole else min(SCALED_BLOCKS, n_blocks - first)):
                fetch(w + AHEAD)
                part, minima = add_block(part, minima, shared, w, x, pairs, sums)
                w, x, pairs, sums = w + block_bytes, x + LINE_BYTES, pairs + 4, sums + 4
            total = fma(finish(part, minima, shared), splat_f32(load_f32(x_scale)), total)
            x_scale += 4
        return total

    return dot


# Parts that types share -----------------------------------------------------------------------------------------------


@device
def half_scales(w):
    return load_f16x16(w)


@device
def half_scale_pair(w):
    """d and dmin of 256 inputs."""
    return load_f16x16(w), load_f16x16(w + 32)


@device
def twice(minima):
    """16 minima in 0..63, each in both 16-bit halves of its lane."""
    return minima | shift_left(minima, 16)


@device
def add_minima(minima, pair_of_minima, pairs):
    return add_pairs(minima, pair_of_minima, splat_i32(load_i32(pairs)))


@device
def less_minima(part, minima, header):
    return fma(to_f32(minima), header[1], part)


@device
def offset_start(offset, pairs):
    """What a product starts from so that the offset (two int16 in a scalar) is taken off: -offset * (sums of q)."""
    return add_pairs(zero_i32x16(), splat_i32(offset), splat_i32(load_i32(pairs)))


@device
def add_halves(part, q, x, starts, scales):
    """Both halves of a block, each with its own start and its own scale."""
    part = fma(to_f32(dot_first_half(q, x, starts[0])), scales[0], part)
    return fma(to_f32(dot_second_half(q, x, starts[1])), scales[1], part)


@device
def store_half_scales(panel, block, scales):
    store_f32x16(panel + PANEL_SCALES + 128 * block, scales[0])
    store_f32x16(panel + PANEL_SCALES + 128 * block + 64, scales[1])


@device
def signed_scales(w, d):
    """The scales of both halves of a block: d times 2 x 16 signed bytes."""
    return d * to_f32(load_i8x16(w)), d * to_f32(load_i8x16(w + 16))


# Families of types ----------------------------------------------------------------------------------------------------


def plain_type(name: str, quads: Any, form: str, offset: int, scales: Any = half_scales) -> WeightType:
    """A type whose blocks of 32 inputs stand alone; an offset of 0: each block has a minimum of its own."""
    block_bytes, own = PACKED_BLOCKS[name][3], offset == 0
    place, both = block_bytes - QUAD_BYTES[name], offset * 0x10001
    store = store_nibbles if form == "double" else store_bytes

    @device
    def add_block(part, minima, header, w, x, pairs, sums):
        start = zero_i32x16() if own else offset_start(both, pairs)
        part = fma(to_f32(dot_block(quads(w + place), x, start)), scales(w), part)
        if own:
            part = fma(zero_f32x16() - load_f16x16(w + 32), splat_f32(load_f32(sums)), part)
        return part, minima

    @device
    def unpack(w, n_blocks, panel):
        for block in range(n_blocks):
            store(panel, block, quads(w + place), offset)
            store_f32x16(panel + PANEL_SCALES + 64 * block, scales(w))
            if own:
                store_f32x16(panel + PANEL_MINIMA + 64 * block, zero_f32x16() - load_f16x16(w + 32))
            w += block_bytes
        return w

    return WeightType(packed_dot(name, add_block), unpack, form, "own" if own else "offset")


def super_type(name: str, quads: Any, form: str) -> WeightType:
    """Q4_K and Q5_K, whose blocks of 32 have 6-bit scales and minima within a block of 256."""
    _, header_bytes, _, block_bytes = PACKED_BLOCKS[name]
    store = store_nibbles if form == "double" else store_bytes

    @device
    def add_block(part, minima, header, w, x, pairs, sums):
        scale = header[0] * to_f32(load_u8x16(w))
        part = fma(to_f32(dot_block(quads(w + 32), x, zero_i32x16())), scale, part)
        return part, add_minima(minima, twice(load_u8x16(w + 16)), pairs)

    @device
    def unpack(w, n_blocks, panel):
        d, d_min = half_scale_pair(w)
        store_f32x16(panel + PANEL_D_MIN, d_min)
        w += header_bytes
        for block in range(n_blocks):
            store(panel, block, quads(w + 32), 0)
            store_f32x16(panel + PANEL_SCALES + 64 * block, d * to_f32(load_u8x16(w)))
            store_minima(panel, block, twice(load_u8x16(w + 16)))
            w += block_bytes
        return w

    return WeightType(packed_dot(name, add_block, half_scale_pair, less_minima), unpack, form, "super")


def _six_bits() -> WeightType:
    """Q6_K, which has a scale for every 16 inputs."""
    name, offset = "Q6_K", 32
    _, header_bytes, _, block_bytes = PACKED_BLOCKS[name]

    @device
    def add_block(part, minima, d, w, x, pairs, sums):
        starts = offset_start(offset, pairs), offset_start(offset << 16, pairs)
        return add_halves(part, six_bit_quads(w + 32), x, starts, signed_scales(w, d)), minima

    @device
    def unpack(w, n_blocks, panel):
        d = load_f16x16(w)
        w += header_bytes
        for block in range(n_blocks):
            store_bytes(panel, block, six_bit_quads(w + 32), offset)
            store_half_scales(panel, block, signed_scales(w, d))
            w += block_bytes
        return w

    return WeightType(packed_dot(name, add_block, half_scales), unpack, "halves", "offset")


WEIGHT_TYPES = {
    "Q8_0": plain_type("Q8_0", byte_quads, "single", 128),
    "Q4_0": plain_type("Q4_0", nibble_quads, "double", 8),
    "Q4_1": plain_type("Q4_1", nibble_quads, "double", 0),
    "Q5_0": plain_type("Q5_0", five_bit_quads, "single", 16),
    "Q5_1": plain_type("Q5_1", five_bit_quads, "single", 0),
    "Q4_K": super_type("Q4_K", nibble_quads, "double"),
    "Q5_K": super_type("Q5_K", five_bit_quads, "single"),
    "Q6_K": _six_bits(),
}
