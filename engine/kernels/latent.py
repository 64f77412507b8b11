"""Attention over compressed keys and values: one latent and one rotated key a position, shared by all heads.

DeepSeek's multi-head latent attention (DeepSeek-AI 2024, section 2.1), with the matrices that would expand a latent to
keys and values absorbed into queries and outputs. A page holds for each layer

    rows     (PAGE, n_latent + n_rope): a position's latent, which is key and value at once, then its rotated key
"""

from __future__ import annotations

import numpy as np

from engine.kernels.attention import load_kv, softmax_in_place
from engine.kernels.layout import LATENT_HEADS_TOGETHER, PAGE
from engine.kernels.memory import load_f32, load_i32, load_i64, store_f32
from engine.kernels.registry import device, kernel
from engine.kernels.rope import page_of, rotate, store_kv
from engine.kernels.simd import (
    fma,
    load_f32x16,
    reduce_sum,
    splat_f32,
    store_f32x16,
    zero_f32x16,
)

_HIDDEN = np.float32(-1e30)


def latent_attention_reference(q: np.ndarray, rows: np.ndarray, n_latent: int, scale: float) -> np.ndarray:
    """q (n_heads, n_latent + n_rope), rows (n_positions, n_latent + n_rope) -> (n_heads, n_latent)."""
    scores = q @ rows.T * scale
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ rows[:, :n_latent]


@kernel
def latent_store(
    chunk,
    scratch,
    q: int,
    q_stride: int,
    queries: int,
    queries_stride: int,
    kv: int,
    kv_stride: int,
    n_heads: int,
    n_plain: int,
    n_latent: int,
    n_pairs: int,
    neox: int,
    table: int,
    rope_rows: int,
    positions: int,
    sequences: int,
    pages: int,
    max_pages: int,
    layer_offset: int,
    is_half: int,
):
    """For token chunk: the rotated parts of its queries go behind their latent parts; its own row goes into its page.

    q (n_heads, n_plain + n_rope), queries (n_heads, n_latent + n_rope), kv (n_latent + n_rope); n_rope is 2 * n_pairs.
    """
    position, n_rope = load_i32(positions + 4 * chunk), 2 * n_pairs
    row = table + 8 * n_pairs * load_i32(rope_rows + 4 * chunk)
    width = n_latent + n_rope
    for head in range(n_heads):
        source = q + q_stride * chunk + 4 * (head * (n_plain + n_rope) + n_plain)
        target = queries + queries_stride * chunk + 4 * (head * width + n_latent)
        for i in range(n_rope):
            store_f32(target + 4 * i, load_f32(source + 4 * i))
        rotate(target, row, n_pairs, neox)
    own = kv + kv_stride * chunk
    rotate(own + 4 * n_latent, row, n_pairs, neox)
    page = page_of(pages, sequences, positions, chunk, max_pages) + layer_offset
    for i in range(width):
        store_kv(page, position % PAGE * width + i, load_f32(own + 4 * i), is_half)


@device
def scores_of_four(q, q_step, rows, width, n_positions, out, out_step, scale, is_half):
    """Four queries' scores of a page's first positions."""
    for position in range(n_positions):
        a, b, c, d = zero_f32x16(), zero_f32x16(), zero_f32x16(), zero_f32x16()
        for i in range(0, width, 16):
            key, place = load_kv(rows, position * width + i, is_half), q + 4 * i
            a, b = fma(key, load_f32x16(place), a), fma(key, load_f32x16(place + q_step), b)
            c, d = fma(key, load_f32x16(place + 2 * q_step), c), fma(key, load_f32x16(place + 3 * q_step), d)
        target = out + 4 * position
        store_f32(target, reduce_sum(a) * scale)
        store_f32(target + out_step, reduce_sum(b) * scale)
        store_f32(target + 2 * out_step, reduce_sum(c) * scale)
        store_f32(target + 3 * out_step, reduce_sum(d) * scale)


@device
def scores_of_one(q, rows, width, n_positions, out, scale, is_half):
    for position in range(n_positions):
        total = zero_f32x16()
        for i in range(0, width, 16):
            total = fma(load_kv(rows, position * width + i, is_half), load_f32x16(q + 4 * i), total)
        store_f32(out + 4 * position, reduce_sum(total) * scale)


@device
def latents_of_four(weights, step, rows, width, n_positions, n_latent, out, is_half):
    """out (four of n_latent) += a page's first latents, times their weights."""
    for i in range(0, n_latent, 16):
        first = out + 4 * i
        second, third, fourth = first + 4 * n_latent, first + 8 * n_latent, first + 12 * n_latent
        a, b, c, d = load_f32x16(first), load_f32x16(second), load_f32x16(third), load_f32x16(fourth)
        for position in range(n_positions):
            value, w = load_kv(rows, position * width + i, is_half), weights + 4 * position
            a, b = fma(splat_f32(load_f32(w)), value, a), fma(splat_f32(load_f32(w + step)), value, b)
            c = fma(splat_f32(load_f32(w + 2 * step)), value, c)
            d = fma(splat_f32(load_f32(w + 3 * step)), value, d)
        store_f32x16(first, a), store_f32x16(second, b), store_f32x16(third, c), store_f32x16(fourth, d)


@device
def latents_of_one(weights, rows, width, n_positions, n_latent, out, is_half):
    for i in range(0, n_latent, 16):
        total = load_f32x16(out + 4 * i)
        for position in range(n_positions):
            value = load_kv(rows, position * width + i, is_half)
            total = fma(splat_f32(load_f32(weights + 4 * position)), value, total)
        store_f32x16(out + 4 * i, total)


@kernel
def latent_attention(
    chunk,
    scratch,
    queries: int,
    queries_stride: int,
    out: int,
    out_stride: int,
    n_heads: int,
    n_latent: int,
    n_rope: int,
    row_chunks: int,
    positions: int,
    sequences: int,
    pages: int,
    max_pages: int,
    layer_offset: int,
    is_half: int,
    scale: float,
):
    """LATENT_HEADS_TOGETHER heads of one token: out (n_heads, n_latent) is the latents that each head attends to.

    Scratch: for each of the heads a row of the context's length in float32.
    """
    token, first_head = chunk // row_chunks, chunk % row_chunks * LATENT_HEADS_TOGETHER
    n_together, width = min(LATENT_HEADS_TOGETHER, n_heads - first_head), n_latent + n_rope
    q = queries + queries_stride * token + 4 * width * first_head
    result = out + out_stride * token + 4 * n_latent * first_head
    table = pages + 8 * max_pages * load_i32(sequences + 4 * token)
    n_seen = load_i32(positions + 4 * token) + 1
    n_pages = (n_seen + PAGE - 1) // PAGE
    step = 4 * PAGE * n_pages
    for page in range(n_pages):
        rows, n = load_i64(table + 8 * page) + layer_offset, min(PAGE, n_seen - page * PAGE)
        place = scratch + 4 * PAGE * page
        if n_together == LATENT_HEADS_TOGETHER:
            scores_of_four(q, 4 * width, rows, width, n, place, step, np.float32(scale), is_half)
        else:
            for j in range(n_together):
                scores_of_one(q + 4 * width * j, rows, width, n, place + step * j, np.float32(scale), is_half)
    for j in range(n_together):
        for position in range(n_seen, PAGE * n_pages):
            store_f32(scratch + step * j + 4 * position, _HIDDEN)
        inverse = splat_f32(np.float32(1.0) / softmax_in_place(scratch + step * j, PAGE * n_pages, _HIDDEN))
        for i in range(0, step, 64):
            store_f32x16(scratch + step * j + i, load_f32x16(scratch + step * j + i) * inverse)
        for i in range(0, 4 * n_latent, 64):
            store_f32x16(result + 4 * n_latent * j + i, zero_f32x16())
    for page in range(n_pages):
        rows, n = load_i64(table + 8 * page) + layer_offset, min(PAGE, n_seen - page * PAGE)
        weights = scratch + 4 * PAGE * page
        if n_together == LATENT_HEADS_TOGETHER:
            latents_of_four(weights, step, rows, width, n, n_latent, result, is_half)
        else:
            for j in range(n_together):
                latents_of_one(weights + step * j, rows, width, n, n_latent, result + 4 * n_latent * j, is_half)
