"""Attention over paged keys and values, with rotary positions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from engine.kernels.layout import QUERY_BYTES, kv_head_bytes
from engine.memory import view
from engine.models.parts import Parts, Setting
from engine.models.weights import Strips
from engine.models.workspace import Rows
from engine.plan import Extent

_CACHED_SCORE_BYTES, _MOST_TOKENS_TOGETHER = 1 << 20, 8


@dataclass(frozen=True, slots=True)
class HeadNorms:
    """RMS norms that queries and keys pass, each over so many values: a head's, or those of all heads.

    after_rope: they come after the rotation instead of before it.
    """

    n_query: int
    n_key: int
    after_rope: bool = False


@dataclass(frozen=True, slots=True)
class Heads:
    """A layer's attention.

    neox: a rotated pair is element i and i + half (GPT-NeoX), else neighbours. rotates: whether any pair does.
    window: positions that a token sees, itself included; 0: all. scale: of the scores; None: 1 / sqrt(head_dim).
    n_kv_heads: None: the model's. has_sinks: the tensor attn_sinks holds a score for each head that takes weight only.
    limit: queries, keys and values are kept within it before they rotate; 0: they are not.
    is_fused: attn_qkv holds queries, keys and values. has_gate: attn_q holds, head by head, queries and their gates.
    """

    neox: bool
    norms: HeadNorms | None = None
    rotates: bool = True
    window: int = 0
    scale: float | None = None
    n_kv_heads: int | None = None
    has_sinks: bool = False
    limit: float = 0.0
    is_fused: bool = False
    has_gate: bool = False


class Attention(Parts):
    """Attention blocks; each takes its place in the KV pages when it is added."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.page_bytes = 0  # of all layers so far
        self.rope_scaling = self.hyper.rope_scaling  # may be changed until the first layer is added

    def self_attention(self, prefix: str, heads: Heads) -> None:
        """A layer's whole attention block, from its norm to its output projection; biases where the file has them."""
        if not self.builds(prefix):
            return
        x = self.norm(f"{prefix}attn_norm.weight")
        q, k, v, gate = self._projections(x, prefix, heads)
        self._rotate_and_store(prefix, q, k, v, heads)
        attended = self._attend(prefix, q, heads)
        if gate is not None:
            with self.plan.in_sequence("attention"):
                self._open_gate(attended, gate)
        with self.plan.side_by_side("attention"):
            name = f"{prefix}attn_output"
            projected = self.linear(
                attended, f"{name}.weight", self.hyper.n_embedding, "projected", bias=f"{name}.bias"
            )
        self.add_to_residual(projected)

    def _projections(self, x: Rows, prefix: str, heads: Heads) -> tuple[Rows, Rows, Rows, Rows | None]:
        hyper, n_kv_heads = self.hyper, self._kv_heads(heads)
        sizes = (hyper.n_heads * hyper.head_dim, n_kv_heads * hyper.head_dim, n_kv_heads * hyper.value_dim)
        results, first, gate = [], 0, None
        with self.plan.side_by_side("attention"):
            for part, n, out in zip("qkv", sizes, ("queries", "keys", "values"), strict=True):
                name, strips = f"{prefix}attn_{part}", tuple[Strips, ...]()
                if heads.is_fused:
                    name, strips = f"{prefix}attn_qkv", (Strips(sum(sizes), first, n),)
                elif heads.has_gate and part == "q":
                    strips = (Strips(2 * n, 0, hyper.head_dim, hyper.n_heads),)
                    gates = (Strips(2 * n, hyper.head_dim, hyper.head_dim, hyper.n_heads),)
                    gate = self.linear(x, f"{name}.weight", n, "attention gate", strips=gates)
                bias = None if strips else f"{name}.bias"
                results.append(self.linear(x, f"{name}.weight", n, out, bias=bias, strips=strips))
                first += n
        q, k, v = results
        return q, k, v, gate

    def _kv_heads(self, heads: Heads) -> int:
        return heads.n_kv_heads or self.hyper.n_kv_heads

    def _page_operands(self, heads: Heads) -> dict[str, int]:
        """What both kernels must know of the pages and of this layer's place in them."""
        hyper, n_kv_heads = self.hyper, self._kv_heads(heads)
        element_bytes = 2 if self.config.kv_type == "f16" else 4
        return {
            "positions": self.batch.positions,
            "sequences": self.batch.sequences,
            "pages": self.batch.pages,
            "max_pages": self.batch.max_pages,
            "layer_offset": self.page_bytes,
            "head_bytes": kv_head_bytes(hyper.head_dim, hyper.value_dim, element_bytes),
            "is_half": int(self.config.kv_type == "f16"),
            "n_heads": hyper.n_heads,
            "n_kv_heads": n_kv_heads,
            "head_dim": hyper.head_dim,
            "value_dim": hyper.value_dim,
        }

    def _rotate_and_store(self, prefix: str, q: Rows, k: Rows, v: Rows, heads: Heads) -> None:
        norms, n_pairs = heads.norms, self.hyper.rope_dim // 2 if heads.rotates else 0
        rotation = {"neox": int(heads.neox), "table": self._rope_table, "rope_rows": self.batch.rope_rows}
        with self.plan.in_sequence("attention"):
            if norms and norms.after_rope and n_pairs:
                for rows in (q, k):
                    n_heads, head_dim = rows.n // self.hyper.head_dim, self.hyper.head_dim
                    shape = {"x": rows.address, "stride": rows.stride, "n_heads": n_heads, "head_dim": head_dim}
                    self.plan.add("rope", self._tokens, n_pairs=n_pairs, **shape, **rotation)
                n_pairs = 0
            if norms:
                self._rms_norm(q, q, f"{prefix}attn_q_norm.weight", norms.n_query, self._tokens)
                self._rms_norm(k, k, f"{prefix}attn_k_norm.weight", norms.n_key, self._tokens)
            for rows in (q, k, v) if heads.limit else ():
                shape = {"x": rows.address, "stride": rows.stride, "n": rows.n}
                self.plan.add("clamp_rows", self._tokens, **shape, limit=heads.limit)
            self.plan.add(
                "rope_store",
                self._tokens,
                q=q.address,
                k=k.address,
                v=v.address,
                q_stride=q.stride,
                k_stride=k.stride,
                v_stride=v.stride,
                n_pairs=n_pairs,
                **rotation,
                **self._page_operands(heads),
            )

    def _attend(self, prefix: str, q: Rows, heads: Heads) -> Rows:
        hyper, pages = self.hyper, self._page_operands(heads)
        n_kv_heads = pages["n_kv_heads"]
        out = self.rows("attention", hyper.n_heads * hyper.value_dim, rounded=True)
        unit = self._attention_unit(hyper.n_heads // n_kv_heads)
        sinks = self.weights.vector(f"{prefix}attn_sinks.weight", hyper.n_heads).address if heads.has_sinks else 0
        with self.plan.side_by_side("attention"):
            self.plan.add(
                "attention",
                Extent(self.batch.n_tokens, self.config.max_batch_tokens, unit, n_kv_heads),
                n_tokens=self.batch.n_tokens,
                unit=unit,
                q=q.address,
                q_stride=q.stride,
                out=out.address,
                out_stride=out.stride,
                rounded=0 if heads.has_gate else out.rounded,
                rounded_stride=0 if heads.has_gate else out.rounded_stride,
                heads_done=0 if heads.has_gate else self.buffer("heads done", 8 * self._tokens.most).address,
                window=heads.window,
                sinks=sinks,
                scale=1 / math.sqrt(hyper.head_dim) if heads.scale is None else heads.scale,
                **pages,
            )
        self.page_bytes += n_kv_heads * pages["head_bytes"]
        return out

    def _attention_unit(self, group: int) -> int:
        """Tokens that attend together: several, where their scores stay in the second-level cache."""
        row_bytes = 4 * self.batch.max_pages * self.batch.page_tokens + QUERY_BYTES
        unit = min(max(_CACHED_SCORE_BYTES // (group * row_bytes), 1), _MOST_TOKENS_TOGETHER)
        self.need_scratch(unit * group * row_bytes)
        return unit

    @property
    def long_from(self) -> int:
        """Sequences of more tokens than this use the second half of the rope table (longrope); 0: there is none."""
        original = self.rope_scaling.original_context
        has_long = self.weights.has("rope_factors_long.weight")
        return original if has_long and self.config.context_length > original else 0

    @cached_property
    def _rope_table(self) -> int:
        """Cosines and sines of every position (context, 2 * pairs), angles in float32 as the reference takes them.

        With two sets of factors (longrope) the table of short sequences comes first, then that of long ones.
        """
        names = ["rope_freqs.weight"]
        if self.weights.has("rope_factors_short.weight"):
            names = ["rope_factors_short.weight", "rope_factors_long.weight"][: 2 if self.long_from else 1]
        context, n_pairs = self.config.context_length, self.hyper.rope_dim // 2
        table = self.memory.allocate("rope table", 8 * n_pairs * context * len(names), "buffers")
        halves = view(table, np.float32, (len(names), context, 2 * n_pairs))
        for half, name in zip(halves, names, strict=True):
            factors = self.weights.vector(name, n_pairs) if self.weights.has(name) else None
            divisors = None if factors is None else view(factors, np.float32, (n_pairs,))
            self.memory.fill_later(partial(self._fill_rope_table, half, divisors))
        return table.address

    def _fill_rope_table(self, table: np.ndarray, divisors: np.ndarray | None) -> None:
        scaling, hyper = self.rope_scaling, self.hyper
        frequencies = scaling.frequencies(hyper.rope_dim, hyper.rope_base, divisors)
        angles = np.arange(len(table), dtype=np.float32)[:, None] * frequencies
        np.concatenate([np.cos(angles), np.sin(angles)], axis=1, out=table)
        table *= np.float32(scaling.scale)
