"""What the engine has done and is doing: counters that anyone may read while the team writes them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Stats:
    """Sums since the model was opened. Times of kinds of work are the team's, in microseconds of wall time."""

    prompt_tokens: int
    reused_tokens: int  # prompt tokens whose keys and values were found, not computed
    completion_tokens: int
    expert_calls: int  # over all layers
    expert_counts: Array  # (n_moe_layers, n_experts) int64
    prefill_ms: float
    decode_ms: float
    times_us: dict[str, float]
    kv_used_tokens: int
    kv_total_tokens: int
    experts_resident: int
    experts_capacity: int
    expert_loads: int
    expert_evictions: int
    expert_bytes_read: int


@dataclass(slots=True)
class Telemetry:
    """Live arrays; each number is whole when read, though a row may be of two neighbouring tokens."""

    moe_layers: list[int]
    expert_counts: Array  # (n_moe_layers, n_experts) int64
    last_experts: Array  # (n_moe_layers, top_k) int32: the newest token's choice


class Clock:
    """Turns time-stamp counter ticks into microseconds, calibrated by the engine's own runs."""

    def __init__(self) -> None:
        self._first: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None

    def note(self, tick: int) -> None:
        """Pair a tick that has just been taken with the system's clock."""
        now = (tick, time.perf_counter_ns())
        self._first = self._first or now
        self._last = now

    @property
    def ticks_per_us(self) -> float:
        """1.0 until two runs lie apart."""
        if not self._first or not self._last or self._last[1] == self._first[1]:
            return 1.0
        return (self._last[0] - self._first[0]) / (self._last[1] - self._first[1]) * 1e3
