"""Choosing experts by scores other than a plain softmax: sigmoids, correction biases, groups of experts.

Scores are softmax or sigmoid of the router's logits. The choice is made by score plus correction bias (DeepSeek-V3), in
the best groups of experts only (DeepSeek-V2 and -V3); the weights are the scores alone.
"""

from __future__ import annotations

import math

import numpy as np

from engine.kernels.exponential import exponential
from engine.kernels.memory import load_f32, load_i32, store_f32, store_i32
from engine.kernels.registry import device, kernel
from engine.kernels.simd import (
    load_f32x16,
    maximum,
    reduce_max,
    reduce_sum,
    splat_f32,
    store_f32x16,
    zero_f32x16,
)

_NEVER = np.float32(-1e30)
_TAKEN = np.float32(-2e30)
_GONE = np.float32(-4e30)  # below what best_place begins with


def route_scored_reference(
    logits: np.ndarray,
    bias: np.ndarray | None,
    top_k: int,
    *,
    sigmoid: bool,
    groups: tuple[int, int, int] = (1, 1, 1),
    normalise: bool = False,
    epsilon: float = 0.0,
    scale: float = 1.0,
) -> tuple[np.ndarray, np.ndarray]:
    """logits (n_tokens, n_experts) -> experts (n_tokens, top_k) by falling weight, and their weights, float32.

    groups: how many there are, how many may be used, and how many of a group's best choices are summed to rank it.
    """
    n_tokens, n_experts = logits.shape
    if sigmoid:
        scores = 1 / (1 + np.exp(-logits))
    else:
        scores = np.exp(logits - logits.max(-1, keepdims=True))
        scores = scores / scores.sum(-1, keepdims=True)
    choice = scores + (0 if bias is None else bias)
    n_groups, n_used, n_best = groups
    members = choice.reshape(n_tokens, n_groups, n_experts // n_groups)
    group_scores = np.sort(members, -1)[..., -n_best:].sum(-1)
    used = np.argsort(-group_scores, -1, kind="stable")[:, :n_used]
    allowed = np.zeros((n_tokens, n_groups), bool)
    np.put_along_axis(allowed, used, True, -1)
    choice = np.where(np.repeat(allowed, n_experts // n_groups, -1), choice, -np.inf)
    chosen = np.argsort(-choice, -1, kind="stable")[:, :top_k]
    weights = np.take_along_axis(scores, chosen, -1)
    order = np.argsort(-weights, -1, kind="stable")
    chosen, weights = np.take_along_axis(chosen, order, -1), np.take_along_axis(weights, order, -1)
    if normalise:
        weights = weights / (weights.sum(-1, keepdims=True) + epsilon)
    return chosen.astype(np.int32), (weights * scale).astype(np.float32)


@device
def softmax_scores(logits, scores, n_padded):
    largest = load_f32x16(logits)
    for i in range(64, 4 * n_padded, 64):
        largest = maximum(largest, load_f32x16(logits + i))
    shift, total = splat_f32(reduce_max(largest)), zero_f32x16()
    for i in range(0, 4 * n_padded, 64):
        value = exponential(load_f32x16(logits + i) - shift)
        store_f32x16(scores + i, value)
        total = total + value
    inverse = splat_f32(np.float32(1.0) / reduce_sum(total))
    for i in range(0, 4 * n_padded, 64):
        store_f32x16(scores + i, load_f32x16(scores + i) * inverse)


@device
def sigmoid_scores(logits, scores, n_padded):
    one = splat_f32(np.float32(1.0))
    for i in range(0, 4 * n_padded, 64):
        store_f32x16(scores + i, one / (one + exponential(zero_f32x16() - load_f32x16(logits + i))))


@device
def best_place(values, n):
    """The place of the largest of n float32, the first among equals; 0 where all are NaN."""
    best, best_value = 0, np.float32(-3e30)
    for i in range(n):
        value = load_f32(values + 4 * i)
        if value > best_value:
            best, best_value = i, value
    return best


@device
def rank_groups(choice, ranks, n_groups, n_members, n_best):
    """The sum of each group's `n_best` (1 or 2) largest choices."""
    for group in range(n_groups):
        first, second = _TAKEN, _TAKEN
        for i in range(n_members):
            value = load_f32(choice + 4 * (group * n_members + i))
            if value > first:
                first, second = value, first
            elif value > second:
                second = value
        store_f32(ranks + 4 * group, first if n_best == 1 else first + second)


@device
def keep_best_groups(choice, ranks, n_groups, n_used, n_members):
    """Let no expert be chosen outside of the `n_used` best groups; the ranks are used up."""
    for _ in range(n_used):
        store_f32(ranks + 4 * best_place(ranks, n_groups), _GONE)
    for group in range(n_groups):
        if load_f32(ranks + 4 * group) > _TAKEN:
            for i in range(n_members):
                store_f32(choice + 4 * (group * n_members + i), _NEVER)


@device
def insert_by_weight(chosen, weights, rank, expert, weight):
    """Put an expert among the `rank` that are there, by falling weight, after its equals."""
    while rank > 0 and load_f32(weights + 4 * (rank - 1)) < weight:
        store_i32(chosen + 4 * rank, load_i32(chosen + 4 * (rank - 1)))
        store_f32(weights + 4 * rank, load_f32(weights + 4 * (rank - 1)))
        rank -= 1
    store_i32(chosen + 4 * rank, expert)
    store_f32(weights + 4 * rank, weight)


@kernel
def route_scored(
    chunk,
    scratch,
    logits: int,
    logits_stride: int,
    bias: int,
    experts: int,
    weights: int,
    n_experts: int,
    top_k: int,
    n_groups: int,
    n_groups_used: int,
    n_group_best: int,
    sigmoid: int,
    normalise: int,
    epsilon: float,
    scale: float,
):
    """Choose the experts of token `chunk`: see route_scored_reference. `bias` (n_experts) may be 0: none.

    Scratch: twice the experts, padded to 16, and the groups, float32.
    """
    row, n_padded = logits + logits_stride * chunk, (n_experts + 15) // 16 * 16
    choice, ranks = scratch + 4 * n_padded, scratch + 8 * n_padded
    everything = np.float32(0.0)  # NaN if any logit is: no weight may hide that
    for i in range(n_experts):
        everything += load_f32(row + 4 * i) * np.float32(0.0)
    for i in range(n_experts, n_padded):
        store_f32(row + 4 * i, _NEVER)
    if sigmoid:
        sigmoid_scores(row, scratch, n_padded)
    else:
        softmax_scores(row, scratch, n_padded)
    for i in range(n_experts):
        score = load_f32(scratch + 4 * i)
        store_f32(choice + 4 * i, score + load_f32(bias + 4 * i) if bias != 0 else score)
    if n_groups > 1:
        rank_groups(choice, ranks, n_groups, n_experts // n_groups, n_group_best)
        keep_best_groups(choice, ranks, n_groups, n_groups_used, n_experts // n_groups)
    chosen, kept_weights, kept = experts + 4 * top_k * chunk, weights + 4 * top_k * chunk, np.float32(0.0)
    for rank in range(top_k):
        expert = best_place(choice, n_experts)
        store_f32(choice + 4 * expert, _TAKEN)
        weight = load_f32(scratch + 4 * expert)
        insert_by_weight(chosen, kept_weights, rank, expert, weight)
        kept += weight
    divisor = kept + np.float32(epsilon) if normalise else np.float32(1.0)
    factor = everything if math.isnan(everything) else np.float32(scale) / divisor
    for rank in range(top_k):
        store_f32(kept_weights + 4 * rank, load_f32(kept_weights + 4 * rank) * factor)
