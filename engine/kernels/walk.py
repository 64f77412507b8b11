"""The interpreter of plans: every worker of the team runs it, all on the same plan.

Workers take chunks of the current stage from one atomic word, which holds the stage and how many of its chunks are
left, and count what they finish. Chunks are taken by replacing that word as it was seen: neighbours, an eighth of a
worker's share of what is left, at least one, so that workers seldom write to the same cache lines and yet end together.
A stage of a single chunk is not handed out: whoever ended the stage before it runs it. Only who holds a chunk reads the
plan: while one is held its stage cannot end, so neither the plan nor its extents change under a reader, however long
the system puts the worker aside. A stage is over when its last chunk is finished, not when every worker has arrived.
Who finds nothing to do spins for a while, then sleeps until the stage changes, which leaves its core to whoever needs
it.

What the workers did with their time is noted (see notes.py): each books in a block of its own, while it holds a chunk,
so that a run's times are complete when the run is over. A worker is busy from the first chunk that it takes to the last
one before it waits. Weights push the plan out of the caches between two runs, so who begins a stage fetches the next
one's operations early.
"""

from __future__ import annotations

from engine.kernels.layout import (
    IN_SEQUENCE,
    OP_BYTES,
    OP_EXTENT,
    OP_KERNEL,
    OP_ROW_CHUNKS,
    OP_UNIT,
    STAGE_BYTES,
    STAGE_COUNT,
    STAGE_FIRST,
    STAGE_HALT,
    STAGE_IDLE,
    STAGE_ORDER,
    STAGE_STOP,
    TEAM_DONE,
    TEAM_HALTED_AT,
    TEAM_KINDS,
    TEAM_LAST_TICK,
    TEAM_N_STAGES,
    TEAM_N_WORKERS,
    TEAM_NOTES,
    TEAM_OPS,
    TEAM_SCRATCH,
    TEAM_SCRATCH_BYTES,
    TEAM_SLEEPERS,
    TEAM_SPINS,
    TEAM_STAGES,
    TEAM_STATE,
)
from engine.kernels.memory import (
    call_entry,
    cycle_counter,
    fetch_add,
    futex_wait,
    futex_wake_all,
    load_atomic,
    load_i64,
    pause,
    prefetch_lines,
    replace_if_equal,
    store_atomic,
    store_i64,
)
from engine.kernels.notes import BLOCK_BYTES, BUSY_OFFSET
from engine.kernels.registry import device, helper, kernel

_LEFT_MASK = 0xFFFFFFFF
_SHARES = 8

fetch_stage = prefetch_lines(1)
fetch_operation = prefetch_lines(OP_BYTES // 64)


@device
def op_chunks(op):
    unit = load_i64(op + OP_UNIT)
    return (load_i64(load_i64(op + OP_EXTENT)) + unit - 1) // unit * load_i64(op + OP_ROW_CHUNKS)


@device
def stage_address(team, stage):
    return load_i64(team + TEAM_STAGES) + STAGE_BYTES * stage


@helper
def stage_chunks(team, stage):
    record = stage_address(team, stage)
    op = load_i64(team + TEAM_OPS) + OP_BYTES * load_i64(record + STAGE_FIRST)
    if load_i64(record + STAGE_ORDER) == IN_SEQUENCE:
        return op_chunks(op)
    total = 0
    for _ in range(load_i64(record + STAGE_COUNT)):
        total += op_chunks(op)
        op += OP_BYTES
    return total


@helper
def run_chunk(team, stage, chunk, scratch):
    record = stage_address(team, stage)
    op = load_i64(team + TEAM_OPS) + OP_BYTES * load_i64(record + STAGE_FIRST)
    count = load_i64(record + STAGE_COUNT)
    if load_i64(record + STAGE_ORDER) == IN_SEQUENCE:
        for _ in range(count):
            call_entry(load_i64(op + OP_KERNEL), op, chunk, scratch)
            op += OP_BYTES
        return
    for _ in range(count):
        n_chunks = op_chunks(op)
        if chunk < n_chunks:
            call_entry(load_i64(op + OP_KERNEL), op, chunk, scratch)
            return
        chunk -= n_chunks
        op += OP_BYTES


@helper
def publish(team, state):
    """Open a stage to all workers, or say STAGE_IDLE or STAGE_STOP, and wake those that sleep."""
    store_atomic(team + TEAM_STATE, state)
    if load_atomic(team + TEAM_SLEEPERS) > 0:
        futex_wake_all(team + TEAM_STATE + 4)


@device
def kind_cell(team, worker, stage, part):
    """Where a worker's block counts a stage's time; behind the last stage's kind there is that of the run's end."""
    kind = load_i64(load_i64(team + TEAM_KINDS) + 8 * stage)
    return load_i64(team + TEAM_NOTES) + BLOCK_BYTES * worker + part + 8 * kind


@device
def book(cell, ticks):
    store_i64(cell, load_i64(cell) + ticks)


@helper
def fetch_next(team, stage):
    """Fetch the operations of the stage behind this one, and the record of the stage behind that."""
    if stage + 1 >= load_i64(team + TEAM_N_STAGES):
        return
    record = stage_address(team, stage + 1)
    fetch_stage(record + STAGE_BYTES)
    op = load_i64(team + TEAM_OPS) + OP_BYTES * load_i64(record + STAGE_FIRST)
    for _ in range(load_i64(record + STAGE_COUNT)):
        fetch_operation(op)
        op += OP_BYTES


@helper
def end_stage(team, worker, stage):
    """What the worker does that finished a stage's last chunk: take the time. Whether the run halts here."""
    now = cycle_counter()
    book(kind_cell(team, worker, stage, 0), now - load_i64(team + TEAM_LAST_TICK))
    store_i64(team + TEAM_LAST_TICK, now)
    store_i64(team + TEAM_DONE, 0)
    halt = load_i64(stage_address(team, stage) + STAGE_HALT)
    if halt == 0 or load_i64(halt) == 0:
        return False
    store_i64(team + TEAM_HALTED_AT, stage)
    publish(team, STAGE_IDLE << 32)
    return True


@helper
def go_on_with(team, worker, stage, scratch):
    """Open the first stage from `stage` on that has several chunks. One of a single chunk is run here and now: nobody
    else need hear of it. At the end of the plan nobody has anything to do.
    """
    while stage < load_i64(team + TEAM_N_STAGES):
        n_chunks = stage_chunks(team, stage)
        if n_chunks > 1:
            publish(team, stage << 32 | n_chunks)
            return
        if n_chunks == 1:
            fetch_next(team, stage)
            run_chunk(team, stage, 0, scratch)
            book(kind_cell(team, worker, stage, BUSY_OFFSET), cycle_counter() - load_i64(team + TEAM_LAST_TICK))
            if end_stage(team, worker, stage):
                return
        stage += 1
    publish(team, STAGE_IDLE << 32)


@helper
def wait_for_change(team, stage):
    """Spin, then sleep, while the stage stays the same and has no chunk left."""
    for _ in range(load_i64(team + TEAM_SPINS)):
        if load_atomic(team + TEAM_STATE) >> 32 != stage:
            return
        pause()
    fetch_add(team + TEAM_SLEEPERS, 1)
    while load_atomic(team + TEAM_STATE) >> 32 == stage:
        futex_wait(team + TEAM_STATE + 4, stage)
    fetch_add(team + TEAM_SLEEPERS, -1)


@helper
def take_chunks(team, scratch, worker):
    """Work until the run is over. Returns the stage that ended it: STAGE_IDLE or STAGE_STOP."""
    n_workers = load_i64(team + TEAM_N_WORKERS)
    busy_from, busy_stage, busy_cell = 0, 0, 0  # since when, in which stage, and where that is booked; 0: waiting
    while True:
        state = load_atomic(team + TEAM_STATE)
        stage, n_left = state >> 32, state & _LEFT_MASK
        if n_left == 0 or stage >= STAGE_STOP:
            if busy_from != 0:
                book(busy_cell, cycle_counter() - busy_from)
                busy_from = 0
            if stage >= STAGE_STOP:
                return stage
            wait_for_change(team, stage)
            continue
        n_taken = max(n_left // (_SHARES * n_workers), 1)
        if replace_if_equal(team + TEAM_STATE, state, state - n_taken) == 0:
            continue
        if busy_from == 0 or stage != busy_stage:
            now = cycle_counter()
            if busy_from != 0:
                book(busy_cell, now - busy_from)
            busy_from, busy_stage, busy_cell = now, stage, kind_cell(team, worker, stage, BUSY_OFFSET)
            fetch_next(team, stage)
        n_chunks = stage_chunks(team, stage)
        for chunk in range(n_chunks - n_left, n_chunks - n_left + n_taken):
            run_chunk(team, stage, chunk, scratch)
        if n_left - n_taken < n_workers:  # most likely its last ones: whoever ends the stage may end the run
            book(busy_cell, cycle_counter() - busy_from)
            busy_from = 0
        if fetch_add(team + TEAM_DONE, n_taken) + n_taken == n_chunks:
            if busy_from != 0:
                book(busy_cell, cycle_counter() - busy_from)
                busy_from = 0
            if not end_stage(team, worker, stage):
                go_on_with(team, worker, stage + 1, scratch)


@kernel
def walk(chunk, scratch, team: int, first_stage: int):
    """Run the team's plan from `first_stage` to its end or halt, working along; called by the engine's own thread."""
    store_i64(team + TEAM_HALTED_AT, -1)
    store_i64(team + TEAM_DONE, 0)
    store_i64(team + TEAM_LAST_TICK, cycle_counter())
    own_scratch = load_i64(team + TEAM_SCRATCH)
    go_on_with(team, 0, first_stage, own_scratch)
    take_chunks(team, own_scratch, 0)
    ending = kind_cell(team, 0, load_i64(team + TEAM_N_STAGES), 0)
    book(ending, cycle_counter() - load_i64(team + TEAM_LAST_TICK))


@kernel
def attend(chunk, scratch, team: int, worker: int):
    """A worker's whole life: join every run of the team until it is stopped."""
    own_scratch = load_i64(team + TEAM_SCRATCH) + worker * load_i64(team + TEAM_SCRATCH_BYTES)
    while take_chunks(team, own_scratch, worker) != STAGE_STOP:
        wait_for_change(team, STAGE_IDLE)


@kernel
def stop(chunk, scratch, team: int):
    """Let all workers of an idle team return."""
    publish(team, STAGE_STOP << 32)
