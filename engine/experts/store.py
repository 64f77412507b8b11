"""Holds routed experts in slabs under a limit, and fills a slab from the file when an expert is first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from engine.errors import InvalidRequestError
from engine.experts.victims import Victims
from engine.loader import Loader
from engine.memory import Memory, ask_for_pages, view
from engine.models.mixture import MoeLayer
from engine.models.weights import Packing

Array = np.ndarray[Any, Any]


class ExpertStore:
    """Slabs for `capacity` experts. A layer's slot table holds the slab addresses that kernels use; 0: not here."""

    def __init__(
        self,
        layers: list[MoeLayer],
        n_experts: int,
        capacity: int,
        memory: Memory,
        victims: Victims,
        check_source: Callable[[], None],
    ) -> None:
        """check_source: raises when the file is no longer what it was."""
        self.capacity = capacity
        self.asks_disk = True  # whether experts come from the disk, as far as is known
        self.n_loads = self.n_evictions = self.bytes_read = 0
        self.slab_bytes = max((layer.experts.slab_bytes for layer in layers), default=0)
        self._layers = layers
        start = memory.allocate("expert slabs", self.slab_bytes * capacity, "experts").address if layers else 0
        self._free = [start + self.slab_bytes * i for i in reversed(range(capacity))]
        self._loaded_at = np.zeros((len(layers), n_experts), np.int64)  # the number of a load; 0: it is not here
        self._n_placed = 0
        self._victims, self._check_source = victims, check_source
        # of each layer: (n_experts,) int64 addresses, 0 where an expert is not here
        self.slots: list[Array] = [view(layer.slots, np.int64, (n_experts,)) for layer in layers]

    def missing(self, index: int, wanted: Array) -> list[int]:
        """Those of the experts `wanted` of MoE layer `index` that are not in memory."""
        slots = self.slots[index]
        return [int(expert) for expert in np.unique(wanted) if slots[expert] == 0]

    def load(self, index: int, wanted: Array, loader: Loader) -> None:
        """Bring all experts `wanted` of MoE layer `index` into memory; none of them gives way to another.

        All of them are asked of the disk before the first is waited for. Raises InvalidRequestError, and
        ModelFormatError where the file has become shorter.
        """
        missing, n_needed = self.missing(index, wanted), len(np.unique(wanted))
        if n_needed > self.capacity:
            raise InvalidRequestError(
                f"One step needs {n_needed} experts of a layer at once, but the cache holds {self.capacity}."
            )
        self._check_source()
        slabs = self._take_slabs(len(missing), index, wanted)
        packings: list[Packing] = []
        for expert, slab in zip(missing, slabs, strict=True):
            packings += self._packings(index, expert, slab)
        try:
            for packing in packings if self.asks_disk else ():
                ask_for_pages(packing.source, packing.source_bytes)
            loader.load(packings)
        except BaseException:
            self._free += slabs  # their contents are unknown, so nobody may find them
            raise
        for expert, slab in zip(missing, slabs, strict=True):
            self._n_placed += 1
            self._loaded_at[index, expert] = self._n_placed
            self.slots[index][expert] = slab
        self.n_loads += len(missing)
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
        return int(np.count_nonzero(self._loaded_at))

    def _take_slabs(self, n: int, index: int, wanted: Array) -> list[int]:
        """Slabs for `n` experts of MoE layer `index`, of which those that are `wanted` stay."""
        slabs = [self._free.pop() for _ in range(min(n, len(self._free)))]
        if len(slabs) < n:
            candidates = self._loaded_at > 0
            candidates[index, wanted] = False
            for layer, expert in self._victims.choose(n - len(slabs), candidates, self._loaded_at):
                slabs.append(int(self.slots[layer][expert]))
                self.slots[layer][expert] = 0
                self._loaded_at[layer, expert] = 0
                self.n_evictions += 1
        return slabs

    def _packings(self, index: int, expert: int, slab: int) -> list[Packing]:
        experts = self._layers[index].experts
        parts = zip(experts.matrices, experts.sources[expert], experts.matrix_bytes, experts.row_bytes, strict=True)
        return [
            Packing(matrix, source, n_bytes, row_bytes, slab + matrix.address)
            for matrix, source, n_bytes, row_bytes in parts
        ]
