"""The layout of what the team notes about a step while it works: a row of a ring, read by anyone without locks.

row            head, filled by the engine's thread | ticks by kind of stage | for each worker: busy ticks by kind
notes block    address of the row | number of workers | address of the plan's kinds, one int64 for each stage

Ticks are those of the time-stamp counter. Each worker writes only its own part of the row, and the time of a stage is
written by the worker that ends it, so nothing here needs an atomic operation.
"""

from __future__ import annotations

KINDS = (  # what a stage's time counts as
    "embedding",
    "norms",
    "attention",
    "router",
    "experts",
    "feed forward",
    "output",
    "loading",
    "other",
)
N_KINDS = 16  # cells for kinds in a row; a part of a row is two cache lines
HAND_OVER = 15  # the cell, among the kinds, for the time in which the caller learns that a run is over
HEAD_CELLS = 32
PART_BYTES = 8 * N_KINDS
KINDS_OFFSET = 8 * HEAD_CELLS  # in a row
WORKERS_OFFSET = KINDS_OFFSET + PART_BYTES

TEAM_NOTES = 240  # the cell of the team block (see layout.py) that holds the address of the notes block
NOTES_ROW, NOTES_N_WORKERS, NOTES_KINDS = 0, 8, 16
NOTES_BYTES = 64


def row_cells(n_workers: int) -> int:
    """int64 cells of a row for a team of `n_workers`."""
    return HEAD_CELLS + N_KINDS * (1 + n_workers)


def kind_number(kind: str) -> int:
    """Where the time of stages of this kind is booked."""
    return KINDS.index(kind if kind in KINDS else "other")
