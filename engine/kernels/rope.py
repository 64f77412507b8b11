"""Rotary position embedding of queries and keys, and the storing of keys and values in the KV pages.

A page holds PAGE positions of all layers. In it, each layer has for each KV head a block of keys and one of values:

    keys     (PAGE / 16, head_dim, 16): sixteen positions side by side, for sixteen scores at once
    values   (PAGE, value_dim)
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types

from engine.kernels.layout import PAGE
from engine.kernels.memory import load_f32, load_i32, load_i64, store_f16, store_f32
from engine.kernels.registry import device, kernel
from engine.kernels.simd import (
    F32,
    I32,
    I64,
    LANES,
    define,
    f32x16,
    float_to_half_bits,
    load_f32x16,
    load_unaligned,
    store_f32x16,
    store_unaligned,
)

_EVERY_LANE = ir.VectorType(I32, LANES)


def rope_reference(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, neox: bool) -> np.ndarray:
    """x (n, head_dim) at one position; cos, sin (n_pairs). Su et al. 2021; `neox` pairs element i with i + n_pairs."""
    n_pairs = cos.shape[0]
    if neox:
        first, second = slice(0, n_pairs), slice(n_pairs, 2 * n_pairs)
    else:
        first, second = slice(0, 2 * n_pairs, 2), slice(1, 2 * n_pairs, 2)
    out = x.copy()
    out[:, first] = x[:, first] * cos - x[:, second] * sin
    out[:, second] = x[:, second] * cos + x[:, first] * sin
    return out


def _rotate_neighbours(b: ir.IRBuilder, x: ir.Value, cosines: ir.Value, sines: ir.Value) -> None:
    twice = ir.Constant(_EVERY_LANE, [lane // 2 for lane in range(LANES)])

    def factors(address: ir.Value) -> ir.Value:
        eight = load_unaligned(b, address, ir.VectorType(F32, LANES // 2))
        return b.shuffle_vector(eight, ir.Constant(eight.type, ir.Undefined), twice)

    value, sine = load_unaligned(b, x, f32x16.llvm), factors(sines)
    swap = ir.Constant(_EVERY_LANE, [lane ^ 1 for lane in range(LANES)])
    others = b.fmul(b.shuffle_vector(value, ir.Constant(value.type, ir.Undefined), swap), sine)
    own = b.fmul(value, factors(cosines))
    alternate = ir.Constant(_EVERY_LANE, [lane + LANES * (lane % 2) for lane in range(LANES)])
    store_unaligned(b, x, b.shuffle_vector(b.fsub(own, others), b.fadd(own, others), alternate))


# (x, cosines, sines): rotate eight pairs of neighbours in place
rotate_neighbours = define(types.void, (types.int64, types.int64, types.int64), _rotate_neighbours)


@device
def rotate(x, table, n_pairs, neox):
    """Rotate one head at `x` in place; `table` has n_pairs cosines, then n_pairs sines."""
    sines, together = table + 4 * n_pairs, 16 if neox else 8
    whole = n_pairs // together * together
    for i in range(0, 4 * whole, 4 * together):
        if neox:
            first, second = x + i, x + 4 * n_pairs + i
            a, b, cos, sin = load_f32x16(first), load_f32x16(second), load_f32x16(table + i), load_f32x16(sines + i)
            store_f32x16(first, a * cos - b * sin)
            store_f32x16(second, b * cos + a * sin)
        else:
            rotate_neighbours(x + 2 * i, table + i, sines + i)
    for i in range(whole, n_pairs):
        cos, sin = load_f32(table + 4 * i), load_f32(table + 4 * (n_pairs + i))
        first = x + (4 * i if neox else 8 * i)
        second = first + (4 * n_pairs if neox else 4)
        a, b = load_f32(first), load_f32(second)
        store_f32(first, a * cos - b * sin)
        store_f32(second, b * cos + a * sin)


@device
def page_of(pages, sequences, positions, token, max_pages):
    """Address of the page that holds a token's position."""
    row = load_i32(sequences + 4 * token) * max_pages + load_i32(positions + 4 * token) // PAGE
    return load_i64(pages + 8 * row)


def _store_apart(b: ir.IRBuilder, target: ir.Value, source: ir.Value, is_half: ir.Value) -> None:
    """Sixteen floats of `source`, each 16 elements after the one before."""
    values = load_unaligned(b, source, f32x16.llvm)
    with b.if_else(b.icmp_signed("!=", is_half, ir.Constant(I64, 0))) as (narrow, wide):
        for branch, elements, size in ((narrow, float_to_half_bits, 2), (wide, None, 4)):
            with branch:
                stored = elements(b, values) if elements else values
                for lane in range(LANES):
                    place = b.add(target, ir.Constant(I64, size * LANES * lane))
                    store_unaligned(b, place, b.extract_element(stored, ir.Constant(I32, lane)))


store_apart = define(types.void, (types.int64, types.int64, types.int64), _store_apart)
store_halves = define(
    types.void,
    (types.int64, types.int64),
    lambda b, p, x: store_unaligned(b, p, float_to_half_bits(b, load_unaligned(b, x, f32x16.llvm))),
)


@device
def store_kv(target, index, value, is_half):
    if is_half:
        store_f16(target + 2 * index, value)
    else:
        store_f32(target + 4 * index, value)


@device
def store_key(keys, first, key, head_dim, is_half):
    """A key's elements, 16 apart from `first` on."""
    size, whole = 2 if is_half else 4, head_dim // 16 * 16
    for i in range(0, whole, 16):
        store_apart(keys + size * (first + 16 * i), key + 4 * i, is_half)
    for i in range(whole, head_dim):
        store_kv(keys, first + 16 * i, load_f32(key + 4 * i), is_half)


@device
def store_value(values, first, value, value_dim, is_half):
    whole = value_dim // 16 * 16
    for i in range(0, whole, 16):
        if is_half:
            store_halves(values + 2 * (first + i), value + 4 * i)
        else:
            store_f32x16(values + 4 * (first + i), load_f32x16(value + 4 * i))
    for i in range(whole, value_dim):
        store_kv(values, first + i, load_f32(value + 4 * i), is_half)


@kernel
def rope(
    chunk,
    scratch,
    x: int,
    stride: int,
    n_heads: int,
    head_dim: int,
    n_pairs: int,
    neox: int,
    table: int,
    rope_rows: int,
):
    """Rotate all heads of row `chunk` of x in place."""
    row = table + 8 * n_pairs * load_i32(rope_rows + 4 * chunk)
    for head in range(n_heads):
        rotate(x + stride * chunk + 4 * head_dim * head, row, n_pairs, neox)


@kernel
def rope_store(
    chunk,
    scratch,
    q: int,
    k: int,
    v: int,
    q_stride: int,
    k_stride: int,
    v_stride: int,
    n_heads: int,
    n_kv_heads: int,
    head_dim: int,
    value_dim: int,
    n_pairs: int,
    neox: int,
    table: int,
    rope_rows: int,
    positions: int,
    sequences: int,
    pages: int,
    max_pages: int,
    layer_offset: int,
    head_bytes: int,
    is_half: int,
):
    """For token chunk: rotate its queries in place, rotate its keys, and store keys and values in its page."""
    position = load_i32(positions + 4 * chunk)
    row = table + 8 * n_pairs * load_i32(rope_rows + 4 * chunk)
    for head in range(n_heads):
        rotate(q + q_stride * chunk + 4 * head_dim * head, row, n_pairs, neox)
    page = page_of(pages, sequences, positions, chunk, max_pages) + layer_offset
    slot = position % PAGE
    size = 2 if is_half else 4
    for head in range(n_kv_heads):
        key = k + k_stride * chunk + 4 * head_dim * head
        rotate(key, row, n_pairs, neox)
        keys = page + head_bytes * head
        store_key(keys, slot // 16 * 16 * head_dim + slot % 16, key, head_dim, is_half)
        value = v + v_stride * chunk + 4 * value_dim * head
        store_value(keys + size * PAGE * head_dim, slot * value_dim, value, value_dim, is_half)
