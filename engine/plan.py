"""A model as a flat list of operations: records that compiled kernels read, in stages that the team walks.

The operations of a stage are independent of each other and run side by side, or (per-token work) each worker runs all
of them in sequence for its token. Between stages everybody sees everything that was written before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.kernels.layout import IN_SEQUENCE, OP_BYTES, SIDE_BY_SIDE, STAGE_BYTES
from engine.kernels.library import KernelLibrary
from engine.kernels.notes import HAND_OVER, kind_number


@dataclass(frozen=True, slots=True)
class Extent:
    """An operation's work: ceil(value of the int64 `cell` / unit) * row_chunks chunks; `most` bounds the value."""

    cell: int
    most: int
    unit: int = 1
    row_chunks: int = 1


@dataclass(frozen=True, slots=True)
class Operation:
    """One kernel with its operands, as the builder wrote it and the verifier reads it."""

    kernel: str
    extent: Extent
    operands: dict[str, float]


@dataclass(slots=True)
class Stage:
    """Operations between two barriers. `kind`: what its time counts as; `halt`: a cell that stops the run if not 0."""

    kind: str
    order: int
    halt: int = 0
    operations: list[Operation] = field(default_factory=list)


class Plan:
    """Collects stages; `finish` turns them into the arrays that the team executes."""

    def __init__(self, library: KernelLibrary, interrupt: int = 0) -> None:
        """`interrupt`: address of an int64 that stops a run after the stage under way when it is not 0; 0: none."""
        self._library = library
        self.interrupt = interrupt
        self.stages: list[Stage] = []
        self.ops: np.ndarray[Any, Any] = np.zeros((0, OP_BYTES // 8), np.int64)
        self.stage_records: np.ndarray[Any, Any] = np.zeros((0, STAGE_BYTES // 8), np.int64)
        self.kinds: np.ndarray[Any, Any] = np.array([HAND_OVER], np.int64)  # (n_stages + 1,): the last of a run's end

    @contextmanager
    def side_by_side(self, kind: str, *, halt: int = 0) -> Iterator[None]:
        self.stages.append(Stage(kind, SIDE_BY_SIDE, halt))
        yield

    @contextmanager
    def in_sequence(self, kind: str) -> Iterator[None]:
        self.stages.append(Stage(kind, IN_SEQUENCE))
        yield

    def add(self, kernel: str, extent: Extent, /, **operands: float) -> None:
        """Put an operation into the stage that was opened last."""
        self.stages[-1].operations.append(Operation(kernel, extent, operands))

    def finish(self) -> None:
        """Lay the records out; the plan must not change afterwards."""
        operations = [operation for stage in self.stages for operation in stage.operations]
        self.ops = np.zeros((len(operations), OP_BYTES // 8), np.int64)
        for record, operation in zip(self.ops, operations, strict=True):
            record[:] = self._library.pack(operation.kernel, operation.operands)
            extent = operation.extent
            record[1:4] = extent.cell, extent.unit, extent.row_chunks
        self.stage_records = np.zeros((len(self.stages), STAGE_BYTES // 8), np.int64)
        first = 0
        for record, stage in zip(self.stage_records, self.stages, strict=True):
            record[:] = first, len(stage.operations), stage.order, stage.halt or self.interrupt
            first += len(stage.operations)
        kinds = [kind_number(stage.kind) for stage in self.stages]
        only_loads = set(kinds) == {kind_number("loading")}
        self.kinds = np.array([*kinds, kinds[-1] if only_loads else HAND_OVER], np.int64)
