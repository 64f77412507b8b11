"""Extents of operations that carry a state from token to token."""

from __future__ import annotations

from collections.abc import Iterator

from engine.extents.base import Facts, Reach, fits, one_a_row, same, whole
from engine.kernels.layout import DELTA_COLUMNS
from engine.plan import Operation


def multiply(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    whole(op, o["n"], 16)
    for name in ("x", "y"):
        fits(op, 4 * o["n"], o[f"{name}_stride"])
        yield Reach(name, o[f"{name}_stride"] * (op.extent.most - 1) + 4 * o["n"], writes=name == "x")


def causal_conv(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    same(op, "n_tokens", o["n_tokens"], op.extent.cell)
    whole(op, o["n"], 16)
    fits(op, 2, o["n_taps"])
    for name in ("x", "out"):
        fits(op, 4 * o["n"], o[f"{name}_stride"])
        yield Reach(name, o[f"{name}_stride"] * (op.extent.most - 1) + 4 * o["n"], writes=name == "out")
    yield Reach("weight", 4 * o["n"] * o["n_taps"])
    yield from states(op, o, 4 * o["n"] * (o["n_taps"] - 1), facts)


def delta_gates(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    n_read = o["n_heads"]
    same(op, "rows in common", o["alpha"] == o["beta"], o["n_group"] > 0)
    if o["n_group"]:
        whole(op, o["n_heads"], o["n_group"])
        n_read *= 2
    for name, n in (("alpha", n_read), ("beta", n_read), ("gates", 2 * o["n_heads"])):
        fits(op, 4 * n, o[f"{name}_stride"])
        yield Reach(name, o[f"{name}_stride"] * op.extent.most, writes=name == "gates")
    for name in ("rate", "bias"):
        yield Reach(name, max(4 * o["n_heads"], 1))
    whole(op, o["n_heads"], 1)


def delta_rule(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    limits = facts.limits
    same(op, "work", (op.extent.cell, op.extent.most, op.extent.unit), (limits.cells["one"], 1, 1))
    same(op, "n_tokens", o["n_tokens"], limits.cells["n_tokens"])
    same(op, "row_chunks", o["row_chunks"], op.extent.row_chunks)
    whole(op, o["dk"], 16)
    whole(op, o["dv"], 32)
    fits(op, 4 * 32 * o["dk"], limits.scratch_bytes)
    whole(op, o["n_value_heads"], o["n_key_heads"])
    same(op, "row_chunks", o["row_chunks"], o["n_value_heads"] * -(-o["dv"] // DELTA_COLUMNS))
    n_values = o["n_value_heads"] * o["dv"]
    for name, n in (
        ("mixed", 2 * o["n_key_heads"] * o["dk"] + n_values),
        ("gates", 2 * o["n_value_heads"]),
        ("out", n_values),
    ):
        fits(op, 4 * n, o[f"{name}_stride"])
        yield Reach(name, o[f"{name}_stride"] * limits.max_tokens, writes=name == "out")
    yield from states(op, o, 4 * n_values * o["dk"], facts)


def states(op: Operation, o: dict[str, int], n_bytes: int, facts: Facts) -> Iterator[Reach]:
    """The table of states; the rows themselves are whole by the pool's making, so the layer's part must lie in one."""
    limits = facts.limits
    for name in ("sequences", "old_states", "new_states"):
        same(op, name, o[name], limits.arrays[name])
    fits(op, o["state_offset"] + n_bytes, limits.state_bytes)
    yield Reach("sequences", 4 * limits.max_tokens)
    yield Reach("old_states", 8 * limits.max_sequences)
    yield Reach("new_states", 8 * limits.max_sequences)
    yield Reach("n_tokens", 8)
