"""The thread team: every chunk is run exactly once, stages never overlap, and nobody is left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import psutil
import pytest

from engine.errors import EngineClosedError
from engine.kernels.library import KernelLibrary, load_library
from engine.kernels.notes import HAND_OVER, KINDS, N_KINDS, N_PARTS
from engine.kernels.tiers import choose_tier
from engine.memory import Memory, view
from engine.plan import Extent, Plan
from engine.team import Team
from tests.support.waiting import still_patient

N_ROWS, WIDTH = 64, 16


@pytest.fixture(scope="module")
def library() -> KernelLibrary:
    return load_library(choose_tier())


class Counters:
    """Rows of numbers to which plans add 1: a chunk that is lost, doubled or early shows in the sums."""

    def __init__(self, library: KernelLibrary) -> None:
        self.library, self.memory = library, Memory()
        size = 4 * WIDTH * N_ROWS
        self._x, self._ones = (self.memory.allocate(name, size, "buffers") for name in ("sums", "ones"))
        self.sums = view(self._x, np.float32, (N_ROWS, WIDTH))
        view(self._ones, np.float32, (N_ROWS, WIDTH))[:] = 1
        cells = self.memory.allocate("cells", 8 * 8, "buffers")
        self.cells, self._cells = view(cells, np.int64, (8,)), cells.address

    def cell(self, index: int) -> int:
        return self._cells + 8 * index

    def add(self, plan: Plan, cell: int = 0, unit: int = 1) -> None:
        """An operation that adds 1 to the first rows, as many as the cell says."""
        x, y = self._x.address, self._ones.address
        plan.add("add", Extent(self.cell(cell), N_ROWS, unit), x=x, y=y, stride=4 * WIDTH, n=WIDTH, scale=1.0)

    def double(self, plan: Plan, cell: int = 0) -> None:
        """An operation that adds the rows to themselves: it must come after all that was added before."""
        x = self._x.address
        plan.add("add", Extent(self.cell(cell), N_ROWS), x=x, y=x, stride=4 * WIDTH, n=WIDTH, scale=1.0)

    def adding_plan(self, n_stages: int, cell: int = 0) -> Plan:
        plan = Plan(self.library)
        for _ in range(n_stages):
            with plan.side_by_side("adding"):
                self.add(plan, cell)
        plan.finish()
        return plan


@pytest.fixture
def counters(library: KernelLibrary) -> Iterator[Counters]:
    counters = Counters(library)
    yield counters
    counters.memory.close()


@contextmanager
def team_of(library: KernelLibrary, n_workers: int) -> Iterator[Team]:
    team = Team(library, n_workers, 0, 0)
    try:
        yield team
    finally:
        team.close()


@pytest.mark.parametrize("n_workers", [1, 2])
def test_thousands_of_tiny_stages_run_each_chunk_once(
    library: KernelLibrary, counters: Counters, n_workers: int
) -> None:
    plan, rng, expected = counters.adding_plan(100), np.random.default_rng(0), np.zeros(N_ROWS)
    with team_of(library, n_workers) as team:
        for _ in range(1000):
            n_rows = int(rng.integers(1, N_ROWS + 1))
            counters.cells[0] = n_rows
            assert team.run(plan) == -1
            expected[:n_rows] += 100
    assert (counters.sums == expected[:, None]).all()


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_a_stage_begins_when_the_one_before_is_over(library: KernelLibrary, counters: Counters, n_workers: int) -> None:
    """Adding and doubling in turns gives another sum in any other order: 2 * (x + 1) eight times is 510."""
    plan = Plan(library)
    for _ in range(8):
        with plan.side_by_side("adding"):
            counters.add(plan)
        with plan.side_by_side("doubling"):
            counters.double(plan)
    plan.finish()
    counters.cells[0] = N_ROWS
    with team_of(library, n_workers) as team:
        for _ in range(500):
            counters.sums[:] = 0
            team.run(plan)
            assert (counters.sums == 510).all()


def test_operations_in_sequence_run_in_order_for_each_chunk(library: KernelLibrary, counters: Counters) -> None:
    plan = Plan(library)
    with plan.in_sequence("both"):
        counters.add(plan)
        counters.double(plan)
        counters.add(plan)
    plan.finish()
    counters.cells[0] = 17
    with team_of(library, 2) as team:
        team.run(plan)
    assert (counters.sums[:17] == 3).all()
    assert not counters.sums[17:].any()


def test_stages_without_chunks_are_passed_over(library: KernelLibrary, counters: Counters) -> None:
    plan = Plan(library)
    for cell in (1, 0, 1, 1, 0, 1):
        with plan.side_by_side("adding"):
            counters.add(plan, cell)
    plan.finish()
    counters.cells[:2] = 5, 0
    with team_of(library, 2) as team:
        assert team.run(plan) == -1
        assert (counters.sums[:5] == 2).all()
        counters.cells[0] = 0
        assert team.run(plan) == -1  # nothing to do at all
        assert team.run(Plan(library)) == -1  # no stage at all
    assert (counters.sums[:5] == 2).all()


def test_operations_side_by_side_share_a_stage_though_some_are_empty(
    library: KernelLibrary, counters: Counters
) -> None:
    plan = Plan(library)
    with plan.side_by_side("several"):
        counters.add(plan, 1)
        counters.add(plan, 0, unit=1)
        counters.add(plan, 1)
    plan.finish()
    counters.cells[:2] = 9, 0
    with team_of(library, 2) as team:
        team.run(plan)
    assert (counters.sums[:9] == 1).all()


def test_a_unit_gathers_values_into_chunks(library: KernelLibrary, counters: Counters) -> None:
    plan = Plan(library)
    with plan.side_by_side("adding"):
        counters.add(plan, 0, unit=4)
    plan.finish()
    for value, n_chunks in ((1, 1), (4, 1), (5, 2), (64, 16)):
        counters.sums[:], counters.cells[0] = 0, value
        with team_of(library, 2) as team:
            team.run(plan)
        assert (counters.sums[:n_chunks] == 1).all()
        assert not counters.sums[n_chunks:].any()


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_stages_of_one_chunk_keep_their_place_among_the_others(
    library: KernelLibrary, counters: Counters, n_workers: int
) -> None:
    plan = Plan(library)
    for i in range(40):
        with plan.side_by_side("doubling", halt=counters.cell(2) if i == 22 else 0):
            counters.double(plan, cell=1 if i % 4 else 0)
        with plan.side_by_side("adding"):
            counters.add(plan, cell=1 if i % 3 else 0)
    plan.finish()
    counters.cells[:2] = N_ROWS, 1
    expected = np.zeros(N_ROWS, np.float32)
    for i in range(40):
        expected[: 1 if i % 4 else N_ROWS] *= 2
        expected[: 1 if i % 3 else N_ROWS] += 1
    with team_of(library, n_workers) as team:
        for _ in range(100):
            counters.sums[:], counters.cells[2] = 0, 1
            assert team.run(plan) == 44
            counters.cells[2] = 0
            assert team.run(plan, 45) == -1
            assert (counters.sums == expected[:, None]).all()


def test_a_halt_stops_behind_its_stage_and_the_run_goes_on_from_there(
    library: KernelLibrary, counters: Counters
) -> None:
    plan = Plan(library)
    for stage in range(4):
        with plan.side_by_side("adding", halt=counters.cell(2) if stage == 1 else 0):
            counters.add(plan)
    plan.finish()
    counters.cells[0] = 8
    with team_of(library, 2) as team:
        for _ in range(300):
            counters.sums[:], counters.cells[2] = 0, 1
            assert team.run(plan) == 1
            assert (counters.sums[:8] == 2).all()
            counters.cells[2] = 0
            assert team.run(plan, 1) == -1
            assert (counters.sums[:8] == 5).all()


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_the_time_of_each_kind_is_noted_and_what_each_worker_did_of_it(
    library: KernelLibrary, counters: Counters, n_workers: int
) -> None:
    plan = Plan(library)
    for kind, cell in (("experts", 0), ("router", 0), ("output", 1), ("experts", 0), ("a kind of its own", 0)):
        with plan.side_by_side(kind):
            counters.add(plan, cell)
    plan.finish()
    counters.cells[:2] = N_ROWS, 0
    with team_of(library, n_workers) as team:
        began = team.tick()
        team.run(plan)
        before = team.notes.copy()
        for _ in range(200):
            team.run(plan)
        noted, wall = team.notes - before, team.tick() - began
    assert noted.shape == (n_workers, N_PARTS, N_KINDS)
    walls, busy = noted[:, 0].sum(0), noted[:, 1]
    assert walls[HAND_OVER] > 0
    assert not noted[1:, 0, HAND_OVER].any()  # that is the caller's
    walls = np.delete(walls, HAND_OVER)
    booked = [KINDS.index(kind) for kind in ("experts", "router", "other")]
    assert set(walls.nonzero()[0]) == set(booked)
    assert 0 < walls.sum() < wall
    assert busy.shape == (n_workers, N_KINDS) and not np.delete(busy, booked, 1).any()
    assert (busy.sum(0)[booked] > 0).all()
    assert (busy.sum(1) <= wall).all()  # not the stages' time: who is put aside between two chunks books it as busy


def used_s(call: Callable[[], object]) -> float:
    """The processor time that this process takes while `call` runs."""
    before = psutil.Process().cpu_times()
    call()
    after = psutil.Process().cpu_times()
    return after.user + after.system - before.user - before.system


def test_workers_sleep_between_runs_and_wake_for_the_next(library: KernelLibrary, counters: Counters) -> None:
    plan = counters.adding_plan(50)
    counters.cells[0] = N_ROWS
    with team_of(library, 2) as team:
        team.run(plan)
        is_patient = still_patient("the workers' sleep")
        while used_s(lambda: time.sleep(0.3)) > 0.1 and is_patient():
            pass
        for _ in range(20):
            team.run(plan)
            time.sleep(0.002)
    assert (counters.sums == 50 * 21).all()


@pytest.mark.parametrize("n_workers", [1, 2, 4, 8])
@pytest.mark.parametrize("pause_s", [0.0, 0.02])
def test_closing_wakes_and_joins_everybody(library: KernelLibrary, n_workers: int, pause_s: float) -> None:
    before = threading.active_count()
    for _ in range(10):
        team = Team(library, n_workers, 0, 0)
        assert threading.active_count() == before + n_workers - 1
        time.sleep(pause_s)
        team.close()
        assert threading.active_count() == before
        team.close()
    with pytest.raises(EngineClosedError):
        team.run(Plan(library))


@pytest.mark.parametrize("n_workers", [4, 8])
def test_workers_put_aside_between_plans_find_only_what_is_there_now(
    library: KernelLibrary, counters: Counters, n_workers: int
) -> None:
    """More workers than cores, a long and a short plan in turns, amounts that change: as when experts are loaded."""
    long, short, rng = counters.adding_plan(200), counters.adding_plan(1, 1), np.random.default_rng(1)
    expected, end = np.zeros(N_ROWS), time.monotonic() + 4
    with team_of(library, n_workers) as team:
        while time.monotonic() < end:
            n_rows, n_more = rng.integers(1, N_ROWS + 1, 2)
            counters.cells[:2] = n_rows, n_more
            team.run(long)
            team.run(short)
            expected[:n_rows] += 200
            expected[:n_more] += 1
            assert (counters.sums == expected[:, None]).all()
            if expected.max() > 1 << 23:  # float32 counts exactly up to there
                expected[:], counters.sums[:] = 0, 0
