"""Extents of operations on positions: rotation, KV pages, attention."""

from __future__ import annotations

from collections.abc import Iterator

from engine.extents.base import Facts, Reach, fits, one_a_row, same, whole
from engine.kernels.layout import BLOCK, PAGE, QUERY_BYTES, activation_row_bytes, kv_head_bytes
from engine.plan import Operation


def rope(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    for name, multiple in (("head_dim", 16), ("n_heads", 1), ("n_pairs", 1)):
        whole(op, o[name], multiple)
    fits(op, 4 * o["n_heads"] * o["head_dim"], o["stride"])
    yield Reach("x", o["stride"] * op.extent.most, writes=True)
    yield from _rotation(op, o, facts)


def close_heads(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    fits(op, 1, min(o["n_heads"], o["n"]))
    fits(op, o["n"], o["pitch"])
    fits(op, 4 * o["n_heads"] * o["pitch"], o["x_stride"])
    fits(op, 4 * o["n_heads"] * o["n"], o["out_stride"])
    yield Reach("x", o["x_stride"] * op.extent.most)
    yield Reach("out", o["out_stride"] * op.extent.most, writes=True)


def latent_store(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    n_rope = 2 * o["n_pairs"]
    yield from latent_pages(op, o, n_rope, facts)
    yield from _rotation(op, {**o, "head_dim": n_rope}, facts)
    whole(op, o["n_plain"], 1)
    for name, n in (
        ("q", o["n_heads"] * (o["n_plain"] + n_rope)),
        ("queries", o["n_heads"] * (o["n_latent"] + n_rope)),
        ("kv", o["n_latent"] + n_rope),
    ):
        fits(op, 4 * n, o[f"{name}_stride"])
        yield Reach(name, o[f"{name}_stride"] * op.extent.most, writes=name != "q")


def latent_attention(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    same(op, "unit", op.extent.unit, 1)
    same(op, "row_chunks", o["row_chunks"], op.extent.row_chunks)
    whole(op, o["heads_per_chunk"], 1)
    same(op, "row_chunks", o["row_chunks"], -(-o["n_heads"] // o["heads_per_chunk"]))
    yield from latent_pages(op, o, o["n_rope"], facts)
    fits(op, o["heads_per_chunk"] * 4 * o["max_pages"] * PAGE, facts.limits.scratch_bytes)
    fits(op, 4 * o["n_heads"] * (o["n_latent"] + o["n_rope"]), o["queries_stride"])
    fits(op, 4 * o["n_heads"] * o["n_latent"], o["out_stride"])
    yield Reach("queries", o["queries_stride"] * op.extent.most)
    yield Reach("out", o["out_stride"] * op.extent.most, writes=True)


def latent_pages(op: Operation, o: dict[str, int], n_rope: int, facts: Facts) -> Iterator[Reach]:
    """The pages of a compressed cache: rows of n_latent and n_rope values."""
    for value, multiple in ((o["n_latent"], 16), (n_rope, 16), (o["n_heads"], 1)):
        whole(op, value, multiple)
    row_bytes = (o["n_latent"] + n_rope) * (2 if o["is_half"] else 4)
    fits(op, o["layer_offset"] + PAGE * row_bytes, facts.limits.page_bytes)
    yield from page_table(op, o, facts)


def _rotation(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    """The table of cosines and sines, and which of its rows are used."""
    fits(op, 2 * o["n_pairs"], o["head_dim"])
    same(op, "rope_rows", o["rope_rows"], facts.limits.arrays["rope_rows"])
    fits(op, op.extent.most, facts.limits.max_tokens)
    yield Reach("rope_rows", 4 * op.extent.most)
    yield Reach("table", max(8 * o["n_pairs"] * facts.limits.n_rope_rows, 1))


def rope_store(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    one_a_row(op)
    yield from paged(op, o, facts)
    for name, n in (
        ("q", o["n_heads"] * o["head_dim"]),
        ("k", o["n_kv_heads"] * o["head_dim"]),
        ("v", o["n_kv_heads"] * o["value_dim"]),
    ):
        fits(op, 4 * n, o[f"{name}_stride"])
        yield Reach(name, o[f"{name}_stride"] * op.extent.most, writes=True)
    yield from _rotation(op, o, facts)


def attention(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    yield from paged(op, o, facts)
    same(op, "unit", o["unit"], op.extent.unit)
    same(op, "n_tokens", o["n_tokens"], op.extent.cell)
    same(op, "n_kv_heads", o["n_kv_heads"], op.extent.row_chunks)
    whole(op, o["n_heads"], o["n_kv_heads"])
    group = o["n_heads"] // o["n_kv_heads"]
    fits(op, o["unit"] * group * (4 * o["max_pages"] * PAGE + QUERY_BYTES), facts.limits.scratch_bytes)
    fits(op, 4 * o["n_heads"] * o["head_dim"], o["q_stride"])
    fits(op, 4 * o["n_heads"] * o["value_dim"], o["out_stride"])
    yield Reach("q", o["q_stride"] * op.extent.most)
    yield Reach("out", o["out_stride"] * op.extent.most, writes=True)
    if o["sinks"]:
        yield Reach("sinks", 4 * o["n_heads"])
    if o["rounded"]:
        whole(op, o["n_heads"] * o["value_dim"], BLOCK)
        yield Reach("heads_done", 8 * op.extent.most, writes=True)
        fits(op, activation_row_bytes(o["n_heads"] * o["value_dim"]), o["rounded_stride"])
        yield Reach("rounded", o["rounded_stride"] * op.extent.most, writes=True)
    else:
        same(op, "rounded_stride", o["rounded_stride"], 0)
        same(op, "heads_done", o["heads_done"], 0)


def paged(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    """The page table; the pages themselves are whole by the pool's making, so the layer's part must lie inside one."""
    limits, element = facts.limits, 2 if o["is_half"] else 4
    for name, multiple in (("head_dim", 16), ("value_dim", 16), ("n_heads", 1), ("n_kv_heads", 1)):
        whole(op, o[name], multiple)
    same(op, "head_bytes", o["head_bytes"], kv_head_bytes(o["head_dim"], o["value_dim"], element))
    fits(op, o["layer_offset"] + o["n_kv_heads"] * o["head_bytes"], limits.page_bytes)
    yield from page_table(op, o, facts)


def page_table(op: Operation, o: dict[str, int], facts: Facts) -> Iterator[Reach]:
    limits = facts.limits
    for name in ("positions", "sequences", "pages"):
        same(op, name, o[name], limits.arrays[name])
    same(op, "max_pages", o["max_pages"], limits.max_pages)
    fits(op, op.extent.most, limits.max_tokens)
    yield Reach("pages", 8 * limits.max_sequences * o["max_pages"])
    yield Reach("positions", 4 * op.extent.most)
    yield Reach("sequences", 4 * op.extent.most)
