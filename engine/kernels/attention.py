"""Scaled dot-product attention of each token over the KV pages of its sequence.

Scores of all visible positions come first, then their softmax, then the weighted sum of the values: every position in
rising order, so a token's result is the same whether its prompt came in one piece or in several.
"""

from __future__ import annotations

import numpy as np

from engine.kernels.activation import quantise_block
from engine.kernels.exponential import exponential
from engine.kernels.layout import BLOCK, PAGE
from engine.kernels.memory import load_f32, load_i32, load_i64
from engine.kernels.registry import device, kernel
from engine.kernels.simd import (
    fma,
    lane_numbers,
    load_f16x16,
    load_f32x16,
    maximum,
    reduce_max,
    reduce_sum,
    select_less_equal,
    splat_f32,
    splat_i32,
    store_f32x16,
    zero_f32x16,
)

_HIDDEN = np.float32(-1e30)  # the score of a position that is not visible: its weight becomes exactly zero


def attention_reference(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float) -> np.ndarray:
    """q (n_heads, d), k (n_positions, n_kv_heads, d), v (n_positions, n_kv_heads, dv) -> (n_heads, dv), all visible."""
    group = q.shape[0] // k.shape[1]
    scores = np.einsum("hd,phd->hp", q, np.repeat(k, group, 1)) * scale
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hp,phd->hd", weights / weights.sum(-1, keepdims=True), np.repeat(v, group, 1))


@device
def load_kv(address, index, is_half):
    return load_f16x16(address + 2 * index) if is_half else load_f32x16(address + 4 * index)


@device
def key_scores(q, keys, head_dim, is_half):
    """Sixteen positions' dot products with the query at `q`."""
    a, b, c, d = zero_f32x16(), zero_f32x16(), zero_f32x16(), zero_f32x16()
    for i in range(0, head_dim, 4):
        a = fma(load_kv(keys, 16 * i, is_half), splat_f32(load_f32(q + 4 * i)), a)
        b = fma(load_kv(keys, 16 * i + 16, is_half), splat_f32(load_f32(q + 4 * i + 4)), b)
        c = fma(load_kv(keys, 16 * i + 32, is_half), splat_f32(load_f32(q + 4 * i + 8)), c)
        d = fma(load_kv(keys, 16 * i + 48, is_half), splat_f32(load_f32(q + 4 * i + 12)), d)
    return (a + b) + (c + d)


@device
def softmax_in_place(scores, n_padded):
    """Turn `n_padded` scores (a multiple of 16) into weights, not yet divided by their sum, which is returned."""
    largest = load_f32x16(scores)
    for i in range(64, 4 * n_padded, 64):
        largest = maximum(largest, load_f32x16(scores + i))
    shift = splat_f32(reduce_max(largest))
    total = zero_f32x16()
    for i in range(0, 4 * n_padded, 64):
        weight = exponential(load_f32x16(scores + i) - shift)
        store_f32x16(scores + i, weight)
        total = total + weight
    return reduce_sum(total)


@device
def add_values(values, weights, n_positions, value_dim, out, is_half):
    """out (value_dim) += the values of a page's first positions times their weights."""
    for i in range(0, value_dim, 16):
        total = load_f32x16(out + 4 * i)
        for position in range(n_positions):
            value = load_kv(values, position * value_dim + i, is_half)
            total = fma(splat_f32(load_f32(weights + 4 * position)), value, total)
        store_f32x16(out + 4 * i, total)


@kernel
def attention(
    chunk,
    scratch,
    q: int,
    q_stride: int,
    out: int,
    out_stride: int,
    rounded: int,
    rounded_stride: int,
    n_heads: int,
    n_kv_heads: int,
    head_dim: int,
    value_dim: int,
    positions: int,
    sequences: int,
    pages: int,
    max_pages: int,
    layer_offset: int,
    head_bytes: int,
    is_half: int,
    scale: float,
):
    """All query heads of one token that share KV head `chunk % n_kv_heads`; result also rounded unless `rounded` is 0.

    Scratch: (n_heads / n_kv_heads) rows of the context's length in float32.
    """
    token, kv_head = chunk // n_kv_heads, chunk % n_kv_heads
    group = n_heads // n_kv_heads
    last = load_i32(positions + 4 * token)
    n_pages = last // PAGE + 1
    row_bytes = 4 * PAGE * n_pages
    table = pages + 8 * max_pages * load_i32(sequences + 4 * token)
    first_head = kv_head * group
    queries = q + q_stride * token + 4 * head_dim * first_head
    offset = layer_offset + head_bytes * kv_head
    element = 2 if is_half else 4
    for page in range(n_pages):
        keys = load_i64(table + 8 * page) + offset
        for head in range(group):
            for part in range(PAGE // 16):
                position = page * PAGE + 16 * part
                scores = key_scores(
                    queries + 4 * head_dim * head, keys + element * 16 * part * head_dim, head_dim, is_half
                )
                visible = select_less_equal(
                    lane_numbers() + splat_i32(position), splat_i32(last), scores * splat_f32(scale), splat_f32(_HIDDEN)
                )
                store_f32x16(scratch + row_bytes * head + 4 * position, visible)
    outputs = out + out_stride * token + 4 * value_dim * first_head
    for i in range(0, 4 * value_dim * group, 64):
        store_f32x16(outputs + i, zero_f32x16())
    sums = scratch + row_bytes * group
    for head in range(group):
        total = softmax_in_place(scratch + row_bytes * head, PAGE * n_pages)
        store_f32x16(sums + 64 * head, splat_f32(np.float32(1.0) / total))
    for page in range(n_pages):
        values = load_i64(table + 8 * page) + offset + element * PAGE * head_dim
        n_positions = min(PAGE, last + 1 - page * PAGE)
        for head in range(group):
            weights = scratch + row_bytes * head + 4 * PAGE * page
            add_values(values, weights, n_positions, value_dim, outputs + 4 * value_dim * head, is_half)
    for head in range(group):
        inverse = load_f32x16(sums + 64 * head)
        for i in range(4 * value_dim * head, 4 * value_dim * (head + 1), 64):
            store_f32x16(outputs + i, load_f32x16(outputs + i) * inverse)
    if rounded != 0:
        n_blocks = n_heads * value_dim // BLOCK
        for block in range(first_head * value_dim // BLOCK, (first_head + group) * value_dim // BLOCK):
            quantise_block(
                out + out_stride * token + 4 * BLOCK * block, rounded + rounded_stride * token, block, n_blocks
            )
