"""The interpreter of plans: every worker of the team runs it, all on the same plan.

Workers take chunks of the current stage from one atomic counter and count what they finish. A stage is over when its
last chunk is finished, not when every worker has arrived: a worker that the system has put aside between two chunks
holds nobody up, and joins again wherever the others are. Who finds nothing to do spins for a while, then sleeps until
the stage changes, which leaves its core to whoever needs it.
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
    TEAM_LAST_TICK,
    TEAM_N_STAGES,
    TEAM_OPS,
    TEAM_SCRATCH,
    TEAM_SCRATCH_BYTES,
    TEAM_SLEEPERS,
    TEAM_SPINS,
    TEAM_STAGES,
    TEAM_STATE,
    TEAM_TICKS,
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
    store_atomic,
    store_i64,
)
from engine.kernels.registry import device, helper, kernel

_CHUNK_MASK = 0xFFFFFFFF


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
def next_stage(team, stage):
    """The first stage from `stage` on that has any chunks, or STAGE_IDLE at the end of the plan."""
    while stage < load_i64(team + TEAM_N_STAGES):
        if stage_chunks(team, stage) > 0:
            return stage
        stage += 1
    return STAGE_IDLE


@helper
def publish(team, stage):
    """Open `stage` to all workers and wake those that sleep."""
    store_atomic(team + TEAM_STATE, stage << 32)
    if load_atomic(team + TEAM_SLEEPERS) > 0:
        futex_wake_all(team + TEAM_STATE + 4)


@helper
def finish_stage(team, stage):
    """What the worker does that finished a stage's last chunk: take the time, and open the next stage or halt."""
    now = cycle_counter()
    ticks = load_i64(team + TEAM_TICKS) + 8 * stage
    store_i64(ticks, load_i64(ticks) + now - load_i64(team + TEAM_LAST_TICK))
    store_i64(team + TEAM_LAST_TICK, now)
    store_i64(team + TEAM_DONE, 0)
    halt = load_i64(stage_address(team, stage) + STAGE_HALT)
    if halt != 0 and load_i64(halt) != 0:
        store_i64(team + TEAM_HALTED_AT, stage)
        publish(team, STAGE_IDLE)
    else:
        publish(team, next_stage(team, stage + 1))


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
def take_chunks(team, scratch):
    """Work until the run is over. Returns the stage that ended it: STAGE_IDLE or STAGE_STOP."""
    while True:
        state = load_atomic(team + TEAM_STATE)
        stage = state >> 32
        if stage >= STAGE_STOP:
            return stage
        if state & _CHUNK_MASK >= stage_chunks(team, stage):
            wait_for_change(team, stage)
            continue
        state = fetch_add(team + TEAM_STATE, 1)
        stage, chunk = state >> 32, state & _CHUNK_MASK
        if stage >= STAGE_STOP or chunk >= stage_chunks(team, stage):
            continue
        n_chunks = stage_chunks(team, stage)
        run_chunk(team, stage, chunk, scratch)
        if fetch_add(team + TEAM_DONE, 1) + 1 == n_chunks:
            finish_stage(team, stage)


@kernel
def walk(chunk, scratch, team: int, first_stage: int):
    """Run the team's plan from `first_stage` to its end or halt, working along; called by the engine's own thread."""
    store_i64(team + TEAM_HALTED_AT, -1)
    store_i64(team + TEAM_DONE, 0)
    store_i64(team + TEAM_LAST_TICK, cycle_counter())
    publish(team, next_stage(team, first_stage))
    take_chunks(team, load_i64(team + TEAM_SCRATCH))


@kernel
def attend(chunk, scratch, team: int, worker: int):
    """A worker's whole life: join every run of the team until it is stopped."""
    own_scratch = load_i64(team + TEAM_SCRATCH) + worker * load_i64(team + TEAM_SCRATCH_BYTES)
    while take_chunks(team, own_scratch) != STAGE_STOP:
        wait_for_change(team, STAGE_IDLE)


@kernel
def stop(chunk, scratch, team: int):
    """Let all workers of an idle team return."""
    publish(team, STAGE_STOP)
