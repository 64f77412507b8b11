"""The worker threads that execute plans together, without the GIL; the caller works along as worker 0."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from engine.errors import EngineClosedError
from engine.kernels.layout import (
    STAGE_IDLE,
    TEAM_BYTES,
    TEAM_HALTED_AT,
    TEAM_KINDS,
    TEAM_LAST_TICK,
    TEAM_N_STAGES,
    TEAM_N_WORKERS,
    TEAM_NOTES,
    TEAM_OPS,
    TEAM_SCRATCH,
    TEAM_SCRATCH_BYTES,
    TEAM_SPINS,
    TEAM_STAGES,
    TEAM_STATE,
)
from engine.kernels.library import KernelLibrary
from engine.kernels.notes import BLOCK_BYTES, N_KINDS, N_PARTS
from engine.plan import Plan

KERNELS = ("walk", "attend", "stop")  # what a team takes besides those of its plans
_SPINS = 1000  # some 40 us of pausing before a worker sleeps: longer than most stages of a small model


class Team:
    """`n_workers` workers, one of them the thread that calls `run`; worker i's scratch is the i-th `scratch_bytes`."""

    def __init__(self, library: KernelLibrary, n_workers: int, scratch: int, scratch_bytes: int) -> None:
        self._library = library
        self._cells = _aligned_cells(TEAM_BYTES)
        self._address = self._cells.ctypes.data
        self._set(TEAM_STATE, STAGE_IDLE << 32)
        self._set(TEAM_SCRATCH, scratch)
        self._set(TEAM_SCRATCH_BYTES, scratch_bytes)
        self._set(TEAM_N_WORKERS, n_workers)
        notes = _aligned_cells(BLOCK_BYTES * n_workers)
        self._set(TEAM_NOTES, notes.ctypes.data)
        self.notes = notes.reshape(n_workers, N_PARTS, N_KINDS)  # ticks since the team began: see notes.py
        self._set(TEAM_SPINS, _SPINS if n_workers > 1 else 0)
        self._walk = library.function("walk")
        self._walk_record = library.pack("walk", {"team": self._address, "first_stage": 0})
        self._walk_address = self._walk_record.ctypes.data
        self._nothing = Plan(library)
        self._plan: Plan | None = None  # the one whose addresses the cells hold
        self._threads = [
            threading.Thread(target=self._attend, args=(worker,), name=f"colibri-worker-{worker}", daemon=True)
            for worker in range(1, n_workers)
        ]
        for thread in self._threads:
            thread.start()
        self.n_workers = n_workers

    def run(self, plan: Plan, first_stage: int = 0) -> int:
        """Execute `plan` from `first_stage`. Returns -1 at its end, else the stage after which it halted."""
        if not self._address:
            raise EngineClosedError("This engine has been closed; open the model again.")
        if plan is not self._plan:
            self._set(TEAM_STAGES, plan.stage_records.ctypes.data)
            self._set(TEAM_N_STAGES, len(plan.stage_records))
            self._set(TEAM_OPS, plan.ops.ctypes.data)
            self._set(TEAM_KINDS, plan.kinds.ctypes.data)
            self._plan = plan
        self._walk_record[5] = first_stage
        self._walk(self._walk_address, 0, 0)
        return int(self._cells[TEAM_HALTED_AT // 8])

    def tick(self) -> int:
        """The time-stamp counter now."""
        self.run(self._nothing)
        return int(self._cells[TEAM_LAST_TICK // 8])

    def close(self) -> None:
        """Stop and join the workers. The team must be idle."""
        if self._address:
            self._library.run("stop", team=self._address)
            for thread in self._threads:
                thread.join()
            self._address = 0

    def _attend(self, worker: int) -> None:
        record = self._library.pack("attend", {"team": self._address, "worker": worker})
        self._library.function("attend")(record.ctypes.data, 0, 0)

    def _set(self, offset: int, value: int) -> None:
        self._cells[offset // 8] = value


def _aligned_cells(n_bytes: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Zeros that begin where a pair of cache lines does, as processors fetch them in pairs."""
    memory = np.zeros(n_bytes + 128, np.uint8)
    start = -memory.ctypes.data % 128
    return memory[start : start + n_bytes].view(np.int64)
