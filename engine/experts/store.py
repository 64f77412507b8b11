"""Holds routed experts in slabs under a limit, and fills a slab from the file when an expert is first needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.errors import InvalidRequestError
from engine.loader import Loader
from engine.memory import Memory, view
from engine.models.mixture import MoeLayer
from engine.models.weights import Packing

Array = np.ndarray[Any, Any]
Key = tuple[int, int]  # index of the MoE layer, expert


class ExpertStore:
    """Slabs for `capacity` experts. A layer's slot table holds the slab addresses that kernels use; 0: not here.

    Which expert gives way is the one used longest ago (lru), least often (lfu) or loaded first (fifo).
    """

    def __init__(
        self,
        layers: list[MoeLayer],
        n_experts: int,
        capacity: int,
        memory: Memory,
        policy: str,
        counts: Array,
        last_used: Array,
    ) -> None:
        self.capacity = capacity
        self.n_loads = self.n_evictions = self.bytes_read = 0
        self.slab_bytes = max((layer.experts.slab_bytes for layer in layers), default=0)
        self._layers, self._n_experts = layers, n_experts
        start = memory.allocate("expert slabs", self.slab_bytes * capacity, "experts").address if layers else 0
        self._free = [start + self.slab_bytes * i for i in reversed(range(capacity))]
        self._loaded_at: dict[Key, int] = {}  # in the order of loading
        self._ages = {"lru": last_used, "lfu": counts, "fifo": None}[policy]
        # of each layer: (n_experts,) int64 addresses, 0 where an expert is not here
        self.slots: list[Array] = [view(layer.slots, np.int64, (n_experts,)) for layer in layers]

    def missing(self, index: int, wanted: Array) -> list[int]:
        """Those of the experts `wanted` of MoE layer `index` that are not in memory."""
        slots = self.slots[index]
        return [int(expert) for expert in np.unique(wanted) if slots[expert] == 0]

    def load(self, index: int, wanted: Array, loader: Loader) -> None:
        """Bring all experts `wanted` of MoE layer `index` into memory; none of them gives way to another."""
        needed = {int(expert) for expert in np.unique(wanted)}
        if len(needed) > self.capacity:
            raise InvalidRequestError(
                f"One step needs {len(needed)} experts of a layer at once, but the cache holds {self.capacity}."
            )
        arriving: dict[int, int] = {}  # expert -> slab
        packings: list[Packing] = []
        for expert in self.missing(index, wanted):
            arriving[expert] = self._free.pop() if self._free else self._evict(index, needed)
            packings += self._packings(index, expert, arriving[expert])
        try:
            loader.load(packings)
        except BaseException:
            self._free += arriving.values()  # their contents are unknown, so nobody may find them
            raise
        for expert, slab in arriving.items():
            self.slots[index][expert] = slab
            self._loaded_at[index, expert] = slab
        self.n_loads += len(arriving)
        self.bytes_read += sum(packing.source_bytes for packing in packings)

    def read_ahead(self, n_bytes: int, loader: Loader) -> bool:
        """Bring experts that are not in memory into free slabs, of one layer and of some `n_bytes`; none gives way.

        False when there is nothing to bring, or no room.
        """
        for index, slots in enumerate(self.slots):
            absent = np.flatnonzero(slots == 0)
            if self._free and absent.size:
                n = min(len(self._free), max(1, n_bytes // self.slab_bytes))
                self.load(index, absent[:n], loader)
                return True
        return False

    @property
    def n_resident(self) -> int:
        return len(self._loaded_at)

    def _evict(self, index: int, needed: set[int]) -> int:
        candidates = [key for key in self._loaded_at if key[0] != index or key[1] not in needed]
        ages = self._ages
        victim = candidates[0] if ages is None else min(candidates, key=lambda key: int(ages[key]))
        slab = self._loaded_at.pop(victim)
        self.slots[victim[0]][victim[1]] = 0
        self.n_evictions += 1
        return slab

    def _packings(self, index: int, expert: int, slab: int) -> list[Packing]:
        experts = self._layers[index].experts
        parts = zip((experts.gate, experts.up, experts.down), experts.sources[expert], experts.row_bytes, strict=True)
        return [
            Packing(matrix, source, row_bytes * matrix.n_rows, row_bytes, slab + matrix.address)
            for matrix, source, row_bytes in parts
        ]
