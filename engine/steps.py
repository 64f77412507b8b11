"""What the newest steps did and where their time went, as plain arrays of physical units."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from engine.kernels.notes import HAND_OVER, KINDS
from engine.step_ring import RawSteps

Array = np.ndarray[Any, Any]

WORK = tuple(kind for kind in KINDS if kind != "loading")
FORESIGHT = (  # what is counted about asking for experts ahead
    "experts_foreseeable",
    "experts_foreseen",
    "experts_asked",
    "asked_used",
    "asked_unused",
    "asked_bytes",
)
BANDS = (*WORK, "sampling", "disk", "waiting", "host")


@dataclass(frozen=True, slots=True)
class Steps:
    """One entry a step, oldest first; while one conversation decodes, a step is a token.

    bands_us: where the wall time went, in the order of BANDS. The team's time counts as work of its kind as far as its
    workers were busy on the average, and the rest as "waiting": at barriers for the last worker of a stage, and for the
    engine's thread to be woken. "disk" is waiting for experts, "host" what is left: what the engine's own thread did
    besides.
    """

    numbers: Array  # (n,) int64, from 1
    began_s: Array  # (n,) float64, on the clock of time.perf_counter
    wall_us: Array  # (n,) float64
    bands_us: Array  # (n, len(BANDS)) float64
    busy_us: Array  # (n, n_workers) float64
    n_tokens: Array  # (n,) int64, and so on
    n_prompt: Array
    n_answered: Array
    expert_calls: Array
    experts_used: Array
    expert_loads: Array
    expert_evictions: Array
    disk_bytes: Array
    experts_foreseeable: Array  # needed in layers for which something was foreseen
    experts_foreseen: Array  # of them those that had been
    experts_asked: Array  # asked of the disk ahead of their turn, and of them those that were needed, or were not
    asked_used: Array
    asked_unused: Array
    asked_bytes: Array
    weight_bytes: Array
    kv_tokens: Array
    n_sequences: Array
    ttft_us: Array  # (n,) float64; 0 where no request got its first token
    routes: Array  # (n, n_moe_layers, top_k) int16: the experts of each step's last token

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def run_us(self) -> Array:
        """(n,) float64: the time in which the team walked the plan."""
        outside = [BANDS.index(band) for band in ("sampling", "disk", "host")]
        total: Array = self.bands_us.sum(1) - self.bands_us[:, outside].sum(1)
        return total

    @property
    def is_decode(self) -> Array:
        """(n,) bool: steps that read nothing of a prompt."""
        decode: Array = self.n_prompt == 0
        return decode

    def chosen(self, which: Array | slice) -> Steps:
        """Some of the steps: `which` is a slice, a mask or the places of them."""
        return Steps(*(getattr(self, field.name)[which] for field in fields(self)))

    def joined(self, later: Steps, most: int) -> Steps:
        """These and the `later` ones, the newest `most` of them."""
        if len(self) and len(later) and self.busy_us.shape[1] != later.busy_us.shape[1]:
            return later
        pairs = ((getattr(self, field.name), getattr(later, field.name)) for field in fields(self))
        return Steps(*(np.concatenate(pair)[-most:] for pair in pairs))


def steps_of(raw: RawSteps, ticks_per_us: float) -> Steps:
    """Turn rows of the ring into physical units."""
    times = raw.ticks / ticks_per_us
    all_walls, busy = times[:, :, 0].sum(1), times[:, :, 1, : len(KINDS)]
    walls, hand_over = all_walls[:, : len(KINDS)], all_walls[:, HAND_OVER]
    work = np.minimum(busy.mean(1), walls)  # a worker put aside by the system may book a little late
    kinds = [KINDS.index(kind) for kind in WORK]
    head = {name: raw.head(f"{name}_ns") / 1e3 for name in ("sampling", "disk", "wall", "ttft")}
    waiting = (walls - work)[:, kinds].sum(1) + hand_over
    run = walls[:, kinds].sum(1) + hand_over
    host = np.maximum(head["wall"] - head["sampling"] - head["disk"] - run, 0)  # the two clocks differ by a hair
    counts = (
        "n_tokens",
        "n_prompt",
        "n_answered",
        "expert_calls",
        "experts_used",
        "expert_loads",
        "expert_evictions",
        "disk_bytes",
        *FORESIGHT,
        "weight_bytes",
        "kv_tokens",
        "n_sequences",
    )
    return Steps(
        numbers=raw.numbers,
        began_s=raw.head("began_ns") / 1e9,
        wall_us=head["wall"],
        bands_us=np.column_stack([work[:, kinds], head["sampling"], head["disk"], waiting, host]),
        busy_us=busy.sum(2),
        ttft_us=head["ttft"],
        routes=raw.routes,
        **{name: raw.head(name) for name in counts},
    )
