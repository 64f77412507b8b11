"""Extents of operations on rows of activations."""

from __future__ import annotations

from collections.abc import Iterator

from engine.extents.base import Facts, Reach, fits, one_a_row, registers, same, whole
from engine.gguf import TensorType
from engine.kernels.layout import activation_row_bytes
from engine.plan import Operation


def embed(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    same(op, "tokens", o["tokens"], facts.limits.arrays["tokens"])
    stored = TensorType[op.kernel.removeprefix("embed_")]
    whole(op, o["n"], stored.block_size)
    fits(op, o["n"] // stored.block_size * stored.block_bytes, o["row_bytes"])
    fits(op, 4 * o["n"], o["stride"])
    yield Reach("table", o["row_bytes"] * facts.limits.n_vocab)
    yield Reach("tokens", 4 * op.extent.most)
    yield Reach("out", o["stride"] * op.extent.most, writes=True)


def rms_norm(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    fits(op, 1, o["n_parts"])
    if o["n_parts"] > 1:
        whole(op, o["n"], 16)
    part_bytes = registers(op, o["n"])
    row_bytes = part_bytes * o["n_parts"]
    fits(op, row_bytes, o["stride"])
    yield Reach("x", o["stride"] * (op.extent.most - 1) + row_bytes)
    yield Reach("out", o["stride"] * (op.extent.most - 1) + row_bytes, writes=True)
    yield Reach("weight", part_bytes)


def layer_norm(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    whole(op, o["n"], 16)
    fits(op, 4 * o["n"], o["stride"])
    yield Reach("x", o["stride"] * op.extent.most)
    yield Reach("out", o["stride"] * op.extent.most, writes=True)
    yield Reach("weight", 4 * o["n"])
    yield Reach("bias", 4 * o["n"])


def scale_rows(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    fits(op, registers(op, o["n"]), o["stride"])
    yield Reach("x", o["stride"] * op.extent.most, writes=True)


def open_gate(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    whole(op, o["n"], 16)
    for name in ("x", "gate"):
        fits(op, 4 * o["n"], o[f"{name}_stride"])
        yield Reach(name, o[f"{name}_stride"] * op.extent.most, writes=name == "x")


def quantise(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    whole(op, o["n_inputs"], 32)
    fits(op, 4 * o["n_inputs"], o["x_stride"])
    fits(op, activation_row_bytes(o["n_inputs"]), o["out_stride"])
    yield Reach("x", o["x_stride"] * (op.extent.most - 1) + 4 * o["n_inputs"])
    yield Reach("out", o["out_stride"] * op.extent.most, writes=True)


def add(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    fits(op, registers(op, o["n"]), o["stride"])
    yield Reach("x", o["stride"] * op.extent.most, writes=True)
    yield Reach("y", o["stride"] * op.extent.most)
    if "gate" in o:
        fits(op, 4, o["gate_stride"])
        yield Reach("gate", o["gate_stride"] * op.extent.most)


def gather_rows(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    if o["rows"] == facts.group.get("pair_tokens"):
        same(op, "extent", op.extent.cell, facts.group["n_pairs"])
        fits(op, op.extent.most, facts.limits.max_pairs)
    else:
        same(op, "rows", o["rows"], facts.limits.arrays["rows"])
        fits(op, op.extent.most, facts.limits.max_outputs)
    whole(op, o["stride"], 64)
    yield Reach("x", o["stride"] * facts.limits.max_tokens)
    yield Reach("rows", 4 * op.extent.most)
    yield Reach("out", o["stride"] * op.extent.most, writes=True)
