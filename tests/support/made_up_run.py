"""Steps of an answer in which everything is given: what "why is it slow?" must judge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine import MemoryPlan
from engine.steps import BANDS, Steps

EVEN: Mapping[str, float] = {"experts": 0.7, "attention": 0.2, "output": 0.05, "waiting": 0.03, "host": 0.02}


@dataclass(frozen=True)
class MadeUpRun:
    """An answer after one prompt. disturbed: how many times as long every fourth token took."""

    n_tokens: int = 64
    ms: float = 20.0
    shares: Mapping[str, float] = field(default_factory=lambda: EVEN)
    disturbed: float = 1.0
    n_workers: int = 2
    weight_bytes: int = 200_000_000
    loads: int = 0
    evictions: int = 0
    kv_start: int = 2000
    us_per_position: float = 0.0  # of attention's time, the rest of it is the same for each token
    kv_per_token: int = 1
    prompt_tokens: int = 100
    prompt_s: float = 0.2

    def steps(self) -> Steps:
        n = self.n_tokens + 1
        is_token = np.arange(n) > 0
        wall_us = np.full(n, 1e3 * self.ms)
        wall_us[4::4] *= self.disturbed
        wall_us[0] = 1e6 * self.prompt_s
        bands_us = np.array([self.shares.get(band, 0.0) for band in BANDS]) * wall_us[:, None]
        kv_tokens = self.kv_start + self.kv_per_token * np.arange(n)
        if self.us_per_position:
            bands_us[:, BANDS.index("attention")] += self.us_per_position * kv_tokens
            wall_us = bands_us.sum(1)
        outside = [BANDS.index(band) for band in ("sampling", "disk", "host", "waiting")]
        work_us = bands_us.sum(1) - bands_us[:, outside].sum(1)

        def count(value: int) -> np.ndarray:
            return np.where(is_token, value, 0).astype(np.int64)

        return Steps(
            numbers=np.arange(1, n + 1),
            began_s=np.cumsum(wall_us) / 1e6,
            wall_us=wall_us,
            bands_us=bands_us,
            busy_us=np.repeat(work_us[:, None], self.n_workers, 1),
            n_tokens=np.where(is_token, 1, self.prompt_tokens),
            n_prompt=np.where(is_token, 0, self.prompt_tokens),
            n_answered=np.ones(n, np.int64),
            expert_calls=count(8),
            experts_used=count(8),
            expert_loads=count(self.loads),
            expert_evictions=count(self.evictions),
            disk_bytes=count(self.loads * 1_000_000),
            experts_foreseeable=count(6),
            experts_foreseen=count(4),
            experts_asked=count(2 * self.loads),
            asked_used=count(self.loads),
            asked_unused=count(self.loads),
            asked_bytes=count(2_000_000 * self.loads),
            weight_bytes=count(self.weight_bytes),
            kv_tokens=kv_tokens,
            n_sequences=np.ones(n, np.int64),
            ttft_us=np.where(is_token, 0.0, wall_us),
            routes=np.zeros((n, 1, 2), np.int16),
        )


class RanModel:
    """A model that has answered, as far as "why is it slow?" looks: what it is, and its telemetry."""

    name, type_name = "Tiny", "Q4_K"

    def __init__(self, run: MadeUpRun) -> None:
        self._run = run
        self.moe_layers: list[int] = []
        self.slab_bytes: list[int] = []

    def steps(self, after: int = 0) -> Steps:
        return self._run.steps()


def let_run(service: Any, run: MadeUpRun) -> None:
    """Let an engine service have a small model open that has answered."""
    service.info = service.telemetry = RanModel(run)
    service.memory = MemoryPlan(10, 0, 10, 10, {"transparent huge pages": 30})
