"""Scaled dot-product attention of each token over the KV pages of its sequence.

Scores of all visible positions come first, then their softmax, then the weighted sum of the values: every position in
rising order, so a token's result is the same whether its prompt came in one piece or in several. Neighbouring tokens of
a prompt go together, eight queries at a time, so that a key or value is loaded once for all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from engine.kernels.activation import quantise_row
from engine.kernels.exponential import exponential
from engine.kernels.layout import PAGE, QUERY_BYTES, QUERY_INVERSE, QUERY_LAST, QUERY_OUT, QUERY_Q
from engine.kernels.memory import fetch_add, load_f32, load_i32, load_i64, store_f32, store_i64
from engine.kernels.registry import device, helper, kernel
from engine.kernels.simd import (
    I32,
    I64,
    define,
    f32x16,
    i32x16,
    load_f16x16,
    load_f32x16,
    load_unaligned,
    maximum,
    reduce_max,
    reduce_sum,
    splat_f32,
    splatted,
    splatted_i32,
    store_f32x16,
    store_unaligned,
    zero_f32x16,
)
from engine.kernels.together import (
    add_products,
    load_sums,
    plus,
    rows_after,
    rows_type,
    store_sums,
    sums_type,
    zero_sums,
)

_ONE = ir.Constant(I64, 1)
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


def _load_rows(n: int, place: int) -> Any:
    """(queries) -> the addresses at `place` of `n` query records."""

    def body(b: ir.IRBuilder, queries: ir.Value) -> ir.Value:
        rows: ir.Value = ir.Constant(ir.ArrayType(I64, n), ir.Undefined)
        for j in range(n):
            at = b.add(queries, ir.Constant(I64, QUERY_BYTES * j + place))
            rows = b.insert_value(rows, load_unaligned(b, at, I64), j)
        return rows

    return define(rows_type(n), (types.int64,), body)


def _store_visible(n: int) -> Any:
    """(scores, target, row_bytes, queries, scale, position, window): sixteen scores of each query, scaled.

    They are those from `position` on; what lies after a query's last position is hidden, and with a window also what
    lies before it.
    """

    def body(b: ir.IRBuilder, scores: ir.Value, target: ir.Value, row_bytes: ir.Value, *rest: ir.Value) -> None:
        queries, scale, position, window = rest
        hidden = ir.Constant(f32x16.llvm, [float(_HIDDEN)] * 16)
        places = b.add(ir.Constant(i32x16.llvm, list(range(16))), splatted_i32(b, b.trunc(position, I32)))
        for j in range(n):
            at = b.add(queries, ir.Constant(I64, QUERY_BYTES * j + QUERY_LAST))
            last = load_unaligned(b, at, I64)
            after = b.sub(last, b.select(b.icmp_signed("==", window, ir.Constant(I64, 0)), b.add(last, _ONE), window))
            seen = b.and_(
                b.icmp_signed("<=", places, splatted_i32(b, b.trunc(last, I32))),
                b.icmp_signed(">", places, splatted_i32(b, b.trunc(after, I32))),
            )
            shown = b.select(seen, b.fmul(b.extract_value(scores, j), splatted(b, scale)), hidden)
            store_unaligned(b, b.add(target, b.mul(row_bytes, ir.Constant(I64, j))), shown)

    integers = types.int64, types.int64
    arguments = (sums_type(n), *integers, types.int64, types.float32, *integers)
    return define(types.void, arguments, body)


@device
def load_halves(address, index):
    return load_f16x16(address + 2 * index)


@device
def load_floats(address, index):
    return load_f32x16(address + 4 * index)


@device
def load_kv(address, index, is_half):
    return load_halves(address, index) if is_half else load_floats(address, index)


def make_key_scores(n: int, load: Any) -> Any:
    """(queries, keys, target, row_bytes, scale, position, window, head_dim): sixteen positions' scores.

    Each query's dot products are four sums, the same whatever `n` is. More than four queries take the keys in two
    rounds, so that the sums stay in registers.
    """
    rows_of, store = _load_rows(n, QUERY_Q), _store_visible(n)
    zeros, add, both = zero_sums(n), add_products(n), plus(n)
    rounds = 2 if n > 4 else 1

    @device
    def key_scores(queries, keys, target, row_bytes, scale, position, window, head_dim):
        rows, a, b, c, d = rows_of(queries), zeros(), zeros(), zeros(), zeros()
        for i in range(0, 4 * head_dim, 16):
            a = add(a, load(keys, 4 * i), rows, i)
            b = add(b, load(keys, 4 * i + 16), rows, i + 4)
            if rounds == 1:
                c = add(c, load(keys, 4 * i + 32), rows, i + 8)
                d = add(d, load(keys, 4 * i + 48), rows, i + 12)
        scores = both(a, b)
        if rounds == 2:
            for i in range(0, 4 * head_dim, 16):
                c = add(c, load(keys, 4 * i + 32), rows, i + 8)
                d = add(d, load(keys, 4 * i + 48), rows, i + 12)
        store(both(scores, both(c, d)), target, row_bytes, queries, scale, position, window)

    return key_scores


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


def make_add_values(n: int, load_value: Any) -> Any:
    """(queries, weights, row_bytes, values, first, end, value_dim): add a page's values times their weights.

    `weights` is the first query's, of the page's first position; positions first..end are added.
    """
    rows_of, weight_rows_of, add = _load_rows(n, QUERY_OUT), rows_after(n), add_products(n)
    load, store = load_sums(n), store_sums(n)

    @device
    def add_values(queries, weights, row_bytes, values, first, end, value_dim):
        outs, weight_rows = rows_of(queries), weight_rows_of(weights, row_bytes)
        for i in range(0, value_dim, 16):
            sums = load(outs, 4 * i)
            for position in range(first, end):
                value = load_value(values, position * value_dim + i)
                sums = add(sums, value, weight_rows, 4 * position)
            store(outs, 4 * i, sums)

    return add_values


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


def make_attend_run(load: Any, element: int) -> Any:
    """Attention of neighbours over keys and values of `element` bytes each."""
    key_scores_of_one, key_scores_of_four, key_scores_of_eight = (make_key_scores(n, load) for n in (1, 4, 8))
    add_values_of_one, add_values_of_four, add_values_of_eight = (make_add_values(n, load) for n in (1, 4, 8))

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
        scale,
    ):
        """`n_tokens` neighbours, the first of which sees up to `last`; query j is head j % group of token j // group.

        `q`, `out` and `sinks` are those of the first token's first head; `table` holds the addresses of the sequence's
        pages. Pages that a window hides from all of the tokens are not looked at.
        """
        first_page = max(last - window + 1, 0) // PAGE if window != 0 else 0
        n_queries, n_pages = n_tokens * group, (last + n_tokens - 1) // PAGE + 1
        n_padded = PAGE * (n_pages - first_page)
        row_bytes = 4 * n_padded
        queries = scratch + row_bytes * n_queries
        for j in range(n_queries):
            record, token, head = queries + QUERY_BYTES * j, j // group, j % group
            store_i64(record + QUERY_Q, q + q_stride * token + 4 * head_dim * head)
            store_i64(record + QUERY_OUT, out + out_stride * token + 4 * value_dim * head)
            store_i64(record + QUERY_LAST, last + token)
        for page in range(first_page, n_pages):
            for part in range(PAGE // 16):
                keys = load_i64(table + 8 * page) + offset + element * 16 * part * head_dim
                position, j = page * PAGE + 16 * part, 0
                place = scratch + 4 * (position - first_page * PAGE)
                while j < n_queries:
                    here, row = queries + QUERY_BYTES * j, place + row_bytes * j
                    if j + 8 <= n_queries:
                        key_scores_of_eight(here, keys, row, row_bytes, scale, position, window, head_dim)
                        j += 8
                    elif j + 4 <= n_queries:
                        key_scores_of_four(here, keys, row, row_bytes, scale, position, window, head_dim)
                        j += 4
                    else:
                        key_scores_of_one(here, keys, row, row_bytes, scale, position, window, head_dim)
                        j += 1
        for j in range(n_queries):
            sink = load_f32(sinks + 4 * (j % group)) if sinks != 0 else _HIDDEN
            total = softmax_in_place(scratch + row_bytes * j, n_padded, sink)
            record = queries + QUERY_BYTES * j
            store_f32(record + QUERY_INVERSE, np.float32(1.0) / total)
            for i in range(0, 4 * value_dim, 64):
                store_f32x16(load_i64(record + QUERY_OUT) + i, zero_f32x16())
        for page in range(first_page, n_pages):
            values, j = load_i64(table + 8 * page) + offset + element * PAGE * head_dim, 0
            while j < n_queries:
                here, w = queries + QUERY_BYTES * j, scratch + row_bytes * j + 4 * PAGE * (page - first_page)
                n = 8 if j + 8 <= n_queries else 4 if j + 4 <= n_queries else 1
                seen = max(min(load_i64(here + QUERY_LAST) + 1 - page * PAGE, PAGE), 0)  # by all of them
                if n == 8:
                    add_values_of_eight(here, w, row_bytes, values, 0, seen, value_dim)
                elif n == 4:
                    add_values_of_four(here, w, row_bytes, values, 0, seen, value_dim)
                else:
                    add_values_of_one(here, w, row_bytes, values, 0, seen, value_dim)
                for t in range(1, n):
                    query, weights = here + QUERY_BYTES * t, w + row_bytes * t
                    end = min(load_i64(query + QUERY_LAST) + 1 - page * PAGE, PAGE)
                    add_values_of_one(query, weights, row_bytes, values, seen, end, value_dim)
                j += n
        for j in range(n_queries):
            record = queries + QUERY_BYTES * j
            inverse, row = splat_f32(load_f32(record + QUERY_INVERSE)), load_i64(record + QUERY_OUT)
            for i in range(0, 4 * value_dim, 64):
                store_f32x16(row + i, load_f32x16(row + i) * inverse)

    return attend_run


attend_run_halves, attend_run_floats = make_attend_run(load_halves, 2), make_attend_run(load_floats, 4)


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

    Scratch: unit * n_heads / n_kv_heads rows of the context's length in float32, and a query record for each.
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
        first_sink = sinks + 4 * first_head if sinks != 0 else 0
        run = scratch, queries, q_stride, outputs, out_stride, n, group, head_dim, value_dim, table, offset, last
        if is_half:
            attend_run_halves(*run, window, first_sink, np.float32(scale))
        else:
            attend_run_floats(*run, window, first_sink, np.float32(scale))
        if rounded != 0:
            for row in range(token, token + n):
                if fetch_add(heads_done + 8 * row, 1) + 1 == n_kv_heads:
                    store_i64(heads_done + 8 * row, 0)
                    quantise_row(out + out_stride * row, rounded + rounded_stride * row, n_heads * value_dim)
        token += n
