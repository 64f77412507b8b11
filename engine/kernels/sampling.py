"""From a row of logits to the next token: a mask, bias, penalties, top-k, top-p, min-p, temperature, a seeded draw.

top-k, top-p and min-p look at the model's own distribution; temperature reshapes what they leave. So a high temperature
varies among tokens that the model holds likely, and never lets in one that it holds absurd.
"""

from __future__ import annotations

import math

import numpy as np

from engine.kernels.memory import load_f32, load_i32, store_f32, store_i32
from engine.kernels.registry import device, helper, kernel
from engine.kernels.simd import load_f32x16, maximum, reduce_max, reduce_sum, zero_f32x16

NOT_FINITE = -1
_LONGEST_SORTED = 1024  # up to this top_k candidates are kept sorted; beyond it they come from a heap
_STRIDE = 256  # bytes of logits looked at together, so that no operation waits for the one before
_GOLDEN = 0x9E3779B97F4A7C15  # SplitMix64 (Steele, Lea, Flood 2014)


def uniform_reference(seed: int, step: int) -> float:
    """The draw in [0, 1) that belongs to a seed and a position: SplitMix64's output, upper 53 bits."""
    mask = 2**64 - 1
    z = (seed + (step + 1) * _GOLDEN) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return ((z ^ (z >> 31)) >> 11) / 2**53


@device
def uniform(seed, step):
    z = np.uint64(seed) + np.uint64(step + 1) * np.uint64(_GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.float64((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 9007199254740992.0


@device
def nothing_if_finite(logits):
    """(16,) float32: 0, but NaN where a value is NaN or infinite."""
    value = load_f32x16(logits)
    return value - value


@helper
def all_finite(logits, n):
    """Whether n logits are, with what pads their row to 16."""
    a, b, c, d = zero_f32x16(), zero_f32x16(), zero_f32x16(), zero_f32x16()
    n_whole = 4 * n // _STRIDE * _STRIDE
    for i in range(0, n_whole, _STRIDE):
        a = a + nothing_if_finite(logits + i)
        b = b + nothing_if_finite(logits + i + 64)
        c = c + nothing_if_finite(logits + i + 128)
        d = d + nothing_if_finite(logits + i + 192)
    for i in range(n_whole, 4 * n, 64):
        a = a + nothing_if_finite(logits + i)
    return reduce_sum(a + b + (c + d)) == np.float32(0.0)


@helper
def forbid(logits, n, allowed):
    """-inf for each of n logits whose bit in the mask `allowed` (int32 words, lowest bit first) is not set."""
    for first in range(0, n, 32):
        word = load_i32(allowed + first // 8)
        if word == -1:
            continue
        for i in range(first, min(first + 32, n)):
            if (word >> (i - first)) & 1 == 0:
                store_f32(logits + 4 * i, np.float32(-np.inf))


@helper
def add_bias(logits, ids, values, n):
    for i in range(n):
        logit = logits + 4 * load_i32(ids + 4 * i)
        store_f32(logit, load_f32(logit) + load_f32(values + 4 * i))


@helper
def penalise(logits, history, n_history, repetition, presence, frequency):
    """Each distinct token of the history once: divided (or multiplied, if negative), then lowered."""
    for i in range(n_history):
        token, earlier, count = load_i32(history + 4 * i), False, 1
        for j in range(i):
            if load_i32(history + 4 * j) == token:
                earlier = True
        if earlier:
            continue
        for j in range(i + 1, n_history):
            if load_i32(history + 4 * j) == token:
                count += 1
        value = load_f32(logits + 4 * token)
        value = value / repetition if value > np.float32(0.0) else value * repetition
        store_f32(logits + 4 * token, value - presence - frequency * np.float32(count))


@helper
def largest_index(logits, n):
    """The lowest index of the largest of n logits; their row is padded to 16 by -inf."""
    a = b = c = d = load_f32x16(logits)
    n_whole = 4 * n // _STRIDE * _STRIDE
    for i in range(0, n_whole, _STRIDE):
        a = maximum(a, load_f32x16(logits + i))
        b = maximum(b, load_f32x16(logits + i + 64))
        c = maximum(c, load_f32x16(logits + i + 128))
        d = maximum(d, load_f32x16(logits + i + 192))
    for i in range(n_whole, 4 * n, 64):
        a = maximum(a, load_f32x16(logits + i))
    best, first = reduce_max(maximum(maximum(a, b), maximum(c, d))), 0
    while reduce_max(load_f32x16(logits + 4 * first)) != best:
        first += 16
    while load_f32(logits + 4 * first) != best:
        first += 1
    return first


@helper
def keep_sorted(logits, n, k, ids):
    """The k best of n logits as ids by falling logit, the lower id first among equals. n is padded to 16 by -inf."""
    kept = 0
    for first in range(0, n, 16):
        if kept == k:
            threshold = load_f32(logits + 4 * load_i32(ids + 4 * (k - 1)))
            if reduce_max(load_f32x16(logits + 4 * first)) <= threshold:
                continue
        for i in range(first, min(first + 16, n)):
            value, place = load_f32(logits + 4 * i), kept
            while place > 0 and load_f32(logits + 4 * load_i32(ids + 4 * (place - 1))) < value:
                place -= 1
            if place == k:
                continue
            for j in range(min(kept, k - 1), place, -1):
                store_i32(ids + 4 * j, load_i32(ids + 4 * (j - 1)))
            store_i32(ids + 4 * place, i)
            kept = min(kept + 1, k)
    return kept


@device
def comes_first(logits, i, j):
    a, b = load_f32(logits + 4 * i), load_f32(logits + 4 * j)
    return a > b or (a == b and i < j)


@helper
def sift_down(logits, heap, n, root):
    while 2 * root + 1 < n:
        child = 2 * root + 1
        if child + 1 < n and comes_first(logits, load_i32(heap + 4 * child + 4), load_i32(heap + 4 * child)):
            child += 1
        if not comes_first(logits, load_i32(heap + 4 * child), load_i32(heap + 4 * root)):
            return
        swapped = load_i32(heap + 4 * child)
        store_i32(heap + 4 * child, load_i32(heap + 4 * root))
        store_i32(heap + 4 * root, swapped)
        root = child


@helper
def sort_by_heap(logits, n, k, top_p, min_p, total, heap):
    """Move the best of n logits to the end of `heap` until k, top_p or min_p says enough; return their number."""
    for i in range(n):
        store_i32(heap + 4 * i, i)
    for root in range(n // 2 - 1, -1, -1):
        sift_down(logits, heap, n, root)
    best = load_f32(logits + 4 * load_i32(heap))
    cumulative, kept = 0.0, 0
    while kept < k and cumulative < top_p * total:
        first = load_i32(heap)
        share = math.exp(load_f32(logits + 4 * first) - best)
        if kept > 0 and share < min_p:
            break
        cumulative += share
        last = n - 1 - kept
        store_i32(heap, load_i32(heap + 4 * last))
        store_i32(heap + 4 * last, first)
        kept += 1
        sift_down(logits, heap, last, 0)
    return kept


@helper
def sum_of_exponentials(logits, ids, n, best):
    """Over the logits of `ids`, or over all n when `ids` is 0."""
    total = 0.0
    for i in range(n):
        total += math.exp(load_f32(logits + 4 * (load_i32(ids + 4 * i) if ids != 0 else i)) - best)
    return total


@helper
def cut(logits, ids, n, top_p, min_p):
    """How many of n sorted candidates top_p and min_p leave."""
    best = load_f32(logits + 4 * load_i32(ids))
    total, cumulative = sum_of_exponentials(logits, ids, n, best), 0.0
    for i in range(n):
        share = math.exp(load_f32(logits + 4 * load_i32(ids + 4 * i)) - best)
        if i > 0 and (cumulative >= top_p * total or share < min_p):
            return i
        cumulative += share
    return n


@helper
def draw(logits, ids, n, step, temperature, point):
    """The candidate at `point` (0..1) of n tempered probabilities; `step` is 4 or -4 bytes from one id to the next."""
    best, total, cumulative = load_f32(logits + 4 * load_i32(ids)), 0.0, 0.0
    for i in range(n):
        total += math.exp((load_f32(logits + 4 * load_i32(ids + step * i)) - best) / temperature)
    for i in range(n):
        cumulative += math.exp((load_f32(logits + 4 * load_i32(ids + step * i)) - best) / temperature)
        if cumulative > point * total:
            return load_i32(ids + step * i)
    return load_i32(ids + step * (n - 1))


@kernel
def sample(
    chunk,
    scratch,
    logits: int,
    n_vocab: int,
    history: int,
    n_history: int,
    bias_ids: int,
    bias_values: int,
    n_bias: int,
    allowed: int,
    repetition: float,
    presence: float,
    frequency: float,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    seed: int,
    step: int,
    out: int,
):
    """Write the chosen token to the int32 at `out`, NOT_FINITE when a logit is not finite. Changes the logits.

    `allowed`: a mask of the tokens that may be chosen, at least one, or 0. Scratch: n_vocab int32. The logits' row is
    padded to 16 values.
    """
    if not all_finite(logits, n_vocab):
        store_i32(out, NOT_FINITE)
        return
    for i in range(n_vocab, (n_vocab + 15) // 16 * 16):
        store_f32(logits + 4 * i, np.float32(-np.inf))
    if allowed != 0:
        forbid(logits, n_vocab, allowed)
    add_bias(logits, bias_ids, bias_values, n_bias)
    if repetition != 1.0 or presence != 0.0 or frequency != 0.0:
        penalise(logits, history, n_history, np.float32(repetition), np.float32(presence), np.float32(frequency))
    if temperature <= 0.0 or top_k == 1:
        store_i32(out, largest_index(logits, n_vocab))
        return
    point = uniform(seed, step)
    if 0 < top_k <= _LONGEST_SORTED:
        kept = keep_sorted(logits, n_vocab, min(top_k, n_vocab), scratch)
        kept = cut(logits, scratch, kept, top_p, min_p)
        store_i32(out, draw(logits, scratch, kept, 4, temperature, point))
        return
    best = load_f32(logits + 4 * largest_index(logits, n_vocab))
    limit = min(top_k, n_vocab) if top_k > 0 else n_vocab
    total = sum_of_exponentials(logits, 0, n_vocab, best)
    kept = sort_by_heap(logits, n_vocab, limit, top_p, min_p, total, scratch)
    store_i32(out, draw(logits, scratch + 4 * (n_vocab - 1), kept, -4, temperature, point))
