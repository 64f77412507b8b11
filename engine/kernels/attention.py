"""Scaled dot-product attention of each token over the KV pages of its sequence.

Scores of all visible positions come first, then their softmax, then the weighted sum of the values: every position in
rising order, so a token's result is the same whether its prompt came in one piece or in several. Neighbouring tokens of
a prompt go together, four queries at a time, so that a key or value is loaded once for all of them.
"""

from __future__ import annotations

import numpy as np

from engine.kernels.activation import quantise_row
from engine.kernels.exponential import exponential
from engine.kernels.layout import PAGE
from engine.kernels.memory import fetch_add, load_f32, load_i32, load_i64, store_f32, store_i64
from engine.kernels.registry import device, helper, kernel
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


def attention_reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, window: int = 0, sinks: np.ndarray | None = None
) -> np.ndarray:
    """q (n_heads, d), k (n_positions, n_kv_heads, d), v (n_positions, n_kv_heads, dv) -> (n_heads, dv).

    All positions are visible, or the last `window`. `sinks` (n_heads): scores that take weight and have no value.
    """
    k, v = k[-window:], v[-window:]
    group = q.shape[0] // k.shape[1]
    scores = np.einsum("hd,phd->hp", q, np.repeat(k, group, 1)) * scale
    largest = scores.max(-1, keepdims=True)
    sink_weights = 0.0
    if sinks is not None:
        largest = np.maximum(largest, sinks[:, None])
        sink_weights = np.exp(sinks[:, None] - largest)
    weights = np.exp(scores - largest)
    return np.einsum("hp,phd->hd", weights / (weights.sum(-1, keepdims=True) + sink_weights), np.repeat(v, group, 1))


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
def key_scores_of_four(q0, q1, q2, q3, keys, head_dim, is_half):
    """The same of four queries, each with the arithmetic of `key_scores`."""
    zero = zero_f32x16()
    a0, b0, c0, d0, a1, b1, c1, d1 = zero, zero, zero, zero, zero, zero, zero, zero
    a2, b2, c2, d2, a3, b3, c3, d3 = zero, zero, zero, zero, zero, zero, zero, zero
    for i in range(0, 4 * head_dim, 16):
        key = load_kv(keys, 4 * i, is_half)
        a0, a1 = fma(key, splat_f32(load_f32(q0 + i)), a0), fma(key, splat_f32(load_f32(q1 + i)), a1)
        a2, a3 = fma(key, splat_f32(load_f32(q2 + i)), a2), fma(key, splat_f32(load_f32(q3 + i)), a3)
        key = load_kv(keys, 4 * i + 16, is_half)
        b0, b1 = fma(key, splat_f32(load_f32(q0 + i + 4)), b0), fma(key, splat_f32(load_f32(q1 + i + 4)), b1)
        b2, b3 = fma(key, splat_f32(load_f32(q2 + i + 4)), b2), fma(key, splat_f32(load_f32(q3 + i + 4)), b3)
        key = load_kv(keys, 4 * i + 32, is_half)
        c0, c1 = fma(key, splat_f32(load_f32(q0 + i + 8)), c0), fma(key, splat_f32(load_f32(q1 + i + 8)), c1)
        c2, c3 = fma(key, splat_f32(load_f32(q2 + i + 8)), c2), fma(key, splat_f32(load_f32(q3 + i + 8)), c3)
        key = load_kv(keys, 4 * i + 48, is_half)
        d0, d1 = fma(key, splat_f32(load_f32(q0 + i + 12)), d0), fma(key, splat_f32(load_f32(q1 + i + 12)), d1)
        d2, d3 = fma(key, splat_f32(load_f32(q2 + i + 12)), d2), fma(key, splat_f32(load_f32(q3 + i + 12)), d3)
    return (a0 + b0) + (c0 + d0), (a1 + b1) + (c1 + d1), (a2 + b2) + (c2 + d2), (a3 + b3) + (c3 + d3)


@device
def store_visible(target, scores, scale, position, last, window):
    """Sixteen scores from `position` on, those after `last` hidden, and with a window those before it."""
    places = lane_numbers() + splat_i32(position)
    shown = select_less_equal(places, splat_i32(last), scores * splat_f32(scale), splat_f32(_HIDDEN))
    if window != 0:
        shown = select_less_equal(splat_i32(last - window + 1), places, shown, splat_f32(_HIDDEN))
    store_f32x16(target, shown)


@device
def softmax_in_place(scores, n_padded, sink):
    """Turn `n_padded` scores (a multiple of 16) into weights, not yet divided by their sum, which is returned.

    The sum has the weight of one more score, `sink`; that of _HIDDEN is nothing.
    """
    largest = maximum(load_f32x16(scores), splat_f32(sink))
    for i in range(64, 4 * n_padded, 64):
        largest = maximum(largest, load_f32x16(scores + i))
    shift = splat_f32(reduce_max(largest))
    total = zero_f32x16()
    for i in range(0, 4 * n_padded, 64):
        weight = exponential(load_f32x16(scores + i) - shift)
        store_f32x16(scores + i, weight)
        total = total + weight
    return reduce_sum(total) + reduce_max(exponential(splat_f32(sink) - shift))


@device
def add_values(values, weights, n_positions, value_dim, out, is_half):
    """out (value_dim) += the values of a page's first positions times their weights."""
    for i in range(0, value_dim, 16):
        total = load_f32x16(out + 4 * i)
        for position in range(n_positions):
            value = load_kv(values, position * value_dim + i, is_half)
            total = fma(splat_f32(load_f32(weights + 4 * position)), value, total)
        store_f32x16(out + 4 * i, total)


@device
def add_values_of_four(values, w0, w1, w2, w3, value_dim, out0, out1, out2, out3, is_half):
    """The same of four queries that see the whole page."""
    for i in range(0, value_dim, 16):
        o = 4 * i
        t0, t1, t2, t3 = load_f32x16(out0 + o), load_f32x16(out1 + o), load_f32x16(out2 + o), load_f32x16(out3 + o)
        for position in range(PAGE):
            value, p = load_kv(values, position * value_dim + i, is_half), 4 * position
            t0, t1 = fma(splat_f32(load_f32(w0 + p)), value, t0), fma(splat_f32(load_f32(w1 + p)), value, t1)
            t2, t3 = fma(splat_f32(load_f32(w2 + p)), value, t2), fma(splat_f32(load_f32(w3 + p)), value, t3)
        store_f32x16(out0 + o, t0), store_f32x16(out1 + o, t1), store_f32x16(out2 + o, t2), store_f32x16(out3 + o, t3)


@device
def run_length(sequences, positions, first, end):
    """How many tokens from `first` on, before `end`, follow each other in one sequence."""
    n = 1
    while (
        first + n < end
        and load_i32(sequences + 4 * (first + n)) == load_i32(sequences + 4 * first)
        and load_i32(positions + 4 * (first + n)) == load_i32(positions + 4 * first) + n
    ):
        n += 1
    return n


@helper
def attend_run(
    scratch,
    q,
    q_stride,
    out,
    out_stride,
    n_tokens,
    group,
    head_dim,
    value_dim,
    table,
    offset,
    last,
    window,
    sinks,
    is_half,
    scale,
):
    """`n_tokens` neighbours, the first of which sees up to `last`; query j is head j % group of token j // group.

    `q`, `out` and `sinks` are those of the first token's first head; `table` holds the addresses of the sequence's
    pages. Pages that a window hides from all of the tokens are not looked at.
    """
    first_page = max(last - window + 1, 0) // PAGE if window != 0 else 0
    n_queries, n_pages = n_tokens * group, (last + n_tokens - 1) // PAGE + 1
    n_padded, element = PAGE * (n_pages - first_page), 2 if is_half else 4
    row_bytes = 4 * n_padded
    for page in range(first_page, n_pages):
        for part in range(PAGE // 16):
            keys = load_i64(table + 8 * page) + offset + element * 16 * part * head_dim
            position, j = page * PAGE + 16 * part, 0
            place = scratch + 4 * (position - first_page * PAGE)
            while j < n_queries:
                q0 = q + q_stride * (j // group) + 4 * head_dim * (j % group)
                row = place + row_bytes * j
                if j + 4 <= n_queries:
                    q1 = q + q_stride * ((j + 1) // group) + 4 * head_dim * ((j + 1) % group)
                    q2 = q + q_stride * ((j + 2) // group) + 4 * head_dim * ((j + 2) % group)
                    q3 = q + q_stride * ((j + 3) // group) + 4 * head_dim * ((j + 3) % group)
                    s0, s1, s2, s3 = key_scores_of_four(q0, q1, q2, q3, keys, head_dim, is_half)
                    store_visible(row, s0, scale, position, last + j // group, window)
                    store_visible(row + row_bytes, s1, scale, position, last + (j + 1) // group, window)
                    store_visible(row + 2 * row_bytes, s2, scale, position, last + (j + 2) // group, window)
                    store_visible(row + 3 * row_bytes, s3, scale, position, last + (j + 3) // group, window)
                    j += 4
                else:
                    scores = key_scores(q0, keys, head_dim, is_half)
                    store_visible(row, scores, scale, position, last + j // group, window)
                    j += 1
    sums = scratch + row_bytes * n_queries
    for j in range(n_queries):
        sink = load_f32(sinks + 4 * (j % group)) if sinks != 0 else _HIDDEN
        total = softmax_in_place(scratch + row_bytes * j, n_padded, sink)
        store_f32(sums + 4 * j, np.float32(1.0) / total)
        for i in range(0, 4 * value_dim, 64):
            store_f32x16(out + out_stride * (j // group) + 4 * value_dim * (j % group) + i, zero_f32x16())
    for page in range(first_page, n_pages):
        values, j = load_i64(table + 8 * page) + offset + element * PAGE * head_dim, 0
        while j < n_queries:
            out0 = out + out_stride * (j // group) + 4 * value_dim * (j % group)
            w = scratch + row_bytes * j + 4 * PAGE * (page - first_page)
            seen = last + j // group + 1 - page * PAGE
            if j + 4 <= n_queries and seen >= PAGE:
                out1 = out + out_stride * ((j + 1) // group) + 4 * value_dim * ((j + 1) % group)
                out2 = out + out_stride * ((j + 2) // group) + 4 * value_dim * ((j + 2) % group)
                out3 = out + out_stride * ((j + 3) // group) + 4 * value_dim * ((j + 3) % group)
                w1, w2, w3 = w + row_bytes, w + 2 * row_bytes, w + 3 * row_bytes
                add_values_of_four(values, w, w1, w2, w3, value_dim, out0, out1, out2, out3, is_half)
                j += 4
            else:
                add_values(values, w, min(PAGE, seen), value_dim, out0, is_half)
                j += 1
    for j in range(n_queries):
        inverse, row = splat_f32(load_f32(sums + 4 * j)), out + out_stride * (j // group) + 4 * value_dim * (j % group)
        for i in range(0, 4 * value_dim, 64):
            store_f32x16(row + i, load_f32x16(row + i) * inverse)


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
    heads_done: int,
    n_heads: int,
    n_kv_heads: int,
    head_dim: int,
    value_dim: int,
    n_tokens: int,
    unit: int,
    positions: int,
    sequences: int,
    pages: int,
    max_pages: int,
    layer_offset: int,
    head_bytes: int,
    is_half: int,
    window: int,
    sinks: int,
    scale: float,
):
    """The query heads of `unit` tokens that share KV head `chunk % n_kv_heads`.

    Unless `rounded` is 0, whoever finishes a token's last KV head, as counted in `heads_done`, also rounds its row.
    A token sees the last `window` positions up to its own, or all when that is 0. `sinks` (n_heads) or 0: see
    attention_reference.

    Scratch: unit * n_heads / n_kv_heads rows of the context's length in float32, and a value for each.
    """
    kv_head, group = chunk % n_kv_heads, n_heads // n_kv_heads
    first_head, token = kv_head * group, chunk // n_kv_heads * unit
    end = min(token + unit, load_i64(n_tokens))
    while token < end:
        n = run_length(sequences, positions, token, end)
        queries = q + q_stride * token + 4 * head_dim * first_head
        outputs = out + out_stride * token + 4 * value_dim * first_head
        table = pages + 8 * max_pages * load_i32(sequences + 4 * token)
        offset, last = layer_offset + head_bytes * kv_head, load_i32(positions + 4 * token)
        attend_run(
            scratch,
            queries,
            q_stride,
            outputs,
            out_stride,
            n,
            group,
            head_dim,
            value_dim,
            table,
            offset,
            last,
            window,
            sinks + 4 * first_head if sinks != 0 else 0,
            is_half,
            np.float32(scale),
        )
        if rounded != 0:
            for row in range(token, token + n):
                if fetch_add(heads_done + 8 * row, 1) + 1 == n_kv_heads:
                    store_i64(heads_done + 8 * row, 0)
                    quantise_row(out + out_stride * row, rounded + rounded_stride * row, n_heads * value_dim)
        token += n
