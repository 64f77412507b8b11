"""What the rules about operations' extents share: limits, what the walk has established, and ways to refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.errors import PlanError
from engine.kernels.layout import PAGE
from engine.plan import Operation


class Reach(NamedTuple):
    """The bytes that an operation reaches from one of its operands, and whether it writes them."""

    operand: str
    n_bytes: int
    writes: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest sizes that a run can have, and where a step's own arrays are."""

    max_tokens: int
    max_pairs: int  # (token, expert) pairs of a batch
    max_sequences: int
    max_outputs: int
    context_length: int
    slab_bytes: int
    page_bytes: int
    state_bytes: int  # of one sequence
    n_vocab: int
    n_rope_rows: int
    scratch_bytes: int
    cells: Mapping[str, int]  # addresses of the counts n_tokens, n_outputs, one
    arrays: Mapping[
        str, int
    ]  # of tokens, positions, rope_rows, sequences, rows (whose logits are wanted), pages, old and new states

    @property
    def max_pages(self) -> int:
        return -(-self.context_length // PAGE)


@dataclass(slots=True)
class Facts:
    """What the walk through the plan has established so far."""

    limits: Limits
    most: dict[int, int]  # address of a count -> its largest value
    route: dict[str, int] = field(default_factory=dict)  # operands of the newest route operation
    group: dict[str, int] = field(default_factory=dict)  # operands of the newest group operation
    wanted: dict[str, int] = field(default_factory=dict)  # operands of the newest foresee operation
    routes: dict[int, dict[str, int]] = field(default_factory=dict)  # of all route operations, by where experts go


def fits(op: Operation, needed: int, available: int) -> None:
    if needed > available:
        raise PlanError(f"The operation {op.kernel} needs {needed} where {available} are available; it is not run.")


def whole(op: Operation, n: int, multiple: int) -> None:
    if n < 1 or multiple < 1 or n % multiple:
        raise PlanError(f"The operation {op.kernel} takes a multiple of {multiple} values, not {n}.")


def registers(op: Operation, n: int) -> int:
    """The bytes of `n` floats that the kernel takes sixteen at a time, the last ones with what follows them."""
    whole(op, n, 1)
    return -(-n // 16) * 64


def same(op: Operation, name: str, found: object, expected: object) -> None:
    if found != expected:
        raise PlanError(f"The operation {op.kernel} has {found} for {name} where {expected} was expected.")


def one_a_row(op: Operation) -> None:
    """The kernel takes its chunk's number for a row, so there must be as many chunks as rows."""
    same(op, "unit", op.extent.unit, 1)
    same(op, "row chunks", op.extent.row_chunks, 1)
