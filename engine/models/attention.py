"""Attention over paged keys and values, with rotary positions."""

from __future__ import annotations

import math

import numpy as np

from engine.kernels.layout import kv_head_bytes
from engine.memory import view
from engine.models.parts import Parts, Setting
from engine.models.workspace import Rows
from engine.plan import Extent

_CACHED_SCORE_BYTES, _MOST_TOKENS_TOGETHER = 1 << 20, 8


class Attention(Parts):
    """Attention blocks; each takes its place in the KV pages when it is added."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.n_kv_layers = 0
        self._rope_table = self._make_rope_table()

    def self_attention(self, prefix: str, *, neox: bool, norms: tuple[str, str, int, int] | None = None) -> None:
        """A layer's whole attention block, from its norm to its output projection; biases where the file has them."""
        hyper = self.hyper
        x = self.norm(f"{prefix}attn_norm.weight")
        with self.plan.side_by_side("attention"):
            n_q, n_k, n_v = (
                hyper.n_heads * hyper.head_dim,
                hyper.n_kv_heads * hyper.head_dim,
                hyper.n_kv_heads * hyper.value_dim,
            )
            q = self.linear(x, f"{prefix}attn_q.weight", n_q, "queries", bias=f"{prefix}attn_q.bias")
            k = self.linear(x, f"{prefix}attn_k.weight", n_k, "keys", bias=f"{prefix}attn_k.bias")
            v = self.linear(x, f"{prefix}attn_v.weight", n_v, "values", bias=f"{prefix}attn_v.bias")
        attended = self.attention(q, k, v, neox=neox, norms=norms)
        with self.plan.side_by_side("attention"):
            projected = self.linear(
                attended,
                f"{prefix}attn_output.weight",
                hyper.n_embedding,
                "projected",
                bias=f"{prefix}attn_output.bias",
            )
        self.add_to_residual(projected)

    def attention(
        self, q: Rows, k: Rows, v: Rows, *, neox: bool, norms: tuple[str, str, int, int] | None = None
    ) -> Rows:
        """Rotate and store, then attend. `norms`: names and sizes of norms that queries and keys pass first."""
        hyper = self.hyper
        element_bytes = 2 if self.config.kv_type == "f16" else 4
        head_bytes = kv_head_bytes(hyper.head_dim, hyper.value_dim, element_bytes)
        pages = {
            "positions": self.batch.positions,
            "sequences": self.batch.sequences,
            "pages": self.batch.pages,
            "max_pages": self.batch.max_pages,
            "layer_offset": self.n_kv_layers * hyper.n_kv_heads * head_bytes,
            "head_bytes": head_bytes,
            "is_half": int(self.config.kv_type == "f16"),
            "n_heads": hyper.n_heads,
            "n_kv_heads": hyper.n_kv_heads,
            "head_dim": hyper.head_dim,
            "value_dim": hyper.value_dim,
        }
        self.n_kv_layers += 1
        with self.plan.in_sequence("attention"):
            if norms:
                self.head_norm(q, norms[0], norms[2])
                self.head_norm(k, norms[1], norms[3])
            self.plan.add(
                "rope_store",
                self._tokens,
                q=q.address,
                k=k.address,
                v=v.address,
                q_stride=q.stride,
                k_stride=k.stride,
                v_stride=v.stride,
                n_pairs=hyper.rope_dim // 2,
                neox=int(neox),
                table=self._rope_table,
                **pages,
            )
        out = self.rows("attention", hyper.n_heads * hyper.value_dim, rounded=True)
        unit = self._attention_unit(hyper.n_heads // hyper.n_kv_heads)
        with self.plan.side_by_side("attention"):
            self.plan.add(
                "attention",
                Extent(self.batch.n_tokens, self.config.max_batch_tokens, unit, hyper.n_kv_heads),
                n_tokens=self.batch.n_tokens,
                unit=unit,
                q=q.address,
                q_stride=q.stride,
                out=out.address,
                out_stride=out.stride,
                rounded=out.rounded,
                rounded_stride=out.rounded_stride,
                scale=1 / math.sqrt(hyper.head_dim),
                **pages,
            )
        return out

    def head_norm(self, x: Rows, weight: str, n: int) -> None:
        """Normalise the rows of x in place, in parts of `n` values, in the stage that is open."""
        self._rms_norm(x, x, weight, n, self._tokens)

    def _attention_unit(self, group: int) -> int:
        """Tokens that attend together: several, where their scores stay in the second-level cache."""
        row_bytes = 4 * (self.batch.max_pages * self.batch.page_tokens + 1)
        unit = min(max(_CACHED_SCORE_BYTES // (group * row_bytes), 1), _MOST_TOKENS_TOGETHER)
        self.need_scratch(unit * group * row_bytes)
        return unit

    def _make_rope_table(self) -> int:
        """Cosines and sines of every position (context, 2 * pairs), angles in float32 as the reference takes them."""
        hyper, context = self.hyper, self.config.context_length
        n_pairs = hyper.rope_dim // 2
        table = self.memory.allocate("rope table", 8 * n_pairs * context, "buffers")
        factors = self.weights.vector("rope_freqs.weight", n_pairs) if self.weights.has("rope_freqs.weight") else None
        if self.memory.is_real:
            exponents = np.arange(0, hyper.rope_dim, 2, dtype=np.float32) / np.float32(hyper.rope_dim)
            frequencies = 1 / np.float32(hyper.rope_base) ** exponents / np.float32(hyper.rope_factor)
            if factors is not None:
                frequencies = frequencies / view(factors, np.float32, (n_pairs,))
            angles = np.arange(context, dtype=np.float32)[:, None] * frequencies.astype(np.float32)
            np.concatenate(
                [np.cos(angles), np.sin(angles)], axis=1, out=view(table, np.float32, (context, 2 * n_pairs))
            )
        return table.address
