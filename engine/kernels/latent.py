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
def scores_of_one(q, rows, width, n_positions, out, scale, is_half):
    for position in range(n_positions):
        total = zero_f32x16()
        for i in range(0, width, 16):
            total = fma(load_kv(rows, position * width + i, is_half), load_f32x16(q + 4 * i), total)
        store_f32(out + 4 * position, reduce_sum(total) * scale)


@device
def store_four(target, step, a, b, c, d, scale):
    store_f32(target, reduce_sum(a) * scale)
    store_f32(target + step, reduce_sum(b) * scale)
    store_f32(target + 2 * step, reduce_sum(c) * scale)
    store_f32(target + 3 * step, reduce_sum(d) * scale)


@device
def scores_of_four(q, q_step, rows, width, n_positions, out, out_step, scale, is_half):
    """Four queries' scores of a page's first positions, two positions at a time: eight sums hide a sum's latency."""
    zero = zero_f32x16()
    for position in range(0, n_positions - 1, 2):
        a, b, c, d, e, f, g, h = zero, zero, zero, zero, zero, zero, zero, zero
        for i in range(0, width, 16):
            first = load_kv(rows, position * width + i, is_half)
            second, place = load_kv(rows, (position + 1) * width + i, is_half), q + 4 * i
            q0, q1 = load_f32x16(place), load_f32x16(place + q_step)
            q2, q3 = load_f32x16(place + 2 * q_step), load_f32x16(place + 3 * q_step)
            a, b, c, d = fma(first, q0, a), fma(first, q1, b), fma(first, q2, c), fma(first, q3, d)
            e, f, g, h = fma(second, q0, e), fma(second, q1, f), fma(second, q2, g), fma(second, q3, h)
        store_four(out + 4 * position, out_step, a, b, c, d, scale)
        store_four(out + 4 * position + 4, out_step, e, f, g, h, scale)
    if n_positions % 2 == 1:
        last = n_positions - 1
        for j in range(4):
            row = rows + last * width * (2 if is_half else 4)
            scores_of_one(q + q_step * j, row, width, 1, out + 4 * last + out_step * j, scale, is_half)


@device
def latents_of_one(weights, rows, width, n_positions, first, n_latent, out, is_half):
    """out (n_latent) += a page's first latents, times their weights, from value `first` on."""
    for i in range(first, n_latent, 16):
        total = load_f32x16(out + 4 * i)
        for position in range(n_positions):
            value = load_kv(rows, position * width + i, is_half)
            total = fma(splat_f32(load_f32(weights + 4 * position)), value, total)
        store_f32x16(out + 4 * i, total)


@device
def latents_of_four(weights, step, rows, width, n_positions, n_latent, out, is_half):
    """out (four of n_latent) += a page's first latents, times their weights; 32 values at a time, then what is left."""
    for i in range(0, n_latent // 32 * 32, 32):
        p0 = out + 4 * i
        p1, p2, p3 = p0 + 4 * n_latent, p0 + 8 * n_latent, p0 + 12 * n_latent
        a, b, c, d = load_f32x16(p0), load_f32x16(p1), load_f32x16(p2), load_f32x16(p3)
        e, f, g, h = load_f32x16(p0 + 64), load_f32x16(p1 + 64), load_f32x16(p2 + 64), load_f32x16(p3 + 64)
        for position in range(n_positions):
            first, w = load_kv(rows, position * width + i, is_half), weights + 4 * position
            second = load_kv(rows, position * width + i + 16, is_half)
            w0, w1 = splat_f32(load_f32(w)), splat_f32(load_f32(w + step))
            w2, w3 = splat_f32(load_f32(w + 2 * step)), splat_f32(load_f32(w + 3 * step))
            a, b, c, d = fma(w0, first, a), fma(w1, first, b), fma(w2, first, c), fma(w3, first, d)
            e, f, g, h = fma(w0, second, e), fma(w1, second, f), fma(w2, second, g), fma(w3, second, h)
        store_f32x16(p0, a), store_f32x16(p1, b), store_f32x16(p2, c), store_f32x16(p3, d)
        store_f32x16(p0 + 64, e), store_f32x16(p1 + 64, f), store_f32x16(p2 + 64, g), store_f32x16(p3 + 64, h)
    if n_latent % 32 != 0:
        for j in range(4):
            own = out + 4 * n_latent * j
            latents_of_one(weights + step * j, rows, width, n_positions, n_latent - 16, n_latent, own, is_half)


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
    heads_per_chunk: int,
    row_chunks: int,
    positions: int,
    sequences: int,
    pages: int,
    max_pages: int,
    layer_offset: int,
    is_half: int,
    scale: float,
):
    """Some heads of one token: out (n_heads, n_latent) is the latents that each head attends to.

    A page is taken through all heads of the chunk while it is in the cache, LATENT_HEADS_TOGETHER of them at a time.
    Scratch: for each head of the chunk a row of the context's length in float32.
    """
    token, first_head = chunk // row_chunks, chunk % row_chunks * heads_per_chunk
    n_here, width = min(heads_per_chunk, n_heads - first_head), n_latent + n_rope
    q = queries + queries_stride * token + 4 * width * first_head
    result = out + out_stride * token + 4 * n_latent * first_head
    table = pages + 8 * max_pages * load_i32(sequences + 4 * token)
    n_seen = load_i32(positions + 4 * token) + 1
    n_pages = (n_seen + PAGE - 1) // PAGE
    step, n_fours = 4 * PAGE * n_pages, n_here // LATENT_HEADS_TOGETHER * LATENT_HEADS_TOGETHER
    for page in range(n_pages):
        rows, n = load_i64(table + 8 * page) + layer_offset, min(PAGE, n_seen - page * PAGE)
        place = scratch + 4 * PAGE * page
        for j in range(0, n_fours, LATENT_HEADS_TOGETHER):
            own = q + 4 * width * j
            scores_of_four(own, 4 * width, rows, width, n, place + step * j, step, np.float32(scale), is_half)
        for j in range(n_fours, n_here):
            scores_of_one(q + 4 * width * j, rows, width, n, place + step * j, np.float32(scale), is_half)
    for j in range(n_here):
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
        for j in range(0, n_fours, LATENT_HEADS_TOGETHER):
            own = result + 4 * n_latent * j
            latents_of_four(weights + step * j, step, rows, width, n, n_latent, own, is_half)
        for j in range(n_fours, n_here):
            latents_of_one(weights + step * j, rows, width, n, 0, n_latent, result + 4 * n_latent * j, is_half)
