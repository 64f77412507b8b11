"""Extents of matrix products."""

from __future__ import annotations

from collections.abc import Iterator

from engine.errors import PlanError
from engine.extents.base import Facts, Reach, fits, same, whole
from engine.kernels.layout import (
    FLOAT_TYPES,
    ITEM_BYTES,
    MATMUL_SCRATCH_BYTES,
    PACKED_BLOCKS,
    TILE_ROWS,
    activation_row_bytes,
    packed_group_bytes,
)
from engine.plan import Operation


def matmul(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    limits, group = facts.limits, facts.group
    type_name = op.kernel.removeprefix("matmul_").removesuffix("_f32")
    floats = op.kernel.endswith("_f32") or type_name in FLOAT_TYPES
    rows = limits.max_pairs if o["items"] else op.extent.most
    for name, ours, walkers in (
        ("row_chunks", o["row_chunks"], op.extent.row_chunks),
        ("unit", o["unit"], op.extent.unit),
        ("extent", o["extent"], op.extent.cell),
    ):
        same(op, name, ours, walkers)
    whole(op, o["n_inputs"], max(4, PACKED_BLOCKS[type_name][0]))
    same(op, "group_bytes", o["group_bytes"], packed_group_bytes(type_name, o["n_inputs"]))
    fits(op, 64 * o["n_groups"], o["out_stride"])
    if type_name not in FLOAT_TYPES:
        fits(op, MATMUL_SCRATCH_BYTES, limits.scratch_bytes)
    row_bytes = 4 * o["n_inputs"] if floats else activation_row_bytes(o["n_inputs"])
    fits(op, row_bytes, o["x_stride"])
    if not o["row_chunks"] * o["groups_per_chunk"] >= o["n_groups"] >= 1:
        raise PlanError(f"The operation {op.kernel} does not cover all of its rows.")
    weights_end = o["matrix_offset"] + o["n_groups"] * o["group_bytes"]
    if o["items"]:
        for name, source in (("extent", "n_items"), ("items", "items"), ("weights", "slots")):
            same(op, name, o[name], group.get(source))
        same(op, "unit", o["unit"], 1)
        fits(op, weights_end, limits.slab_bytes)
        yield Reach("items", ITEM_BYTES * op.extent.most)
        yield Reach("weights", 8 * group["n_experts"])
    else:
        yield Reach("weights", weights_end)
    last_row = rows - 1 if floats else rows + TILE_ROWS - 2
    yield Reach("x", o["x_stride"] * last_row + row_bytes)
    yield Reach("out", o["out_stride"] * (rows - 1) + 64 * o["n_groups"], writes=True)
    if o["bias"]:
        yield Reach("bias", 64 * o["n_groups"])
