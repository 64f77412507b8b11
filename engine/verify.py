"""Proves, before a plan first runs, that no operation can reach outside its buffers, for the largest batch and context.

Kernels take raw addresses and check nothing. Here the extent of every operand is worked out anew from the operation's
own numbers, apart from the code that built the plan, and held against the memory that really exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from engine.errors import PlanError
from engine.kernels.layout import ITEM_BYTES, PAGE, activation_row_bytes
from engine.memory import Memory
from engine.plan import Operation, Plan

Reach = tuple[str, int]  # an operand's name and the bytes that are reached from its address


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest sizes that a run can have."""

    max_tokens: int
    max_pairs: int  # (token, expert) pairs of a batch
    max_sequences: int
    context_length: int
    slab_bytes: int
    page_bytes: int
    n_vocab: int
    scratch_bytes: int


def verify(plan: Plan, memory: Memory, limits: Limits) -> None:
    """Raise PlanError for the first operand that could reach outside of memory."""
    for stage in plan.stages:
        for operation in stage.operations:
            for name, n_bytes in _reaches(operation, limits):
                if n_bytes > 0 and not memory.contains(int(operation.operands[name]), n_bytes):
                    raise PlanError(
                        f"The operation {operation.kernel} would reach {n_bytes} bytes from its operand {name}, more "
                        "than was allocated there. This model's sizes contradict each other; it is not run."
                    )


def _reaches(operation: Operation, limits: Limits) -> Iterator[Reach]:
    kernel = operation.kernel
    family = kernel if kernel in _FAMILIES else kernel.partition("_")[0]  # matmul_Q4_K is a matmul
    if family not in _FAMILIES:
        raise PlanError(f"The operation {kernel} has no rule by which its extents could be proved.")
    yield from _FAMILIES[family](operation, {k: int(v) for k, v in operation.operands.items()}, limits)


def _embed(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    yield "table", o["row_bytes"] * limits.n_vocab
    yield "tokens", 4 * op.extent.most
    yield "out", o["stride"] * op.extent.most
    _fits(op, 4 * o["n"], o["stride"])


def _rms_norm(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    _fits(op, 4 * o["n"] * o["n_parts"], o["stride"])
    _whole(op, o["n"], 16)
    yield "x", o["stride"] * op.extent.most
    yield "out", o["stride"] * op.extent.most
    yield "weight", 4 * o["n"]


def _quantise(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    _whole(op, o["n_inputs"], 32)
    _fits(op, 4 * o["n_inputs"], o["x_stride"])
    _fits(op, activation_row_bytes(o["n_inputs"]), o["out_stride"])
    yield "x", o["x_stride"] * op.extent.most
    yield "out", o["out_stride"] * op.extent.most


def _add(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    _whole(op, o["n"], 16)
    _fits(op, 4 * o["n"], o["stride"])
    yield "x", o["stride"] * op.extent.most
    yield "y", o["stride"] * op.extent.most
    if "gate" in o:
        yield "gate", o["gate_stride"] * op.extent.most


def _gather_rows(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    yield "x", o["stride"] * limits.max_tokens
    yield "rows", 4 * op.extent.most
    yield "out", o["stride"] * op.extent.most


def _matmul(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    rows = limits.max_pairs if o["items"] else op.extent.most
    _fits(op, 64 * o["n_groups"], o["out_stride"])
    _fits(op, 22 * o["n_inputs"], limits.scratch_bytes)
    floats = op.kernel.endswith("32") or op.kernel.endswith("F16")
    _fits(op, 4 * o["n_inputs"] if floats else activation_row_bytes(o["n_inputs"]), o["x_stride"])
    if o["row_chunks"] * o["groups_per_chunk"] < o["n_groups"]:
        raise PlanError(f"The operation {op.kernel} does not cover all of its rows.")
    weights_end = o["matrix_offset"] + o["n_groups"] * o["group_bytes"]
    if o["items"]:
        _fits(op, weights_end, limits.slab_bytes)
        yield "items", ITEM_BYTES * op.extent.most
    else:
        yield "weights", weights_end
    if o["gather"]:
        yield "gather", 4 * rows
    yield "x", o["x_stride"] * (limits.max_tokens if o["gather"] else rows)
    yield "out", o["out_stride"] * rows
    if o["bias"]:
        yield "bias", 64 * o["n_groups"]


def _rope_store(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    yield from _paged(op, o, limits)
    _fits(op, 2 * o["n_pairs"], o["head_dim"])
    for name, n in (
        ("q", o["n_heads"] * o["head_dim"]),
        ("k", o["n_kv_heads"] * o["head_dim"]),
        ("v", o["n_kv_heads"] * o["value_dim"]),
    ):
        _fits(op, 4 * n, o[f"{name}_stride"])
        yield name, o[f"{name}_stride"] * op.extent.most
    yield "table", 8 * o["n_pairs"] * limits.context_length


def _attention(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    yield from _paged(op, o, limits)
    group = o["n_heads"] // o["n_kv_heads"]
    _fits(op, group * (4 * o["max_pages"] * PAGE + 64), limits.scratch_bytes)
    _fits(op, 4 * o["n_heads"] * o["head_dim"], o["q_stride"])
    _fits(op, 4 * o["n_heads"] * o["value_dim"], o["out_stride"])
    yield "q", o["q_stride"] * op.extent.most
    yield "out", o["out_stride"] * op.extent.most
    if o["rounded"]:
        _fits(op, activation_row_bytes(o["n_heads"] * o["value_dim"]), o["rounded_stride"])
        yield "rounded", o["rounded_stride"] * op.extent.most


def _paged(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    """The page table; the pages themselves are whole by the pool's making, so the layer's part must lie inside one."""
    element = 2 if o["is_half"] else 4
    _fits(op, PAGE * (o["head_dim"] + o["value_dim"]) * element, o["head_bytes"])
    _fits(op, o["layer_offset"] + o["n_kv_heads"] * o["head_bytes"], limits.page_bytes)
    _fits(op, limits.context_length, o["max_pages"] * PAGE)
    yield "pages", 8 * limits.max_sequences * o["max_pages"]
    yield "positions", 4 * op.extent.most
    yield "sequences", 4 * op.extent.most


def _swiglu(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    _whole(op, o["n_columns"], 16)
    _fits(op, 4 * o["n_columns"], o["stride"])
    yield "gate", o["stride"] * op.extent.most
    yield "up", o["stride"] * op.extent.most
    if o["rounded"]:
        _whole(op, o["n_columns"], 32)
        _fits(op, activation_row_bytes(o["n_columns"]), o["rounded_stride"])
        yield "rounded", o["rounded_stride"] * op.extent.most


def _route(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    padded = -(-o["n_experts"] // 16) * 64
    _fits(op, padded, o["logits_stride"])
    _fits(op, padded, limits.scratch_bytes)
    _fits(op, o["top_k"], o["n_experts"])
    yield "logits", o["logits_stride"] * op.extent.most
    yield "experts", 4 * o["top_k"] * op.extent.most
    yield "weights", 4 * o["top_k"] * op.extent.most


def _group(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    pairs = limits.max_tokens * o["top_k"]
    _fits(op, 16 * o["n_experts"], limits.scratch_bytes)
    for name in ("experts", "pair_tokens", "pair_of"):
        yield name, 4 * pairs
    for name in ("slots", "counts", "last_used"):
        yield name, 8 * o["n_experts"]
    yield "items", ITEM_BYTES * min(pairs, o["n_experts"] + pairs // o["max_rows"])
    yield "newest", 4 * o["top_k"]
    for name in ("n_tokens", "n_items", "n_pairs", "missing", "clock"):
        yield name, 8


def _combine(op: Operation, o: dict[str, int], limits: Limits) -> Iterator[Reach]:
    _fits(op, 4 * o["n"], o["stride"])
    yield "x", o["stride"] * op.extent.most
    yield "outputs", o["stride"] * op.extent.most * o["top_k"]
    yield "weights", 4 * o["top_k"] * op.extent.most
    yield "pair_of", 4 * o["top_k"] * op.extent.most


_FAMILIES: dict[str, Callable[[Operation, dict[str, int], Limits], Iterator[Reach]]] = {
    "embed": _embed,
    "rms_norm": _rms_norm,
    "quantise": _quantise,
    "add": _add,
    "gather_rows": _gather_rows,
    "matmul": _matmul,
    "rope_store": _rope_store,
    "attention": _attention,
    "swiglu": _swiglu,
    "route": _route,
    "group": _group,
    "combine": _combine,
}


def _fits(op: Operation, needed: int, available: int) -> None:
    if needed > available:
        raise PlanError(f"The operation {op.kernel} needs {needed} where {available} are available; it is not run.")


def _whole(op: Operation, n: int, multiple: int) -> None:
    if n % multiple:
        raise PlanError(f"The operation {op.kernel} takes a multiple of {multiple} values, not {n}.")
