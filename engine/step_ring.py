"""The ring in which the newest steps of the engine are noted: one row a step, read by any thread without locks.

The engine's thread fills a row and only then counts it as written. A reader copies rows and afterwards drops those that
may have been written anew while it copied.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.kernels.notes import N_KINDS, N_PARTS

Array = np.ndarray[Any, Any]

_MOST_BYTES, _LEAST_ROWS, _MOST_ROWS = 8 << 20, 512, 4096
HEAD = (  # the cells of a row's head; times in ns, of time.perf_counter_ns
    "began_ns",
    "wall_ns",
    "n_tokens",  # computed, of prompts and answers
    "n_prompt",
    "n_answered",  # tokens chosen
    "disk_ns",  # experts being loaded
    "sampling_ns",
    "expert_calls",
    "experts_used",  # different ones, over all layers
    "expert_loads",
    "expert_evictions",
    "disk_bytes",
    "experts_foreseeable",  # different ones, needed in layers for which something was foreseen
    "experts_foreseen",  # of them those that had been
    "experts_asked",  # asked of the disk ahead
    "asked_used",  # of them those that were needed
    "asked_unused",
    "asked_bytes",
    "weight_bytes",  # read from memory by matrix products
    "kv_tokens",  # positions in use after the step
    "n_sequences",
    "ttft_ns",  # of the request that got its first token; 0: none did
)
_PACK_HEAD = struct.Struct(f"={len(HEAD)}q").pack_into


@dataclass(frozen=True, slots=True)
class RawSteps:
    """Copies of rows, oldest first."""

    numbers: Array  # (n,) int64, counted from 1
    heads: Array  # (n, len(HEAD)) int64
    ticks: Array  # (n, n_workers, N_PARTS, N_KINDS) int64: by how much the team's notes (see notes.py) grew
    routes: Array  # (n, n_moe_layers, top_k) int16: the experts of each step's last token

    def head(self, name: str) -> Array:
        """(n,) int64: one head cell of all rows."""
        return self.heads[:, HEAD.index(name)]


class StepRing:
    """Room for the newest steps of a team of `n_workers`."""

    def __init__(self, n_workers: int, n_moe_layers: int, top_k: int) -> None:
        self.n_workers = n_workers
        self._n_bytes = 8 * n_workers * N_PARTS * N_KINDS  # of the team's notes
        self.n_rows = min(max(_MOST_BYTES // (8 * len(HEAD) + 2 * self._n_bytes), _LEAST_ROWS), _MOST_ROWS)
        self._heads = np.zeros((self.n_rows, len(HEAD)), np.int64)
        self._ticks = np.zeros((self.n_rows, 2, n_workers, N_PARTS, N_KINDS), np.int64)  # before the step, and after
        self._routes = np.full((self.n_rows, n_moe_layers, top_k), -1, np.int16)
        self._head_bytes, self._tick_bytes = self._heads.data.cast("B"), self._ticks.data.cast("B")
        self.n_written = 0

    def begin(self, notes: memoryview) -> None:
        """A step begins; `notes` are the bytes of the team's."""
        first = 2 * self._n_bytes * (self.n_written % self.n_rows)
        self._tick_bytes[first : first + self._n_bytes] = notes

    def end(self, notes: memoryview, head: tuple[int, ...], route: Array) -> None:
        """The step that has begun has ended: its head in the order of HEAD, and its last token's route."""
        place = self.n_written % self.n_rows
        first = self._n_bytes * (2 * place + 1)
        self._tick_bytes[first : first + self._n_bytes] = notes
        if route.size:
            self._routes[place] = route
        _PACK_HEAD(self._head_bytes, 8 * len(HEAD) * place, *head)
        self.n_written += 1

    def read(self, after: int = 0) -> RawSteps:
        """The steps whose numbers are above `after`, as far as they are still there."""
        n_written = self.n_written
        first = max(after, n_written - self.n_rows + 1, 0)  # the oldest row may be written anew already
        places = np.arange(first, n_written) % self.n_rows
        heads, ticks, routes = self._heads[places], self._ticks[places], self._routes[places]
        n_lost = max(0, self.n_written - self.n_rows + 1 - first)
        numbers = np.arange(first + 1, n_written + 1)
        return RawSteps(numbers[n_lost:], heads[n_lost:], (ticks[:, 1] - ticks[:, 0])[n_lost:], routes[n_lost:])
