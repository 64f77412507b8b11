"""Choosing two experts as PhiMoE's sparse mixer does: each by a softmax over those that come close to the best."""

from __future__ import annotations

import math

import numpy as np

from engine.kernels.exponential import exponential
from engine.kernels.memory import load_f32, store_f32, store_i32
from engine.kernels.registry import device, kernel
from engine.kernels.simd import load_f32x16, reduce_sum, splat_f32, zero_f32x16

_HIDDEN = np.float32(-1e30)


def route_sparse_reference(logits: np.ndarray, jitter: float) -> tuple[np.ndarray, np.ndarray]:
    """logits (n_tokens, n_experts) -> two experts a token by falling weight, and their weights (Liu et al. 2024).

    An expert takes part in a softmax if it is within 2 * `jitter` of the best, relative to the larger of the best and
    its own magnitude. The second softmax leaves the first choice out.
    """
    chosen, weights, left = [], [], logits.astype(np.float32)
    for _ in range(2):
        best = left.argmax(-1)
        largest = np.take_along_axis(left, best[:, None], -1)
        distance = (largest - logits) / np.maximum(np.abs(logits), largest)
        shown = np.where(distance > 2 * jitter, -np.inf, left)
        shares = np.exp(shown - largest)
        chosen.append(best)
        weights.append(1 / shares.sum(-1))
        left = left.copy()
        np.put_along_axis(left, best[:, None], -np.inf, -1)
    experts, shares = np.stack(chosen, 1), np.stack(weights, 1)
    order = np.argsort(-shares, -1, kind="stable")
    return np.take_along_axis(experts, order, 1).astype(np.int32), np.take_along_axis(shares, order, 1)


@device
def choose_close(logits, scratch, n_experts, n_padded, taken, jitter):
    """The best expert but `taken` (-1: none), and its weight among those that come close."""
    best, largest = -1, _HIDDEN
    for expert in range(n_experts):
        value = load_f32(logits + 4 * expert)
        if expert != taken and (best < 0 or value > largest):
            best, largest = expert, value
    for expert in range(n_padded):
        shown = _HIDDEN
        if expert < n_experts and expert != taken:
            value = load_f32(logits + 4 * expert)
            if not (largest - value) / max(abs(value), largest) > np.float32(2.0) * jitter:
                shown = value
        store_f32(scratch + 4 * expert, shown)
    shift, total = splat_f32(largest), zero_f32x16()
    for i in range(0, 4 * n_padded, 64):
        total = total + exponential(load_f32x16(scratch + i) - shift)
    return best, np.float32(1.0) / reduce_sum(total)


@kernel
def route_sparse(
    chunk,
    scratch,
    logits: int,
    logits_stride: int,
    experts: int,
    weights: int,
    n_experts: int,
    top_k: int,
    jitter: float,
):
    """Choose the two experts of token `chunk` (top_k is 2): see route_sparse_reference."""
    row, n_padded = logits + logits_stride * chunk, (n_experts + 15) // 16 * 16
    everything = np.float32(0.0)
    for i in range(n_experts):
        everything += load_f32(row + 4 * i) * np.float32(0.0)
    first, first_weight = choose_close(row, scratch, n_experts, n_padded, -1, np.float32(jitter))
    second, second_weight = choose_close(row, scratch, n_experts, n_padded, first, np.float32(jitter))
    if second_weight > first_weight:
        first, second, first_weight, second_weight = second, first, second_weight, first_weight
    if math.isnan(everything):
        first_weight, second_weight = everything, everything
    store_i32(experts + 8 * chunk, first)
    store_i32(experts + 8 * chunk + 4, second)
    store_f32(weights + 8 * chunk, first_weight)
    store_f32(weights + 8 * chunk + 4, second_weight)
