"""Extents of routing and of the work between the halves of feed-forward networks."""

from __future__ import annotations

from collections.abc import Iterator

from engine.extents.base import Facts, Limits, Reach, fits, one_a_row, registers, same, whole
from engine.kernels.layout import BLOCK, ITEM_BYTES, SCALED_BLOCKS, activation_row_bytes
from engine.plan import Operation


def swiglu(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    same(op, "unit", op.extent.unit, 1)
    same(op, "row_chunks", o["row_chunks"], op.extent.row_chunks)
    whole(op, o["columns_per_chunk"], BLOCK * SCALED_BLOCKS)
    fits(op, o["n_columns"], o["row_chunks"] * o["columns_per_chunk"])
    fits(op, registers(op, o["n_columns"]), o["stride"])
    rows = op.extent.most
    if op.kernel == "swiglu_clamped":
        whole(op, o["n_columns"], 16)  # of the biases, which follow one another
        rows, group = facts.limits.max_pairs, facts.group
        same(op, "extent", op.extent.cell, group.get("n_items"))
        same(op, "items", o["items"], group.get("items"))
        yield Reach("items", ITEM_BYTES * op.extent.most)
        for name in ("gate_bias", "up_bias"):
            yield Reach(name, 4 * group["n_experts"] * o["n_columns"])
    yield Reach("gate", o["stride"] * rows, writes=True)
    yield Reach("up", o["stride"] * rows)
    if o["rounded"]:
        whole(op, o["n_columns"], 32)
        fits(op, activation_row_bytes(o["n_columns"]), o["rounded_stride"])
        yield Reach("rounded", o["rounded_stride"] * rows, writes=True)
    else:
        same(op, "rounded_stride", o["rounded_stride"], 0)


def route(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    padded = -(-o["n_experts"] // 16) * 64
    fits(op, padded, o["logits_stride"])
    fits(op, padded, facts.limits.scratch_bytes)
    fits(op, o["top_k"], o["n_experts"])
    if op.kernel == "route_sparse":
        same(op, "top_k", o["top_k"], 2)
    if op.kernel == "route_scored":
        whole(op, o["n_experts"], o["n_groups"])
        fits(op, 1, min(o["n_groups_used"], o["n_group_best"]))
        fits(op, o["n_groups_used"], o["n_groups"])
        fits(op, o["n_group_best"], min(o["n_experts"] // o["n_groups"], 2))
        fits(op, 2 * padded + 4 * o["n_groups"], facts.limits.scratch_bytes)
        if o["bias"]:
            yield Reach("bias", 4 * o["n_experts"])
    facts.route = facts.routes[o["experts"]] = o | {"cell": op.extent.cell, "most": op.extent.most}
    yield Reach("logits", o["logits_stride"] * op.extent.most, writes=True)
    yield Reach("experts", 4 * o["top_k"] * op.extent.most, writes=True)
    yield Reach("weights", 4 * o["top_k"] * op.extent.most, writes=True)


def group(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    limits = facts.limits
    one_a_row(op)
    same(op, "work", (op.extent.cell, op.extent.most), (limits.cells["one"], 1))
    same(op, "n_tokens", o["n_tokens"], limits.cells["n_tokens"])
    for name in ("experts", "top_k", "n_experts"):
        same(op, name, o[name], facts.route.get(name))
    fits(op, limits.max_tokens * o["top_k"], limits.max_pairs)
    fits(op, 1, o["max_rows"])
    fits(op, 16 * o["n_experts"], limits.scratch_bytes)
    fits(op, 1, o["slab_bytes"])
    fits(op, o["slab_bytes"], limits.slab_bytes)
    yield Reach("experts", 4 * limits.max_pairs)
    for name in ("pair_tokens", "pair_of"):
        yield Reach(name, 4 * limits.max_pairs, writes=True)
    yield Reach("slots", 8 * o["n_experts"])
    for name in ("counts", "last_used"):
        yield Reach(name, 8 * o["n_experts"], writes=True)
    yield Reach("items", ITEM_BYTES * most_items(o, limits), writes=True)
    yield Reach("newest", 4 * o["top_k"], writes=True)
    for name in ("n_items", "n_pairs", "missing"):
        yield Reach(name, 8, writes=True)
    for name in ("n_tokens", "clock"):
        yield Reach(name, 8)
    yield Reach("sums", 8 * 3, writes=True)
    facts.group = o
    facts.most |= {o["n_items"]: most_items(o, limits), o["n_pairs"]: limits.max_pairs}


def foresee(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    limits = facts.limits
    one_a_row(op)
    same(op, "work", (op.extent.cell, op.extent.most), (limits.cells["one"], 1))
    for name in ("n_tokens", "n_foreseen"):
        same(op, name, o[name], limits.cells[name])
        yield Reach(name, 8)
    for name in ("n_experts", "top_k"):
        same(op, name, o[name], facts.group.get(name))
    same(op, "chosen", o["chosen"], facts.group.get("experts"))
    fits(op, 8 * o["n_experts"], limits.scratch_bytes)
    fits(op, 1, o["n_ranks"])
    fits(op, o["n_ranks"], o["top_k"])
    yield Reach("chosen", 4 * limits.max_pairs)
    for name in ("foreseen", "next_foreseen"):
        if o[name]:
            route = facts.routes.get(o[name], {})
            for operand in ("n_experts", "top_k"):
                same(op, operand, o[operand], route.get(operand))
            same(op, name, limits.cells["n_foreseen"], route.get("cell"))
            yield Reach(name, 4 * limits.max_pairs)
    if o["next_foreseen"]:
        yield Reach("next_slots", 8 * o["n_experts"])
        yield Reach("next_asked", 8 * o["n_experts"], writes=True)
    for name in ("asked", "wanted"):
        yield Reach(name, 8 * o["n_experts"], writes=True)
    yield Reach("n_wanted", 8, writes=True)
    yield Reach("sums", 8 * 6, writes=True)
    facts.wanted = o
    facts.most[o["n_wanted"]] = o["n_experts"]


def ask(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    """What is asked for need not be proved: the system looks, and nothing is written there."""
    one_a_row(op)
    same(op, "extent", op.extent.cell, facts.wanted.get("n_wanted"))
    same(op, "wanted", o["wanted"], facts.wanted.get("wanted"))
    yield Reach("wanted", 8 * op.extent.most)
    yield Reach("sources", 24 * facts.wanted["n_experts"])


def combine(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    fits(op, registers(op, o["n"]), o["stride"])
    same(op, "top_k", o["top_k"], facts.group.get("top_k"))
    for name in ("pair_of", "experts"):
        same(op, name, o[name], facts.group.get(name))
    if o["bias"]:
        whole(op, o["n"], 16)
        yield Reach("bias", 4 * facts.group["n_experts"] * o["n"])
    yield Reach("experts", 4 * o["top_k"] * op.extent.most)
    yield Reach("x", o["stride"] * op.extent.most, writes=True)
    yield Reach("outputs", o["stride"] * facts.limits.max_pairs)
    yield Reach("weights", 4 * o["top_k"] * op.extent.most)
    yield Reach("pair_of", 4 * o["top_k"] * op.extent.most)


def most_items(o: dict[str, int], limits: Limits) -> int:
    return min(limits.max_pairs, o["n_experts"] + limits.max_pairs // max(o["max_rows"], 1))
