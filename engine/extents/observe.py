"""Extents of the operations that only look at activations."""

from __future__ import annotations

from collections.abc import Iterator

from engine.extents.base import Facts, Reach, fits, one_a_row, same, whole
from engine.kernels.layout import ITEM_BYTES, OBSERVED_BYTES
from engine.plan import Operation


def square_sums(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    same(op, "work", (op.extent.cell, op.extent.most), (facts.limits.cells["one"], 1))
    same(op, "unit", op.extent.unit, 1)
    row_bytes = OBSERVED_BYTES * op.extent.row_chunks
    fits(op, row_bytes, min(o["x_stride"], o["sums_stride"]))
    n_matrices, rows = 1, facts.most.get(o["extent"], 0)
    if o["items"]:
        for name, source in (("extent", "n_items"), ("items", "items")):
            same(op, name, o[name], facts.group.get(source))
        n_matrices, rows = facts.group["n_experts"], facts.limits.max_pairs
        yield Reach("items", ITEM_BYTES * facts.most[o["extent"]])
    yield Reach("extent", 8)
    fits(op, 1, rows)
    yield Reach("x", o["x_stride"] * (rows - 1) + row_bytes)
    yield Reach("sums", o["sums_stride"] * (n_matrices - 1) + row_bytes, writes=True)
    yield Reach("counts", 8 * n_matrices, writes=True)


def keep_rows(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    whole(op, o["stride"], 64)
    yield Reach("x", o["stride"] * op.extent.most)
    yield Reach("out", o["stride"] * op.extent.most, writes=True)
