"""What the engine has done and is doing: counters that anyone may read while the team writes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from engine.experts.foresight import ForesightSums
from engine.step_ring import StepRing
from engine.steps import Steps, steps_of

Array = np.ndarray[Any, Any]

_PAIRS = 5
_PAIR_EVERY_NS = 1_000_000_000


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
    foresight: ForesightSums


class Clock:
    """Turns time-stamp counter ticks into microseconds, calibrated against the system's clock."""

    def __init__(self) -> None:
        self._first: tuple[int, int] | None = None
        self._last: tuple[int, int] | None = None

    def note(self, take: Callable[[], int]) -> None:
        """Pair a tick from `take` with the system's clock: the closest of a few pairs, as threads are put aside."""
        pairs = []
        for _ in range(_PAIRS):
            before_ns = time.perf_counter_ns()
            tick = take()
            after_ns = time.perf_counter_ns()
            pairs.append((after_ns - before_ns, tick, (before_ns + after_ns) // 2))
        _, tick, now_ns = min(pairs)
        self._last = (tick, now_ns)
        self._first = self._first or self._last

    def note_now_and_then(self, take: Callable[[], int]) -> None:
        """`note`, if the last time was a while ago."""
        if not self._last or time.perf_counter_ns() - self._last[1] > _PAIR_EVERY_NS:
            self.note(take)

    @property
    def ticks_per_us(self) -> float:
        """1.0 until two pairs have been noted."""
        if not self._first or not self._last or self._last[1] == self._first[1]:
            return 1.0
        return (self._last[0] - self._first[0]) / (self._last[1] - self._first[1]) * 1e3


@dataclass(slots=True)
class Telemetry:
    """Live figures, for any thread; each number is whole when read, though a row may be of two neighbouring tokens."""

    moe_layers: list[int]
    expert_counts: Array  # (n_moe_layers, n_experts) int64
    last_experts: Array  # (n_moe_layers, top_k) int32: the newest token's choice
    ring: StepRing
    clock: Clock
    slots: list[Array]  # of each MoE layer: (n_experts,) int64, 0 where an expert is not in memory
    slab_bytes: list[int]  # of one expert in memory, of each MoE layer
    kv_capacity_tokens: int

    @property
    def n_steps(self) -> int:
        """Steps that were noted since the model was opened."""
        return self.ring.n_written

    @property
    def n_workers(self) -> int:
        return self.ring.n_workers

    def steps(self, after: int = 0) -> Steps:
        """The newest steps whose number is above `after`, as far as the ring still has them."""
        return steps_of(self.ring.read(after), self.clock.ticks_per_us)

    def is_resident(self, index: int, expert: int) -> bool:
        """Whether an expert of the MoE layer `index` (of `moe_layers`) is in memory now."""
        return bool(self.slots[index][expert])

    def detached(self) -> Telemetry:
        """A copy that outlives the model."""
        return replace(
            self,
            expert_counts=self.expert_counts.copy(),
            last_experts=self.last_experts.copy(),
            slots=[slots.copy() for slots in self.slots],
        )
