"""The small functions of decoder models in plain NumPy: activations, norms, rotations, the sparse mixer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Key = Callable[..., Any]  # (name, default) -> the value of a key of the architecture

_ALPHA, _LIMIT = 1.702, 7.0  # of gpt-oss' experts
_JITTER = 0.01  # of PhiMoE's router


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def softplus(x: Array) -> Array:
    return np.logaddexp(0, x)


def softmax(x: Array) -> Array:
    shifted = np.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def clamped_swiglu(gate: Array, up: Array) -> Array:
    """gpt-oss' activation."""
    gate, up = np.minimum(gate, _LIMIT), np.clip(up, -_LIMIT, _LIMIT)
    return gate * sigmoid(_ALPHA * gate) * (up + 1)


def rms_norm(x: Array, epsilon: float) -> Array:
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + epsilon)


def layer_norm(x: Array, epsilon: float) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + epsilon)


def rotated(x: Array, angles: Array, n: int, scale: float, neighbours: bool) -> Array:
    """x (n_tokens, n_heads, head_dim) with its first n values of each head turned by angles (n_tokens, n / 2)."""
    cos, sin = np.cos(angles)[:, None] * scale, np.sin(angles)[:, None] * scale
    turned = x.copy()
    first, second = (slice(0, n, 2), slice(1, n, 2)) if neighbours else (slice(0, n // 2), slice(n // 2, n))
    turned[..., first] = x[..., first] * cos - x[..., second] * sin
    turned[..., second] = x[..., first] * sin + x[..., second] * cos
    return turned


def frequencies(key: Key, weights: Mapping[str, Array], n: int, n_tokens: int, architecture: str) -> Array:
    """(n / 2,): the angle by which a position turns each pair."""
    base, kind = float(key("rope.freq_base", 10000.0)), key("rope.scaling.type", "none")
    found = base ** (-np.arange(0, n, 2) / n)
    original = int(key("rope.scaling.original_context_length", key("context_length")))
    if kind == "linear":
        found = found / float(key("rope.scaling.factor"))
    if kind == "yarn":

        def pair_that_turns(times: float) -> float:
            return n * math.log(original / (times * 2 * math.pi)) / (2 * math.log(base))

        low, high = (
            pair_that_turns(float(key(f"rope.scaling.yarn_beta_{end}", turns)))
            for end, turns in (("fast", 32.0), ("slow", 1.0))
        )
        if architecture != "gpt-oss":
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, n - 1)
        slow = np.clip((np.arange(n // 2) - low) / max(high - low, 1e-3), 0, 1)
        found = found * (1 - slow) + found / float(key("rope.scaling.factor")) * slow
    if "rope_freqs.weight" in weights:
        found = found / weights["rope_freqs.weight"]
    if "rope_factors_long.weight" in weights:
        found = found / weights[f"rope_factors_{'long' if n_tokens > original else 'short'}.weight"]
    return found


def rotation_scale(key: Key) -> float:
    """What cosines and sines are multiplied with."""
    kind = key("rope.scaling.type", "none")
    given = float(key("rope.scaling.yarn_attn_factor", key("rope.scaling.attn_factor", 0.0)))
    if given > 0:
        return given
    if kind == "yarn" and not key("rope.scaling.yarn_log_multiplier", 0.0):
        return 0.1 * math.log(float(key("rope.scaling.factor"))) + 1
    return 1.0


def margin(scores: Array, k: int) -> Array:
    """(n,): the k-th best minus the next of each row of scores (n, m); infinite where there is no next."""
    falling = -np.sort(-scores, axis=-1)
    return falling[:, k - 1] - falling[:, k] if k < scores.shape[-1] else np.full(len(scores), np.inf)


def sparse_mixer(raw: Array) -> tuple[Array, Array]:
    """PhiMoE's two experts: each the best of what is left, weighed among those whose scores are near it."""
    chosen, weights, left = [], [], raw.copy()
    for _ in range(2):
        best = left.argmax(-1)
        top = np.take_along_axis(left, best[:, None], axis=-1)
        is_far = (top - raw) / np.maximum(np.abs(raw), top) > 2 * _JITTER
        shares = softmax(np.where(is_far, -np.inf, left))
        chosen.append(best)
        weights.append(np.take_along_axis(shares, best[:, None], axis=-1)[:, 0])
        left[np.arange(len(raw)), best] = -np.inf
    return np.stack(weights, -1), np.stack(chosen, -1)
