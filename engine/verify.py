"""Proves, before a plan first runs, that no operation can reach outside its buffers, for the largest batch and context.

Kernels take raw addresses and check nothing. Here the extent of every operand is worked out anew from the operation's
own numbers, apart from the code that built the plan, and held against the memory that really exists. Numbers that
kernels find in memory and use as places (tokens, positions, rows, experts) are only taken from the arrays that hold
them, and nothing else may be written there.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator

from engine.errors import PlanError
from engine.extents import FAMILIES, Facts, Limits, Reach
from engine.extents.base import fits, same
from engine.extents.experts import most_items
from engine.kernels.layout import IN_SEQUENCE, ITEM_BYTES
from engine.memory import Memory
from engine.plan import Operation, Plan, Stage

__all__ = ["Limits", "verify"]

_MAKERS_OF_PLACES = ("route", "route_scored", "route_sparse", "group", "foresee")
_LARGEST = 1 << 56  # sums and products of a few operands stay exact in 64 bits up to what memory can hold


def verify(plan: Plan, memory: Memory, limits: Limits) -> None:
    """Raise PlanError for the first operand that could reach outside of memory."""
    if plan.interrupt and not memory.contains(plan.interrupt, 8):
        raise PlanError("The cell that interrupts the plan lies outside of what was allocated; the plan is not run.")
    cells = limits.cells
    most = {cells["n_tokens"]: limits.max_tokens, cells["n_outputs"]: limits.max_outputs, cells["one"]: 1}
    most[cells["n_foreseen"]] = limits.max_tokens
    facts = Facts(limits, most)
    places = _Places(plan, limits)
    for stage in plan.stages:
        for operation in stage.operations:
            operands = _integers(operation)
            for reach in _reaches(operation, operands, facts):
                address = operands[reach.operand]
                if reach.n_bytes < 1 or not memory.contains(address, reach.n_bytes, writable=reach.writes):
                    raise PlanError(
                        f"The operation {operation.kernel} would reach {reach.n_bytes} bytes from its operand "
                        f"{reach.operand}, more than was allocated there. This model's sizes contradict each other; it "
                        "is not run."
                    )
                if reach.writes and operation.kernel not in _MAKERS_OF_PLACES:
                    places.refuse_overlap(operation, address, reach.n_bytes)
        _check_stage(stage, facts)


def _check_stage(stage: Stage, facts: Facts) -> None:
    if not stage.operations:
        raise PlanError(f"A stage of the kind {stage.kind!r} has no operations; the plan is not run.")
    first = stage.operations[0]
    if stage.order == IN_SEQUENCE:
        for operation in stage.operations:
            same(operation, "work", operation.extent, first.extent)
    if stage.halt:
        same(first, "halt", stage.halt, facts.group.get("missing"))


def _integers(op: Operation) -> dict[str, int]:
    """The operands that are counts or addresses, none of them negative or absurd."""
    operands = {name: int(value) for name, value in op.operands.items() if not isinstance(value, float)}
    extent = op.extent
    if min(operands.values()) < 0 or max(operands.values()) >= _LARGEST:
        wrong = next(item for item in operands.items() if not 0 <= item[1] < _LARGEST)
        raise PlanError(f"The operation {op.kernel} has {wrong[1]} for {wrong[0]}; it is not run.")
    if not (0 < extent.unit < _LARGEST and 0 < extent.row_chunks < _LARGEST and 0 < extent.most < _LARGEST):
        raise PlanError(f"The operation {op.kernel} has the senseless amount of work {extent}; it is not run.")
    return operands


def _reaches(op: Operation, operands: dict[str, int], facts: Facts) -> Iterator[Reach]:
    kernel = op.kernel
    family = kernel if kernel in FAMILIES else kernel.partition("_")[0]  # matmul_Q4_K is a matmul
    if family not in FAMILIES:
        raise PlanError(f"The operation {kernel} has no rule by which its extents could be proved.")
    if op.extent.cell not in facts.most:
        raise PlanError(f"The operation {kernel} takes its amount of work from a place that holds no count.")
    fits(op, facts.most[op.extent.cell], op.extent.most)
    yield from FAMILIES[family](op, operands, facts)


class _Places:
    """The arrays whose numbers kernels use as places: only who makes them may write there."""

    def __init__(self, plan: Plan, limits: Limits) -> None:
        sizes = dict.fromkeys(limits.cells.values(), 8)
        for name, address in limits.arrays.items():
            sizes[address] = 4 * (limits.max_outputs if name == "rows" else limits.max_tokens)
        for name in ("old_states", "new_states"):
            sizes[limits.arrays[name]] = 8 * limits.max_sequences
        sizes[limits.arrays["pages"]] = 8 * limits.max_sequences * limits.max_pages
        for operation in (operation for stage in plan.stages for operation in stage.operations):
            if operation.kernel == "foresee":
                o = _integers(operation)
                sizes |= {o[name]: 4 * limits.max_pairs for name in ("foreseen", "next_foreseen") if o[name]}
                sizes |= {o["wanted"]: 8 * o["n_experts"], o["n_wanted"]: 8}
            if operation.kernel == "group":
                o = _integers(operation)
                for name in ("experts", "pair_tokens", "pair_of"):
                    sizes[o[name]] = 4 * limits.max_pairs
                sizes[o["slots"]] = 8 * o["n_experts"]
                sizes[o["items"]] = ITEM_BYTES * most_items(o, limits)
                sizes |= dict.fromkeys((o["n_items"], o["n_pairs"], o["missing"]), 8)
        self._starts = sorted(sizes)
        self._ends = [start + sizes[start] for start in self._starts]

    def refuse_overlap(self, op: Operation, address: int, n_bytes: int) -> None:
        place = bisect.bisect_left(self._starts, address + n_bytes) - 1
        if place >= 0 and self._ends[place] > address:
            raise PlanError(f"The operation {op.kernel} would write over numbers that others take for places.")
