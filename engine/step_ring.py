"""The ring in which the newest steps of the engine are noted: one row a step, read by any thread without locks.

The engine's thread empties a row, lets the team write its ticks into it, fills its head, and only then counts it as
written. A reader copies rows and afterwards drops those that may have been written anew while it copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.kernels.notes import HEAD_CELLS, N_KINDS, row_cells

Array = np.ndarray[Any, Any]

_MOST_BYTES, _LEAST_ROWS, _MOST_ROWS = 8 << 20, 512, 4096
HEAD = (  # the cells of a row's head; times in ns, of time.perf_counter_ns
    "began_ns",
    "wall_ns",
    "n_tokens",  # computed, of prompts and answers
    "n_prompt",
    "n_answered",  # tokens chosen
    "run_ns",  # the team at work
    "disk_ns",  # experts being loaded
    "sampling_ns",
    "host_ns",  # everything else that the engine's thread did
    "expert_calls",
    "experts_used",  # different ones, over all layers
    "expert_loads",
    "expert_evictions",
    "disk_bytes",
    "weight_bytes",  # read from memory by matrix products
    "kv_tokens",  # positions in use after the step
    "n_sequences",
    "ttft_ns",  # of the request that got its first token; 0: none did
)


@dataclass(frozen=True, slots=True)
class RawSteps:
    """Copies of rows, oldest first."""

    numbers: Array  # (n,) int64, counted from 1
    rows: Array  # (n, n_cells) int64
    routes: Array  # (n, n_moe_layers, top_k) int16: the experts of each step's last token


class StepRing:
    """Room for the newest steps of a team of `n_workers`."""

    def __init__(self, n_workers: int, n_moe_layers: int, top_k: int) -> None:
        self.n_workers = n_workers
        n_cells = row_cells(n_workers)
        self.n_rows = min(max(_MOST_BYTES // (8 * n_cells), _LEAST_ROWS), _MOST_ROWS)
        self.rows = np.zeros((self.n_rows, n_cells), np.int64)  # written by the team while open
        self._routes = np.full((self.n_rows, n_moe_layers, top_k), -1, np.int16)
        self.n_written = 0

    def open_row(self) -> int:
        """Empty the next row. Returns its address, for the team."""
        row = self.rows[self.n_written % self.n_rows]
        row[:] = 0
        return int(row.ctypes.data)

    def close_row(self, head: tuple[int, ...], route: Array) -> None:
        """Fill the open row's head, in the order of HEAD, and let readers see it."""
        place = self.n_written % self.n_rows
        self.rows[place, : len(head)] = head
        self._routes[place] = route
        self.n_written += 1

    def read(self, after: int = 0) -> RawSteps:
        """The steps whose numbers are above `after`, as far as they are still there."""
        n_written = self.n_written
        first = max(after, n_written - self.n_rows + 1, 0)  # the oldest row may be open again
        places = np.arange(first, n_written) % self.n_rows
        rows, routes = self.rows[places], self._routes[places]
        n_lost = max(0, self.n_written - self.n_rows + 1 - first)
        return RawSteps(np.arange(first + 1, n_written + 1)[n_lost:], rows[n_lost:], routes[n_lost:])


def head_column(rows: Array, name: str) -> Array:
    """One head cell of all rows."""
    return rows[:, HEAD.index(name)]


def kind_ticks(rows: Array) -> Array:
    """(n, N_KINDS) int64: the ticks of each kind of stage."""
    return rows[:, HEAD_CELLS : HEAD_CELLS + N_KINDS]


def busy_ticks(rows: Array) -> Array:
    """(n, n_workers, N_KINDS) int64: the ticks in which each worker was busy."""
    return rows[:, HEAD_CELLS + N_KINDS :].reshape(
        len(rows), rows.shape[1] // N_KINDS - HEAD_CELLS // N_KINDS - 1, N_KINDS
    )
