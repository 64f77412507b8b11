"""Choosing experts: from a token's router logits to work items for the experts, and back to one sum a token.

route     per token: softmax over all experts, the top_k of them with their weights
group     for the batch: (token, choice) pairs sorted by expert, work items, and whether each expert is in memory
combine   per token: the weighted sum of its experts' outputs
"""

from __future__ import annotations

import math

import numpy as np

from engine.kernels.exponential import exponential
from engine.kernels.layout import ITEM_BYTES
from engine.kernels.memory import load_f32, load_i32, load_i64, store_f32, store_i32, store_i64, zero_bytes
from engine.kernels.registry import kernel
from engine.kernels.simd import (
    fma,
    load_f32x16,
    maximum,
    reduce_max,
    reduce_sum,
    splat_f32,
    store_f32x16,
    zero_f32x16,
)

_NEVER = np.float32(-1e30)


def route_reference(logits: np.ndarray, top_k: int, normalise: bool, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """logits (n_tokens, n_experts) -> experts (n_tokens, top_k) by falling weight, and their weights, float32."""
    shifted = np.exp(logits - logits.max(-1, keepdims=True))
    weights = shifted / shifted.sum(-1, keepdims=True)
    chosen = np.argsort(-weights, -1, kind="stable")[:, :top_k]
    weights = np.take_along_axis(weights, chosen, -1)
    if normalise:
        weights = weights / weights.sum(-1, keepdims=True)
    return chosen.astype(np.int32), (weights * scale).astype(np.float32)


@kernel
def route(
    chunk,
    scratch,
    logits: int,
    logits_stride: int,
    experts: int,
    weights: int,
    n_experts: int,
    top_k: int,
    normalise: int,
    scale: float,
):
    """Choose the experts of token `chunk`: by falling weight, the lower number first among equals."""
    row = logits + logits_stride * chunk
    n_padded = (n_experts + 15) // 16 * 16
    for i in range(n_experts, n_padded):
        store_f32(row + 4 * i, _NEVER)
    largest = load_f32x16(row)
    for i in range(64, 4 * n_padded, 64):
        largest = maximum(largest, load_f32x16(row + i))
    shift, total = splat_f32(reduce_max(largest)), zero_f32x16()
    for i in range(0, 4 * n_padded, 64):
        value = exponential(load_f32x16(row + i) - shift)
        store_f32x16(scratch + i, value)
        total = total + value
    chosen, kept = experts + 4 * top_k * chunk, np.float32(0.0)
    for rank in range(top_k):
        best, best_value = 0, np.float32(-1.0)
        for expert in range(n_experts):
            value = load_f32(scratch + 4 * expert)
            if value > best_value:
                best, best_value = expert, value
        store_f32(scratch + 4 * best, np.float32(-2.0))
        store_i32(chosen + 4 * rank, best)
        store_f32(weights + 4 * (top_k * chunk + rank), best_value)
        kept += best_value
    everything = reduce_sum(total)  # NaN if any logit is: no weight may hide that
    factor = np.float32(scale) / (everything if math.isnan(everything) or not normalise else kept)
    for rank in range(top_k):
        weight = weights + 4 * (top_k * chunk + rank)
        store_f32(weight, load_f32(weight) * factor)


@kernel
def group(
    chunk,
    scratch,
    experts: int,
    n_tokens: int,
    top_k: int,
    n_experts: int,
    slots: int,
    max_rows: int,
    items: int,
    n_items: int,
    pair_tokens: int,
    pair_of: int,
    n_pairs: int,
    missing: int,
    counts: int,
    last_used: int,
    clock: int,
    newest: int,
    sums: int,
    slab_bytes: int,
):
    """Sort the batch's (token, choice) pairs by expert into work items of at most `max_rows` pairs.

    `slots` holds the address of each expert's weights, 0 while it is not in memory; the number of chosen experts that
    are missing goes to the cell `missing`. When none is, `counts`, the experts' `last_used` (the value of the cell
    `clock`) and the newest token's choice are recorded, and the `sums` of all layers grow: of calls, of different
    experts used, of their bytes.
    """
    pairs = load_i64(n_tokens) * top_k
    zero_bytes(scratch, 16 * n_experts)
    starts = scratch + 8 * n_experts
    for choice in range(pairs):
        count = scratch + 8 * load_i32(experts + 4 * choice)
        store_i64(count, load_i64(count) + 1)
    first, item, n_missing = 0, items, 0
    for expert in range(n_experts):
        count = load_i64(scratch + 8 * expert)
        store_i64(starts + 8 * expert, first)
        if count > 0 and load_i64(slots + 8 * expert) == 0:
            n_missing += 1
        last = first + count
        while first < last:
            store_i64(item, expert)
            store_i64(item + 8, first)
            store_i64(item + 16, min(max_rows, last - first))
            item += ITEM_BYTES
            first = min(first + max_rows, last)
    for choice in range(pairs):
        start = starts + 8 * load_i32(experts + 4 * choice)
        pair = load_i64(start)
        store_i64(start, pair + 1)
        store_i32(pair_tokens + 4 * pair, choice // top_k)
        store_i32(pair_of + 4 * choice, pair)
    store_i64(n_items, (item - items) // ITEM_BYTES)
    store_i64(n_pairs, pairs)
    store_i64(missing, n_missing)
    if n_missing == 0:
        n_used = 0
        for expert in range(n_experts):
            calls = load_i64(scratch + 8 * expert)
            if calls > 0:
                n_used += 1
                store_i64(counts + 8 * expert, load_i64(counts + 8 * expert) + calls)
                store_i64(last_used + 8 * expert, load_i64(clock))
        for rank in range(top_k):
            store_i32(newest + 4 * rank, load_i32(experts + 4 * (pairs - top_k + rank)))
        store_i64(sums, load_i64(sums) + pairs)
        store_i64(sums + 8, load_i64(sums + 8) + n_used)
        store_i64(sums + 16, load_i64(sums + 16) + n_used * slab_bytes)


@kernel
def combine(
    chunk,
    scratch,
    x: int,
    stride: int,
    n: int,
    outputs: int,
    weights: int,
    pair_of: int,
    experts: int,
    bias: int,
    top_k: int,
    scale: float,
):
    """x[chunk] += scale * the weighted sum of its experts' outputs, in the order of their rank.

    `bias` (n_experts, n) or 0: what each expert adds to its output.
    """
    factor = splat_f32(np.float32(scale))
    for i in range(0, 4 * n, 64):
        total = zero_f32x16()
        for rank in range(top_k):
            choice = 4 * (top_k * chunk + rank)
            value = load_f32x16(outputs + stride * load_i32(pair_of + choice) + i)
            if bias != 0:
                value = value + load_f32x16(bias + 4 * n * load_i32(experts + choice) + i)
            total = fma(splat_f32(load_f32(weights + choice)), value, total)
        store_f32x16(x + stride * chunk + i, fma(total, factor, load_f32x16(x + stride * chunk + i)))


@kernel
def add_gated(chunk, scratch, x: int, y: int, stride: int, n: int, gate: int, gate_stride: int, scale: float):
    """x[chunk] += scale * sigmoid(gate[chunk]) * y[chunk]: a shared expert behind its own gate."""
    opening = zero_f32x16() - splat_f32(load_f32(gate + gate_stride * chunk))
    factor = splat_f32(np.float32(scale)) / (exponential(opening) + splat_f32(np.float32(1.0)))
    for i in range(stride * chunk, stride * chunk + 4 * n, 64):
        store_f32x16(x + i, load_f32x16(x + i) + load_f32x16(y + i) * factor)
