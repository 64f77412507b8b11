"""A large mixture's telemetry, made up: what panels would read while such a model answers."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from engine.kernels.notes import HAND_OVER, KINDS, N_KINDS, N_PARTS
from engine.step_ring import HEAD, StepRing
from engine.steps import Steps, steps_of

Array = np.ndarray[Any, Any]

_TICKS_PER_US = 2000.0
_SHARES = {"embedding": 0.002, "norms": 0.03, "attention": 0.24, "router": 0.03, "experts": 0.55, "output": 0.08}
_SLAB_BYTES = 3 << 20
_DENSE_BYTES = 900 << 20


class MadeUpTelemetry:
    """`advance` adds tokens; an answer of about 120 tokens follows each prompt of 700."""

    def __init__(self, n_layers: int = 60, n_experts: int = 512, top_k: int = 8, n_workers: int = 8) -> None:
        self.moe_layers = list(range(3, 3 + n_layers))
        self.expert_counts = np.zeros((n_layers, n_experts), np.int64)
        self.last_experts = np.full((n_layers, top_k), -1, np.int32)
        self.kv_capacity_tokens = 32768
        self.slab_bytes = [_SLAB_BYTES] * n_layers
        self.n_workers = n_workers
        self._random = np.random.default_rng(4)
        self._ring = StepRing(n_workers, n_layers, top_k)
        ranks = np.argsort(self._random.random((n_layers, n_experts)), 1)
        self._log_weights = -0.55 * np.log(ranks + 1.0)
        self._top_k = top_k
        self._resident = ranks < n_experts * 0.8
        self._kv_tokens = 0
        self._now_ns = time.perf_counter_ns()

    def favourite(self, row: int) -> int:
        """The expert that the layer in place `row` calls most."""
        return int(self._log_weights[row].argmax())

    def is_resident(self, index: int, expert: int) -> bool:
        return bool(self._resident[index, expert])

    @property
    def n_steps(self) -> int:
        return self._ring.n_written

    def steps(self, after: int = 0) -> Steps:
        return steps_of(self._ring.read(after), _TICKS_PER_US)

    def advance(self, n_steps: int) -> None:
        """Make up the next steps."""
        for _ in range(n_steps):
            self._step(is_prompt=self._ring.n_written % 120 == 0)

    def _step(self, *, is_prompt: bool) -> None:
        random, n_layers = self._random, len(self.moe_layers)
        noise = random.gumbel(size=self._log_weights.shape) + self._log_weights
        chosen = np.argpartition(-noise, self._top_k, 1)[:, : self._top_k]
        np.put_along_axis(self.expert_counts, chosen, np.take_along_axis(self.expert_counts, chosen, 1) + 1, 1)
        self.last_experts[:] = chosen
        n_loads = 0 if is_prompt else int(random.poisson(3.0) * (random.random() < 0.4))
        disk_us, sampling_us, host_us = n_loads * 900.0, 60.0, 110.0
        run_us = (2.4e6 if is_prompt else 62_000) * random.lognormal(0, 0.05) + (
            25_000 if random.random() < 0.02 else 0
        )
        ticks = np.zeros((self.n_workers, N_PARTS, N_KINDS), np.int64)
        for kind, share in _SHARES.items():
            wall = int(run_us * _TICKS_PER_US * share)
            ticks[0, 0, KINDS.index(kind)] = wall
            ticks[:, 1, KINDS.index(kind)] = wall * random.uniform(0.82, 0.98, self.n_workers)
        ticks[0, 0, HAND_OVER] = int(run_us * _TICKS_PER_US * (1 - sum(_SHARES.values())))
        self._kv_tokens += 700 if is_prompt else 1
        wall_us = run_us + disk_us + sampling_us + host_us
        n_pairs = n_layers * self._top_k
        used = n_layers * 400 if is_prompt else n_pairs
        values = {
            "began_ns": self._now_ns,
            "wall_ns": wall_us * 1e3,
            "n_tokens": 700 if is_prompt else 1,
            "n_prompt": 700 if is_prompt else 0,
            "n_answered": 1,
            "disk_ns": disk_us * 1e3,
            "sampling_ns": sampling_us * 1e3,
            "expert_calls": n_pairs * (700 if is_prompt else 1),
            "experts_used": used,
            "expert_loads": n_loads,
            "expert_evictions": n_loads,
            "disk_bytes": n_loads * _SLAB_BYTES,
            "experts_foreseeable": used - used // n_layers,
            "experts_foreseen": (used - used // n_layers) * 7 // 10,
            "experts_asked": n_loads,
            "asked_used": n_loads - n_loads // 4,
            "asked_unused": n_loads // 4,
            "asked_bytes": n_loads * _SLAB_BYTES,
            "weight_bytes": _DENSE_BYTES + used * _SLAB_BYTES,
            "kv_tokens": self._kv_tokens,
            "n_sequences": 1,
            "ttft_ns": wall_us * 1e3 if is_prompt else 0,
        }
        self._now_ns += int(wall_us * 1e3)
        head = tuple(int(values[name]) for name in HEAD)
        self._ring.begin(np.zeros_like(ticks).data.cast("B"))
        self._ring.end(ticks.data.cast("B"), head, chosen)
