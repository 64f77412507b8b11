"""The worker threads that execute plans together, without the GIL; the caller works along as worker 0."""

from __future__ import annotations

import threading
import time

import numpy as np

from engine.errors import EngineClosedError
from engine.kernels.layout import (
    STAGE_IDLE,
    TEAM_BYTES,
    TEAM_HALTED_AT,
    TEAM_LAST_TICK,
    TEAM_N_STAGES,
    TEAM_OPS,
    TEAM_SCRATCH,
    TEAM_SCRATCH_BYTES,
    TEAM_SPINS,
    TEAM_STAGES,
    TEAM_STATE,
    TEAM_TICKS,
)
from engine.kernels.library import KernelLibrary
from engine.kernels.notes import (
    NOTES_BYTES,
    NOTES_KINDS,
    NOTES_N_WORKERS,
    NOTES_ROW,
    TEAM_NOTES,
    row_cells,
)
from engine.plan import Plan

KERNELS = ("walk", "attend", "stop")  # what a team takes besides those of its plans
_SPINS = 1000  # some 40 us of pausing before a worker sleeps: longer than most stages of a small model


class Team:
    """`n_workers` workers, one of them the thread that calls `run`; worker i's scratch is the i-th `scratch_bytes`."""

    def __init__(self, library: KernelLibrary, n_workers: int, scratch: int, scratch_bytes: int) -> None:
        self._library = library
        memory = np.zeros(TEAM_BYTES + 64, np.uint8)
        start = -memory.ctypes.data % 64
        self._cells = memory[start : start + TEAM_BYTES].view(np.int64)
        self._address = memory.ctypes.data + start
        self._set(TEAM_STATE, STAGE_IDLE << 32)
        self._set(TEAM_SCRATCH, scratch)
        self._set(TEAM_SCRATCH_BYTES, scratch_bytes)
        self._spare_row = np.zeros(row_cells(n_workers), np.int64)  # takes what nobody asked to be noted
        self._notes = np.zeros(NOTES_BYTES // 8, np.int64)
        self._notes[NOTES_N_WORKERS // 8] = n_workers
        self._set(TEAM_NOTES, self._notes.ctypes.data)
        self.note_into(0)
        self._set(TEAM_SPINS, _SPINS if n_workers > 1 else 0)
        self._walk = library.function("walk")
        self._walk_record = library.pack("walk", {"team": self._address, "first_stage": 0})
        self._walk_address = self._walk_record.ctypes.data
        self._nothing = Plan(library)
        self.walked_ns = 0  # what all runs so far have taken
        self._plan: Plan | None = None  # the one whose addresses the cells hold
        self._threads = [
            threading.Thread(target=self._attend, args=(worker,), name=f"colibri-worker-{worker}", daemon=True)
            for worker in range(1, n_workers)
        ]
        for thread in self._threads:
            thread.start()
        self.n_workers = n_workers

    def note_into(self, row: int) -> None:
        """Book the times of runs from now on into the row (see notes.py) at this address; 0: nowhere of interest."""
        self._notes[NOTES_ROW // 8] = row or self._spare_row.ctypes.data

    def run(self, plan: Plan, first_stage: int = 0) -> int:
        """Execute `plan` from `first_stage`. Returns -1 at its end, else the stage after which it halted."""
        if not self._address:
            raise EngineClosedError("This engine has been closed; open the model again.")
        if plan is not self._plan:
            self._set(TEAM_STAGES, plan.stage_records.ctypes.data)
            self._set(TEAM_N_STAGES, len(plan.stage_records))
            self._set(TEAM_OPS, plan.ops.ctypes.data)
            self._set(TEAM_TICKS, plan.ticks.ctypes.data)
            self._notes[NOTES_KINDS // 8] = plan.kinds.ctypes.data
            self._plan = plan
        self._walk_record[5] = first_stage
        began_ns = time.perf_counter_ns()
        self._walk(self._walk_address, 0, 0)
        self.walked_ns += time.perf_counter_ns() - began_ns
        return int(self._cells[TEAM_HALTED_AT // 8])

    def tick(self) -> int:
        """The time-stamp counter now."""
        self.run(self._nothing)
        return self.last_tick

    @property
    def last_tick(self) -> int:
        """The time-stamp counter at the end of the newest stage."""
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
