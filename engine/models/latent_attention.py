"""Attention over a compressed KV cache: DeepSeek's multi-head latent attention, with absorbed matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.kernels.layout import LATENT_HEADS_TOGETHER, PAGE, activation_row_bytes
from engine.models.attention import Attention
from engine.models.weights import Matrix, Strips
from engine.models.workspace import Rows
from engine.plan import Extent

_MOST_HEADS_OF_CHUNK = 32  # more share each page that comes into the cache, fewer share the work
_LATENT_EPSILON = 1e-6  # of both latent norms, whatever the model's own epsilon is


@dataclass(frozen=True, slots=True)
class LatentHeads:
    """Sizes of latent attention.

    n_plain, n_value: of each head's key without its rotated part, and of its value. n_latent: of the compressed row
    that stands for both. n_query_latent: the rank of the queries; 0: they are not compressed. scale: of the scores.
    """

    n_plain: int
    n_value: int
    n_latent: int
    n_query_latent: int
    scale: float


class LatentAttention(Attention):
    """Blocks of latent attention."""

    def latent_attention(self, prefix: str, heads: LatentHeads) -> None:
        """A layer's whole attention block, from its norm to its output projection."""
        if not self.builds(prefix):
            return
        x = self.norm(f"{prefix}attn_norm.weight")
        q, kv = self._compressed(x, prefix, heads)
        n_heads, width = self.hyper.n_heads, heads.n_latent + self.hyper.rope_dim
        queries = self.rows("latent queries", n_heads * width)
        keys = [self._key_matrix(prefix, head, heads) for head in range(n_heads)]
        self._by_head(keys, q, heads.n_plain + self.hyper.rope_dim, queries, width)
        self._store(q, queries, kv, heads)
        latents = self._attend_latents(queries, heads)
        attended = self.rows("attention", n_heads * heads.n_value, rounded=True)
        values = [self._value_matrix(prefix, head, heads) for head in range(n_heads)]
        self._by_head(values, latents, heads.n_latent, attended, heads.n_value)
        if attended.rounded:
            with self.plan.in_sequence("attention"):
                self._quantise(attended, self._tokens)
        with self.plan.side_by_side("attention"):
            name = f"{prefix}attn_output.weight"
            projected = self.linear(attended, name, self.hyper.n_embedding, "projected")
        self.add_to_residual(projected)

    def _compressed(self, x: Rows, prefix: str, heads: LatentHeads) -> tuple[Rows, Rows]:
        """Queries (n_heads, n_plain + n_rope), and a latent, normalised, with the key that is to be rotated."""
        hyper, rank = self.hyper, heads.n_query_latent
        n_q = hyper.n_heads * (heads.n_plain + hyper.rope_dim)
        with self.plan.side_by_side("attention"):
            name = f"{prefix}attn_kv_a_mqa.weight"
            kv = self.linear(x, name, heads.n_latent + hyper.rope_dim, "compressed keys and values")
            if rank:
                self.linear(x, f"{prefix}attn_q_a.weight", rank, "compressed queries")
            else:
                q = self.linear(x, f"{prefix}attn_q.weight", n_q, "queries")
        latent = Rows(heads.n_latent, kv.address, kv.stride)
        with self.plan.in_sequence("attention"):
            name = f"{prefix}attn_kv_a_norm.weight"
            self._rms_norm(latent, latent, name, heads.n_latent, self._tokens, epsilon=_LATENT_EPSILON)
            if rank:
                rounded = self.rows("compressed queries", rank, rounded=True)
                name = f"{prefix}attn_q_a_norm.weight"
                self._rms_norm(rounded, rounded, name, rank, self._tokens, epsilon=_LATENT_EPSILON)
        if rank:
            with self.plan.side_by_side("attention"):
                q = self.linear(rounded, f"{prefix}attn_q_b.weight", n_q, "queries")
        return q, kv

    def _key_matrix(self, prefix: str, head: int, heads: LatentHeads) -> Matrix:
        """Takes a head's plain query to the latent that it is to meet: (n_latent, n_plain)."""
        n_heads = self.hyper.n_heads
        if self.weights.has(f"{prefix}attn_k_b.weight"):
            shape = (n_heads, heads.n_latent, heads.n_plain)
            return self.weights.slice_of(f"{prefix}attn_k_b.weight", shape, head)
        strips = self._expanding_strips(heads, head, 0, heads.n_plain)
        return self.weights.transposed(f"{prefix}attn_kv_b.weight", strips, heads.n_latent)

    def _value_matrix(self, prefix: str, head: int, heads: LatentHeads) -> Matrix:
        """Takes a head's latent to its value: (n_value, n_latent)."""
        n_heads = self.hyper.n_heads
        if self.weights.has(f"{prefix}attn_v_b.weight"):
            shape = (n_heads, heads.n_value, heads.n_latent)
            return self.weights.slice_of(f"{prefix}attn_v_b.weight", shape, head)
        strips = self._expanding_strips(heads, head, heads.n_plain, heads.n_value)
        return self.weights.matrix(f"{prefix}attn_kv_b.weight", heads.n_value, heads.n_latent, strips)

    def _expanding_strips(self, heads: LatentHeads, head: int, first: int, n: int) -> Strips:
        """Rows of attn_kv_b, where older files keep each head's key and value one after the other."""
        n_head = heads.n_plain + heads.n_value
        return Strips(self.hyper.n_heads * n_head, head * n_head + first, n)

    def _by_head(self, matrices: list[Matrix], x: Rows, x_step: int, out: Rows, out_step: int) -> None:
        """Each head's part of `out` (every out_step values) is its matrix times its part of x (every x_step)."""
        parts = [Rows(m.n_inputs, x.address + 4 * x_step * i, x.stride) for i, m in enumerate(matrices)]
        if self.config.activations == "int12" and not any(m.is_float for m in matrices):
            stride = activation_row_bytes(matrices[0].n_inputs)
            n_rows = self.config.max_batch_tokens
            parts = [
                Rows(p.n, p.address, p.stride, self.rounded_buffer(f"head {i}, {p.n}", n_rows, stride), stride)
                for i, p in enumerate(parts)
            ]
            with self.plan.in_sequence("attention"):
                for part in parts:
                    self._quantise(part, self._tokens)
        with self.plan.side_by_side("attention"):
            for i, (matrix, part) in enumerate(zip(matrices, parts, strict=True)):
                target = Rows(matrix.n_rows, out.address + 4 * out_step * i, out.stride)
                self._matmul(matrix, part, target, weights=matrix.address, extent=self._tokens)

    def _latent_operands(self, heads: LatentHeads) -> dict[str, int]:
        return {
            "positions": self.batch.positions,
            "sequences": self.batch.sequences,
            "pages": self.batch.pages,
            "max_pages": self.batch.max_pages,
            "layer_offset": self.page_bytes,
            "is_half": int(self.config.kv_type == "f16"),
            "n_heads": self.hyper.n_heads,
            "n_latent": heads.n_latent,
        }

    def _store(self, q: Rows, queries: Rows, kv: Rows, heads: LatentHeads) -> None:
        with self.plan.in_sequence("attention"):
            self.plan.add(
                "latent_store",
                self._tokens,
                q=q.address,
                q_stride=q.stride,
                queries=queries.address,
                queries_stride=queries.stride,
                kv=kv.address,
                kv_stride=kv.stride,
                n_plain=heads.n_plain,
                n_pairs=self.hyper.rope_dim // 2,
                neox=0,
                table=self._rope_table,
                rope_rows=self.batch.rope_rows,
                **self._latent_operands(heads),
            )

    def _attend_latents(self, queries: Rows, heads: LatentHeads) -> Rows:
        out = self.rows("attended latents", self.hyper.n_heads * heads.n_latent)
        together = LATENT_HEADS_TOGETHER * math.ceil(self.hyper.n_heads / self._n_workers / LATENT_HEADS_TOGETHER)
        together = min(together, _MOST_HEADS_OF_CHUNK)
        row_chunks = math.ceil(self.hyper.n_heads / together)
        self.need_scratch(together * 4 * self.batch.max_pages * PAGE)
        with self.plan.side_by_side("attention"):
            self.plan.add(
                "latent_attention",
                Extent(self.batch.n_tokens, self.config.max_batch_tokens, 1, row_chunks),
                queries=queries.address,
                queries_stride=queries.stride,
                out=out.address,
                out_stride=out.stride,
                n_rope=self.hyper.rope_dim,
                heads_per_chunk=together,
                row_chunks=row_chunks,
                scale=heads.scale,
                **self._latent_operands(heads),
            )
        element_bytes = 2 if self.config.kv_type == "f16" else 4
        self.page_bytes += PAGE * (heads.n_latent + self.hyper.rope_dim) * element_bytes
        return out
