"""The layout of what the team notes about its time: a block for each worker, read by anyone without locks.

worker's block   by kind of stage: ticks of the stages that it ended | by kind: ticks in which it was busy

Ticks are those of the time-stamp counter, added up since the team began. Each worker writes only its own block, in
cache lines of its own, so nothing here needs an atomic operation and no worker waits for another's lines.
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
N_KINDS = 16  # cells for kinds in a part of a block, which is two cache lines
HAND_OVER = 15  # the cell, among the kinds, for the time in which the caller learns that a run is over
PART_BYTES = 8 * N_KINDS
N_PARTS = 2  # of a block: what stages took, what the worker was busy
BLOCK_BYTES = N_PARTS * PART_BYTES
BUSY_OFFSET = PART_BYTES  # in a block


def kind_number(kind: str) -> int:
    """Where the time of stages of this kind is booked."""
    return KINDS.index(kind if kind in KINDS else "other")
