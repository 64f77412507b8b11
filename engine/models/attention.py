"""Attention over paged keys and values, with rotary positions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from engine.kernels.layout import QUERY_BYTES, kv_head_bytes
from engine.memory import view
from engine.models.parts import Parts, Setting
from engine.models.weights import Strips, whole_registers
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


@dataclass(frozen=True, slots=True)
class HeadRows:
    """Where `n_heads` heads are in a tensor of `n_rows`: `width` rows each, every `pitch` rows from `first` on."""

    n_rows: int
    first: int
    pitch: int
    n_heads: int
    width: int

    @property
    def strips(self) -> tuple[Strips, ...]:
        if self.pitch == self.width == whole_registers(self.width):
            return (Strips(self.n_rows, self.first, self.n_heads * self.width),)
        return tuple(Strips(self.n_rows, self.first + self.pitch * head, self.width) for head in range(self.n_heads))

    @property
    def padded(self) -> npt.NDArray[np.int64]:
        """(n_heads * width, filled up): the row of each value, -1 where there is none."""
        rows = np.full((self.n_heads, whole_registers(self.width)), -1)
        starts = self.first + self.pitch * np.arange(self.n_heads)
        rows[:, : self.width] = starts[:, None] + np.arange(self.width)
        return rows.reshape(-1)


class Attention(Parts):
    """Attention blocks; each takes its place in the KV pages when it is added."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.page_bytes = 0  # of all layers so far
        self.rope_scaling = self.hyper.rope_scaling  # may be changed until the first layer is added
        # in memory a head's values fill whole registers, with zeros where a model's heads do not
        self._head_dim, self._value_dim = whole_registers(self.hyper.head_dim), whole_registers(self.hyper.value_dim)

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
        if self._value_dim != self.hyper.value_dim:
            attended = self._without_padding(attended)
        with self.plan.side_by_side("attention"):
            name = f"{prefix}attn_output"
            projected = self.linear(
                attended, f"{name}.weight", self.hyper.n_embedding, "projected", bias=f"{name}.bias"
            )
        self.add_to_residual(projected)

    def _projections(self, x: Rows, prefix: str, heads: Heads) -> tuple[Rows, Rows, Rows, Rows | None]:
        hyper, n_kv_heads = self.hyper, self._kv_heads(heads)
        shapes = ((hyper.n_heads, hyper.head_dim), (n_kv_heads, hyper.head_dim), (n_kv_heads, hyper.value_dim))
        n_fused, first, results, gate = sum(n * width for n, width in shapes), 0, [], None
        with self.plan.side_by_side("attention"):
            for part, (n, width), out in zip("qkv", shapes, ("queries", "keys", "values"), strict=True):
                name, n_rows, pitch = f"{prefix}attn_{part}", n * width, width
                if heads.is_fused:
                    name, n_rows = f"{prefix}attn_qkv", n_fused
                elif heads.has_gate and part == "q":
                    n_rows, pitch = 2 * n_rows, 2 * pitch
                    gate = self._heads_of(x, name, "attention gate", HeadRows(n_rows, width, pitch, n, width))
                results.append(self._heads_of(x, name, out, HeadRows(n_rows, first, pitch, n, width)))
                first += n * width if heads.is_fused else 0
        q, k, v = results
        return q, k, v, gate

    def _heads_of(self, x: Rows, name: str, out: str, rows: HeadRows) -> Rows:
        """What a projection gives for some heads, each filled up with zeros to whole registers."""
        self.weights.require(f"{name}.weight", (rows.n_rows, x.n))  # before any list of its rows is made
        padded, bias = rows.padded, 0
        if self.weights.has(f"{name}.bias"):
            bias = self.weights.picked_vector(f"{name}.bias", rows.n_rows, padded).address
        return self.linear(x, f"{name}.weight", padded.size, out, bias=bias, strips=rows.strips)

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
            "head_bytes": kv_head_bytes(self._head_dim, self._value_dim, element_bytes),
            "is_half": int(self.config.kv_type == "f16"),
            "n_heads": hyper.n_heads,
            "n_kv_heads": n_kv_heads,
            "head_dim": self._head_dim,
            "value_dim": self._value_dim,
        }

    def _rotate_and_store(self, prefix: str, q: Rows, k: Rows, v: Rows, heads: Heads) -> None:
        norms, n_pairs = heads.norms, self.hyper.rope_dim // 2 if heads.rotates else 0
        rotation = {"neox": int(heads.neox), "table": self._rope_table, "rope_rows": self.batch.rope_rows}
        with self.plan.in_sequence("attention"):
            if norms and norms.after_rope and n_pairs:
                for rows in (q, k):
                    n_heads, head_dim = rows.n // self._head_dim, self._head_dim
                    shape = {"x": rows.address, "stride": rows.stride, "n_heads": n_heads, "head_dim": head_dim}
                    self.plan.add("rope", self._tokens, n_pairs=n_pairs, **shape, **rotation)
                n_pairs = 0
            if norms:
                self._norm_heads(q, f"{prefix}attn_q_norm.weight", norms.n_query)
                self._norm_heads(k, f"{prefix}attn_k_norm.weight", norms.n_key)
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

    def _norm_heads(self, x: Rows, weight: str, n: int) -> None:
        """An RMS norm over each head, or over all of them: `n` values, to which zeros may have been added.

        With m values where there were n, the mean of squares is n / m of what it should be; weight and epsilon make up
        for it.
        """
        self.weights.require(weight, (n,))
        head_dim, share = self.hyper.head_dim, self.hyper.head_dim / self._head_dim
        picked = HeadRows(n, 0, head_dim, n // head_dim, head_dim).padded
        vector = self.weights.picked_vector(weight, n, picked, math.sqrt(share))
        epsilon = self.hyper.norm_epsilon * share
        self._rms_norm_by(x, x, vector.address, picked.size, self._tokens, epsilon)

    def _attend(self, prefix: str, q: Rows, heads: Heads) -> Rows:
        hyper, pages = self.hyper, self._page_operands(heads)
        n_kv_heads = pages["n_kv_heads"]
        is_padded = self._value_dim != hyper.value_dim
        out = self.rows("attention", hyper.n_heads * self._value_dim, rounded=not is_padded)
        rounds = bool(out.rounded) and not heads.has_gate
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
                rounded=out.rounded if rounds else 0,
                rounded_stride=out.rounded_stride if rounds else 0,
                heads_done=self.buffer("heads done", 8 * self._tokens.most).address if rounds else 0,
                window=heads.window,
                sinks=sinks,
                scale=1 / math.sqrt(hyper.head_dim) if heads.scale is None else heads.scale,
                **pages,
            )
        self.page_bytes += n_kv_heads * pages["head_bytes"]
        return out

    def _without_padding(self, x: Rows) -> Rows:
        """The values of all heads side by side, as the output projection takes them."""
        n_heads, value_dim = self.hyper.n_heads, self.hyper.value_dim
        out = self.rows("attention, close", n_heads * value_dim, rounded=True)
        strides = {"x": x.address, "x_stride": x.stride, "out": out.address, "out_stride": out.stride}
        with self.plan.in_sequence("attention"):
            self.plan.add("close_heads", self._tokens, **strides, n_heads=n_heads, pitch=self._value_dim, n=value_dim)
            self._quantise(out, self._tokens)
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
