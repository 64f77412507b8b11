"""Proves, before a plan first runs, that no operation can reach outside its buffers, for the largest batch and context.

Kernels take raw addresses and check nothing. Here the extent of every operand is worked out anew from the operation's
own numbers, apart from the code that built the plan, and held against the memory that really exists. Numbers that
kernels find in memory and use as places (tokens, positions, rows, experts) are only taken from the arrays that hold
them, and nothing else may be written there.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.errors import PlanError
from engine.gguf import TensorType
from engine.kernels.layout import (
    FLOAT_TYPES,
    IN_SEQUENCE,
    ITEM_BYTES,
    PACKED_BLOCKS,
    PAGE,
    TILE_ROWS,
    activation_row_bytes,
    kv_head_bytes,
    packed_group_bytes,
    unpacked_bytes,
)
from engine.memory import Memory
from engine.plan import Operation, Plan, Stage

_MAKERS_OF_PLACES = ("route", "route_scored", "route_sparse", "group")
_LARGEST = 1 << 56  # sums and products of a few operands stay exact in 64 bits up to what memory can hold


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
    n_vocab: int
    n_rope_rows: int
    scratch_bytes: int
    cells: Mapping[str, int]  # addresses of the counts n_tokens, n_outputs, one
    arrays: Mapping[str, int]  # of tokens, positions, rope_rows, sequences, rows (whose logits are wanted), pages

    @property
    def max_pages(self) -> int:
        return -(-self.context_length // PAGE)


@dataclass(slots=True)
class _Facts:
    """What the walk through the plan has established so far."""

    limits: Limits
    most: dict[int, int]  # address of a count -> its largest value
    route: dict[str, int] = field(default_factory=dict)  # operands of the newest route operation
    group: dict[str, int] = field(default_factory=dict)  # operands of the newest group operation


def verify(plan: Plan, memory: Memory, limits: Limits) -> None:
    """Raise PlanError for the first operand that could reach outside of memory."""
    if plan.interrupt and not memory.contains(plan.interrupt, 8):
        raise PlanError("The cell that interrupts the plan lies outside of what was allocated; the plan is not run.")
    cells = limits.cells
    most = {cells["n_tokens"]: limits.max_tokens, cells["n_outputs"]: limits.max_outputs, cells["one"]: 1}
    facts = _Facts(limits, most)
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


def _check_stage(stage: Stage, facts: _Facts) -> None:
    if not stage.operations:
        raise PlanError(f"A stage of the kind {stage.kind!r} has no operations; the plan is not run.")
    first = stage.operations[0]
    if stage.order == IN_SEQUENCE:
        for operation in stage.operations:
            _same(operation, "work", operation.extent, first.extent)
    if stage.halt:
        _same(first, "halt", stage.halt, facts.group.get("missing"))


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


def _reaches(op: Operation, operands: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    kernel = op.kernel
    family = kernel if kernel in _FAMILIES else kernel.partition("_")[0]  # matmul_Q4_K is a matmul
    if family not in _FAMILIES:
        raise PlanError(f"The operation {kernel} has no rule by which its extents could be proved.")
    if op.extent.cell not in facts.most:
        raise PlanError(f"The operation {kernel} takes its amount of work from a place that holds no count.")
    _fits(op, facts.most[op.extent.cell], op.extent.most)
    yield from _FAMILIES[family](op, operands, facts)


class _Places:
    """The arrays whose numbers kernels use as places: only who makes them may write there."""

    def __init__(self, plan: Plan, limits: Limits) -> None:
        sizes = dict.fromkeys(limits.cells.values(), 8)
        for name, address in limits.arrays.items():
            sizes[address] = 4 * (limits.max_outputs if name == "rows" else limits.max_tokens)
        sizes[limits.arrays["pages"]] = 8 * limits.max_sequences * limits.max_pages
        for operation in (operation for stage in plan.stages for operation in stage.operations):
            if operation.kernel == "group":
                o = _integers(operation)
                for name in ("experts", "pair_tokens", "pair_of"):
                    sizes[o[name]] = 4 * limits.max_pairs
                sizes[o["slots"]] = 8 * o["n_experts"]
                sizes[o["items"]] = ITEM_BYTES * _most_items(o, limits)
                sizes |= dict.fromkeys((o["n_items"], o["n_pairs"], o["missing"]), 8)
        self._starts = sorted(sizes)
        self._ends = [start + sizes[start] for start in self._starts]

    def refuse_overlap(self, op: Operation, address: int, n_bytes: int) -> None:
        place = bisect.bisect_left(self._starts, address + n_bytes) - 1
        if place >= 0 and self._ends[place] > address:
            raise PlanError(f"The operation {op.kernel} would write over numbers that others take for places.")


def _most_items(o: dict[str, int], limits: Limits) -> int:
    return min(limits.max_pairs, o["n_experts"] + limits.max_pairs // max(o["max_rows"], 1))


def _embed(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    _same(op, "tokens", o["tokens"], facts.limits.arrays["tokens"])
    stored = TensorType[op.kernel.removeprefix("embed_")]
    _whole(op, o["n"], stored.block_size)
    _fits(op, o["n"] // stored.block_size * stored.block_bytes, o["row_bytes"])
    _fits(op, 4 * o["n"], o["stride"])
    yield Reach("table", o["row_bytes"] * facts.limits.n_vocab)
    yield Reach("tokens", 4 * op.extent.most)
    yield Reach("out", o["stride"] * op.extent.most, writes=True)


def _rms_norm(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    _whole(op, o["n"], 16)
    _fits(op, 1, o["n_parts"])
    _fits(op, 4 * o["n"] * o["n_parts"], o["stride"])
    yield Reach("x", o["stride"] * op.extent.most)
    yield Reach("out", o["stride"] * op.extent.most, writes=True)
    yield Reach("weight", 4 * o["n"])


def _layer_norm(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    _whole(op, o["n"], 16)
    _fits(op, 4 * o["n"], o["stride"])
    yield Reach("x", o["stride"] * op.extent.most)
    yield Reach("out", o["stride"] * op.extent.most, writes=True)
    yield Reach("weight", 4 * o["n"])
    yield Reach("bias", 4 * o["n"])


def _scale_rows(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    _whole(op, o["n"], 16)
    _fits(op, 4 * o["n"], o["stride"])
    yield Reach("x", o["stride"] * op.extent.most, writes=True)


def _open_gate(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    _whole(op, o["n"], 16)
    for name in ("x", "gate"):
        _fits(op, 4 * o["n"], o[f"{name}_stride"])
        yield Reach(name, o[f"{name}_stride"] * op.extent.most, writes=name == "x")


def _quantise(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    _whole(op, o["n_inputs"], 32)
    _fits(op, 4 * o["n_inputs"], o["x_stride"])
    _fits(op, activation_row_bytes(o["n_inputs"]), o["out_stride"])
    yield Reach("x", o["x_stride"] * op.extent.most)
    yield Reach("out", o["out_stride"] * op.extent.most, writes=True)


def _add(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    _whole(op, o["n"], 16)
    _fits(op, 4 * o["n"], o["stride"])
    yield Reach("x", o["stride"] * op.extent.most, writes=True)
    yield Reach("y", o["stride"] * op.extent.most)
    if "gate" in o:
        _fits(op, 4, o["gate_stride"])
        yield Reach("gate", o["gate_stride"] * op.extent.most)


def _gather_rows(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    if o["rows"] == facts.group.get("pair_tokens"):
        _same(op, "extent", op.extent.cell, facts.group["n_pairs"])
        _fits(op, op.extent.most, facts.limits.max_pairs)
    else:
        _same(op, "rows", o["rows"], facts.limits.arrays["rows"])
        _fits(op, op.extent.most, facts.limits.max_outputs)
    _whole(op, o["stride"], 64)
    yield Reach("x", o["stride"] * facts.limits.max_tokens)
    yield Reach("rows", 4 * op.extent.most)
    yield Reach("out", o["stride"] * op.extent.most, writes=True)


def _matmul(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    limits, group = facts.limits, facts.group
    type_name = op.kernel.removeprefix("matmul_").removesuffix("_f32")
    floats = op.kernel.endswith("_f32") or type_name in FLOAT_TYPES
    rows = limits.max_pairs if o["items"] else op.extent.most
    for name, ours, walkers in (
        ("row_chunks", o["row_chunks"], op.extent.row_chunks),
        ("unit", o["unit"], op.extent.unit),
        ("extent", o["extent"], op.extent.cell),
    ):
        _same(op, name, ours, walkers)
    _whole(op, o["n_inputs"], max(4, PACKED_BLOCKS[type_name][0]))
    _same(op, "group_bytes", o["group_bytes"], packed_group_bytes(type_name, o["n_inputs"]))
    _fits(op, 64 * o["n_groups"], o["out_stride"])
    _fits(op, unpacked_bytes(o["n_inputs"]), limits.scratch_bytes)
    _fits(op, 4 * o["n_inputs"] if floats else activation_row_bytes(o["n_inputs"]), o["x_stride"])
    if not o["row_chunks"] * o["groups_per_chunk"] >= o["n_groups"] >= 1:
        raise PlanError(f"The operation {op.kernel} does not cover all of its rows.")
    weights_end = o["matrix_offset"] + o["n_groups"] * o["group_bytes"]
    if o["items"]:
        for name, source in (("extent", "n_items"), ("items", "items"), ("weights", "slots")):
            _same(op, name, o[name], group.get(source))
        _same(op, "unit", o["unit"], 1)
        _fits(op, weights_end, limits.slab_bytes)
        yield Reach("items", ITEM_BYTES * op.extent.most)
        yield Reach("weights", 8 * group["n_experts"])
    else:
        yield Reach("weights", weights_end)
    if o["rows_at_once"] < 1:
        raise PlanError(f"The operation {op.kernel} takes {o['rows_at_once']} rows at once; it would never end.")
    yield Reach("x", o["x_stride"] * (rows if floats else rows + TILE_ROWS - 1))
    yield Reach("out", o["out_stride"] * rows, writes=True)
    if o["bias"]:
        yield Reach("bias", 64 * o["n_groups"])


def _rope(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    for name, multiple in (("head_dim", 16), ("n_heads", 1), ("n_pairs", 1)):
        _whole(op, o[name], multiple)
    _fits(op, 4 * o["n_heads"] * o["head_dim"], o["stride"])
    yield Reach("x", o["stride"] * op.extent.most, writes=True)
    yield from _rotation(op, o, facts)


def _rotation(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    """The table of cosines and sines, and which of its rows are used."""
    _fits(op, 2 * o["n_pairs"], o["head_dim"])
    _same(op, "rope_rows", o["rope_rows"], facts.limits.arrays["rope_rows"])
    _fits(op, op.extent.most, facts.limits.max_tokens)
    yield Reach("rope_rows", 4 * op.extent.most)
    yield Reach("table", max(8 * o["n_pairs"] * facts.limits.n_rope_rows, 1))


def _rope_store(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    yield from _paged(op, o, facts)
    for name, n in (
        ("q", o["n_heads"] * o["head_dim"]),
        ("k", o["n_kv_heads"] * o["head_dim"]),
        ("v", o["n_kv_heads"] * o["value_dim"]),
    ):
        _fits(op, 4 * n, o[f"{name}_stride"])
        yield Reach(name, o[f"{name}_stride"] * op.extent.most, writes=True)
    yield from _rotation(op, o, facts)


def _attention(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    yield from _paged(op, o, facts)
    _same(op, "unit", o["unit"], op.extent.unit)
    _same(op, "n_tokens", o["n_tokens"], op.extent.cell)
    _same(op, "n_kv_heads", o["n_kv_heads"], op.extent.row_chunks)
    _whole(op, o["n_heads"], o["n_kv_heads"])
    group = o["n_heads"] // o["n_kv_heads"]
    _fits(op, o["unit"] * group * 4 * (o["max_pages"] * PAGE + 1), facts.limits.scratch_bytes)
    _fits(op, 4 * o["n_heads"] * o["head_dim"], o["q_stride"])
    _fits(op, 4 * o["n_heads"] * o["value_dim"], o["out_stride"])
    yield Reach("q", o["q_stride"] * op.extent.most)
    yield Reach("out", o["out_stride"] * op.extent.most, writes=True)
    if o["sinks"]:
        yield Reach("sinks", 4 * o["n_heads"])
    if o["rounded"]:
        _whole(op, group * o["value_dim"], 32)
        _fits(op, activation_row_bytes(o["n_heads"] * o["value_dim"]), o["rounded_stride"])
        yield Reach("rounded", o["rounded_stride"] * op.extent.most, writes=True)


def _paged(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    """The page table; the pages themselves are whole by the pool's making, so the layer's part must lie inside one."""
    limits, element = facts.limits, 2 if o["is_half"] else 4
    for name in ("positions", "sequences", "pages"):
        _same(op, name, o[name], limits.arrays[name])
    _same(op, "max_pages", o["max_pages"], limits.max_pages)
    _fits(op, op.extent.most, limits.max_tokens)
    for name, multiple in (("head_dim", 16), ("value_dim", 16), ("n_heads", 1), ("n_kv_heads", 1)):
        _whole(op, o[name], multiple)
    _same(op, "head_bytes", o["head_bytes"], kv_head_bytes(o["head_dim"], o["value_dim"], element))
    _fits(op, o["layer_offset"] + o["n_kv_heads"] * o["head_bytes"], limits.page_bytes)
    yield Reach("pages", 8 * limits.max_sequences * o["max_pages"])
    yield Reach("positions", 4 * op.extent.most)
    yield Reach("sequences", 4 * op.extent.most)


def _swiglu(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _same(op, "unit", op.extent.unit, 1)
    _same(op, "row_chunks", o["row_chunks"], op.extent.row_chunks)
    _whole(op, o["n_columns"], 16)
    _whole(op, o["columns_per_chunk"], 32)
    _fits(op, o["n_columns"], o["row_chunks"] * o["columns_per_chunk"])
    _fits(op, 4 * o["n_columns"], o["stride"])
    yield Reach("gate", o["stride"] * op.extent.most, writes=True)
    yield Reach("up", o["stride"] * op.extent.most)
    if o["rounded"]:
        _whole(op, o["n_columns"], 32)
        _fits(op, activation_row_bytes(o["n_columns"]), o["rounded_stride"])
        yield Reach("rounded", o["rounded_stride"] * op.extent.most, writes=True)


def _route(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    padded = -(-o["n_experts"] // 16) * 64
    _fits(op, padded, o["logits_stride"])
    _fits(op, padded, facts.limits.scratch_bytes)
    _fits(op, o["top_k"], o["n_experts"])
    if op.kernel == "route_sparse":
        _same(op, "top_k", o["top_k"], 2)
    if op.kernel == "route_scored":
        _whole(op, o["n_experts"], o["n_groups"])
        _fits(op, 1, min(o["n_groups_used"], o["n_group_best"]))
        _fits(op, o["n_groups_used"], o["n_groups"])
        _fits(op, o["n_group_best"], min(o["n_experts"] // o["n_groups"], 2))
        _fits(op, 2 * padded + 4 * o["n_groups"], facts.limits.scratch_bytes)
        if o["bias"]:
            yield Reach("bias", 4 * o["n_experts"])
    facts.route = o
    yield Reach("logits", o["logits_stride"] * op.extent.most, writes=True)
    yield Reach("experts", 4 * o["top_k"] * op.extent.most, writes=True)
    yield Reach("weights", 4 * o["top_k"] * op.extent.most, writes=True)


def _group(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    limits = facts.limits
    _one_a_row(op)
    _same(op, "work", (op.extent.cell, op.extent.most), (limits.cells["one"], 1))
    _same(op, "n_tokens", o["n_tokens"], limits.cells["n_tokens"])
    for name in ("experts", "top_k", "n_experts"):
        _same(op, name, o[name], facts.route.get(name))
    _fits(op, limits.max_tokens * o["top_k"], limits.max_pairs)
    _fits(op, 1, o["max_rows"])
    _fits(op, 16 * o["n_experts"], limits.scratch_bytes)
    yield Reach("experts", 4 * limits.max_pairs)
    for name in ("pair_tokens", "pair_of"):
        yield Reach(name, 4 * limits.max_pairs, writes=True)
    yield Reach("slots", 8 * o["n_experts"])
    for name in ("counts", "last_used"):
        yield Reach(name, 8 * o["n_experts"], writes=True)
    yield Reach("items", ITEM_BYTES * _most_items(o, limits), writes=True)
    yield Reach("newest", 4 * o["top_k"], writes=True)
    for name in ("n_items", "n_pairs", "missing"):
        yield Reach(name, 8, writes=True)
    for name in ("n_tokens", "clock"):
        yield Reach(name, 8)
    facts.group = o
    facts.most |= {o["n_items"]: _most_items(o, limits), o["n_pairs"]: limits.max_pairs}


def _combine(op: Operation, o: dict[str, int], facts: _Facts) -> Iterator[Reach]:
    _one_a_row(op)
    _whole(op, o["n"], 16)
    _fits(op, 4 * o["n"], o["stride"])
    _same(op, "top_k", o["top_k"], facts.group.get("top_k"))
    _same(op, "pair_of", o["pair_of"], facts.group.get("pair_of"))
    yield Reach("x", o["stride"] * op.extent.most, writes=True)
    yield Reach("outputs", o["stride"] * facts.limits.max_pairs)
    yield Reach("weights", 4 * o["top_k"] * op.extent.most)
    yield Reach("pair_of", 4 * o["top_k"] * op.extent.most)


_FAMILIES: dict[str, Callable[[Operation, dict[str, int], _Facts], Iterator[Reach]]] = {
    "embed": _embed,
    "rms_norm": _rms_norm,
    "layer_norm": _layer_norm,
    "scale_rows": _scale_rows,
    "quantise": _quantise,
    "add": _add,
    "gather_rows": _gather_rows,
    "matmul": _matmul,
    "rope": _rope,
    "rope_store": _rope_store,
    "attention": _attention,
    "swiglu": _swiglu,
    "open_gate": _open_gate,
    "route": _route,
    "group": _group,
    "combine": _combine,
}


def _fits(op: Operation, needed: int, available: int) -> None:
    if needed > available:
        raise PlanError(f"The operation {op.kernel} needs {needed} where {available} are available; it is not run.")


def _whole(op: Operation, n: int, multiple: int) -> None:
    if n < 1 or multiple < 1 or n % multiple:
        raise PlanError(f"The operation {op.kernel} takes a multiple of {multiple} values, not {n}.")


def _same(op: Operation, name: str, found: object, expected: object) -> None:
    if found != expected:
        raise PlanError(f"The operation {op.kernel} has {found} for {name} where {expected} was expected.")


def _one_a_row(op: Operation) -> None:
    """The kernel takes its chunk's number for a row, so there must be as many chunks as rows."""
    _same(op, "unit", op.extent.unit, 1)
    _same(op, "row chunks", op.extent.row_chunks, 1)
