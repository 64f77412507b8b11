"""Chooses which experts give way: those used longest ago (lru), least often (lfu) or loaded first (fifo)."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_LOADS_BITS = 32  # the lower bits of a rank: which of two equally old experts was loaded first


class Victims:
    """Ranks of all experts, for arrays of the shape (n_moe_layers, n_experts) that others keep."""

    def __init__(self, policy: str, last_used: Array, counts: Array) -> None:
        self._ages = {"lru": last_used, "lfu": counts, "fifo": None}[policy]

    def choose(self, n: int, candidates: Array, loaded_at: Array) -> list[tuple[int, int]]:
        """At most `n` (MoE layer, expert) pairs of the `candidates` (bool), the first to go first.

        loaded_at: the number of each expert's load (int64).
        """
        places = np.flatnonzero(candidates)
        n = min(n, len(places))
        if n <= 0:
            return []
        ranks = loaded_at.reshape(-1)[places]
        if self._ages is not None:
            ranks = ranks + (self._ages.reshape(-1)[places] << _LOADS_BITS)
        first = np.argpartition(ranks, n - 1)[:n]
        chosen = places[first[np.argsort(ranks[first])]]
        return [divmod(int(place), candidates.shape[1]) for place in chosen]
