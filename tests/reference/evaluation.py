"""What a reference records for a prompt beside its logits: routes, and the greedy continuation with its gaps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

N_GREEDY = 24


@dataclass(frozen=True, slots=True)
class Routes:
    """Experts chosen by falling weight; `margin` is the router's k-th minus (k+1)-th raw output (inf where k = all)."""

    idx: np.ndarray  # (n_moe_layers, n_tokens, k) int16
    w: np.ndarray  # (n_moe_layers, n_tokens, k) float32
    margin: np.ndarray  # (n_moe_layers, n_tokens) float32


def make_routes(raw: np.ndarray, weights: np.ndarray, chosen: np.ndarray) -> Routes:
    """Routes from routers' raw outputs (layers, tokens, experts) and their choice (layers, tokens, k)."""
    order = np.argsort(-weights, axis=-1, kind="stable")
    falling = -np.sort(-raw, axis=-1)
    k = chosen.shape[-1]
    margin = falling[..., k - 1] - falling[..., k] if k < raw.shape[-1] else np.full(raw.shape[:2], np.inf)
    return Routes(
        np.take_along_axis(chosen, order, axis=-1).astype(np.int16),
        np.take_along_axis(weights, order, axis=-1).astype(np.float32),
        margin.astype(np.float32),
    )


def greedy(
    logits_of: Callable[[list[int]], np.ndarray], ids: list[int], n_tokens: int = N_GREEDY
) -> tuple[np.ndarray, np.ndarray]:
    """The most likely next tokens, int32, each from a whole uncached pass, and the gaps to the second best."""
    ids, gaps = list(ids), []
    for _ in range(n_tokens):
        last = logits_of(ids)[-1]
        best, second = np.argsort(-last, kind="stable")[:2]
        ids.append(int(best))
        gaps.append(last[best] - last[second])
    return np.array(ids[-n_tokens:], np.int32), np.array(gaps, np.float32)
