"""Turns an architecture's description into a plan: buffers, operations and stages of a decoder, layer by layer."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.batch import Batch
from engine.config import EngineConfig
from engine.kernels.layout import ITEM_BYTES, TILE_ROWS, kv_head_bytes, unpacked_bytes
from engine.kernels.library import KernelLibrary
from engine.memory import Buffer, Memory, view
from engine.models.hyperparameters import Hyperparameters
from engine.models.weights import ExpertLayer, Matrix, Weights
from engine.models.workspace import Rows, Workspace
from engine.plan import Extent, Plan

_TOKEN_TILE = 128  # activation rows that one chunk of a matrix product takes
_LEAST_CHUNK_BYTES, _MOST_CHUNK_BYTES = 8 << 10, 128 << 10
_CHUNKS_PER_WORKER = 8
_SWIGLU_COLUMNS = 512
_CACHED_SCORE_BYTES, _MOST_TOKENS_TOGETHER = 1 << 20, 8
_CACHED_ACTIVATION_BYTES = 11 << 17  # activation rows that go through all weights of a chunk before the next ones


@dataclass(frozen=True, slots=True)
class MoeLayer:
    """One layer's routed experts and the table that holds their addresses, which the store fills."""

    layer: int
    experts: ExpertLayer
    slots: Buffer  # (n_experts,) int64
    items: Buffer
    n_items: Buffer
    stage: int  # the plan's stage that halts when experts are missing


class Builder(Workspace):
    """What an architecture file calls: each method adds the operations of one well-known part of a decoder."""

    def __init__(
        self,
        hyper: Hyperparameters,
        weights: Weights,
        memory: Memory,
        library: KernelLibrary,
        config: EngineConfig,
        batch: Batch,
        n_workers: int,
    ) -> None:
        super().__init__(memory, config)
        self.hyper, self.weights, self.batch = hyper, weights, batch
        self.plan = Plan(library, batch.interrupt)
        self.moe_layers: list[MoeLayer] = []
        self.n_kv_layers = 0
        self._n_workers = n_workers
        self._pending: list[tuple[str, dict[str, float]]] = []
        self._rope_table = self._make_rope_table()
        self.counts = memory.allocate("expert counts", 8 * hyper.n_layers * max(hyper.n_experts, 1), "buffers")
        self.last_used = memory.allocate("expert use", 8 * hyper.n_layers * max(hyper.n_experts, 1), "buffers")
        self.newest = memory.allocate("newest choice", 4 * hyper.n_layers * max(hyper.top_k, 1), "buffers")
        self.x = self.rows("residual", hyper.n_embedding)
        self.logits: Rows | None = None
        self.need_scratch(8 * max(hyper.n_experts, 16) * 2)

    # The experts' buffers ------------------------------------------------------------------------------------------

    def routes(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The newest batch's experts (int32) and their weights (float32), each (n_moe_layers, most pairs)."""
        shape = (len(self.moe_layers), self._most_pairs)
        if not self.moe_layers:
            return np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        chosen, weights = self._buffers["chosen experts"], self._buffers["expert weights"]
        return view(chosen, np.int32, shape), view(weights, np.float32, shape)

    @property
    def _most_pairs(self) -> int:
        return self.config.max_batch_tokens * self.hyper.top_k

    def _routes_of(self, index: int) -> tuple[int, int]:
        """Addresses of the chosen experts and of their weights of the MoE layer `index`."""
        n_bytes = 4 * self._most_pairs
        chosen = self.buffer("chosen experts", n_bytes * self.hyper.n_layers)
        weights = self.buffer("expert weights", n_bytes * self.hyper.n_layers)
        return chosen.address + n_bytes * index, weights.address + n_bytes * index

    @property
    def _tokens(self) -> Extent:
        return Extent(self.batch.n_tokens, self.config.max_batch_tokens)

    # Parts of a decoder -------------------------------------------------------------------------------------------

    def embed(self, name: str = "token_embd.weight") -> None:
        """The residual stream begins as the tokens' rows of the embedding table."""
        hyper = self.hyper
        type_name, table, row_bytes = self.weights.table(name, self.n_vocab, hyper.n_embedding)
        with self.plan.in_sequence("embedding"):
            self.plan.add(
                f"embed_{type_name}",
                self._tokens,
                table=table,
                row_bytes=row_bytes,
                n=hyper.n_embedding,
                tokens=self.batch.tokens,
                out=self.x.address,
                stride=self.x.stride,
            )

    @property
    def n_vocab(self) -> int:
        return self.weights.n_rows("token_embd.weight")

    def norm(self, weight: str) -> Rows:
        """The normalised residual stream, after adding to it what the part before has left."""
        out = self.rows("normalised", self.hyper.n_embedding, rounded=True)
        with self.plan.in_sequence("norms"):
            self._add_pending()
            self._rms_norm(self.x, out, weight, self.hyper.n_embedding, self._tokens)
        return out

    def _add_pending(self) -> None:
        for kernel, operands in self._pending:
            self.plan.add(kernel, self._tokens, **operands)
        self._pending.clear()

    def _rms_norm(self, x: Rows, out: Rows, weight: str, n: int, extent: Extent) -> None:
        """out = x normalised in parts of `n` values, also rounded where `out` is."""
        self.plan.add(
            "rms_norm",
            extent,
            x=x.address,
            weight=self.weights.vector(weight, n).address,
            out=out.address,
            n=n,
            n_parts=x.n // n,
            stride=x.stride,
            eps=self.hyper.norm_epsilon,
        )
        if out.rounded:
            self.plan.add(
                "quantise",
                extent,
                x=out.address,
                x_stride=out.stride,
                out=out.rounded,
                out_stride=out.rounded_stride,
                n_inputs=out.n,
            )

    def add_to_residual(self, y: Rows) -> None:
        """x += y, carried out at the start of the next norm."""
        self._pending.append(("add", self._add_operands(y)))

    def linear(
        self, x: Rows, weight: str, n_rows: int, out: str, *, bias: str | None = None, extent: Extent | None = None
    ) -> Rows:
        """out = W x (+ bias), in the stage that is open."""
        matrix = self.weights.matrix(weight, n_rows, x.n)
        bias_address = self.weights.optional_vector(bias, n_rows) if bias else 0
        n_out_rows = extent.most if extent else None
        result = self.rows(out, n_rows, n_rows=n_out_rows)
        self._matmul(matrix, x, result, weights=matrix.address, bias=bias_address, extent=extent or self._tokens)
        return result

    def _matmul(
        self,
        matrix: Matrix,
        x: Rows,
        out: Rows,
        *,
        weights: int,
        extent: Extent,
        offset: int = 0,
        bias: int = 0,
        items: int = 0,
    ) -> None:
        takes_rounded = not matrix.is_float and bool(x.rounded)
        kernel = f"matmul_{matrix.type_name}" + ("" if matrix.is_float or takes_rounded else "_f32")
        chunk_bytes = matrix.n_bytes // (self._n_workers * _CHUNKS_PER_WORKER)
        chunk_bytes = min(max(chunk_bytes, _LEAST_CHUNK_BYTES), _MOST_CHUNK_BYTES)
        groups_per_chunk = min(max(1, chunk_bytes // matrix.group_bytes), matrix.n_groups)
        row_chunks = -(-matrix.n_groups // groups_per_chunk)
        unit = 1 if items else _TOKEN_TILE
        x_stride = x.rounded_stride if takes_rounded else x.stride
        rows_at_once = min(max(_CACHED_ACTIVATION_BYTES // x_stride // TILE_ROWS, 1) * TILE_ROWS, _TOKEN_TILE)
        self.need_scratch(unpacked_bytes(matrix.n_inputs))
        self.plan.add(
            kernel,
            Extent(extent.cell, extent.most, unit, row_chunks),
            weights=weights,
            matrix_offset=offset,
            group_bytes=matrix.group_bytes,
            n_groups=matrix.n_groups,
            groups_per_chunk=groups_per_chunk,
            row_chunks=row_chunks,
            n_inputs=matrix.n_inputs,
            x=x.rounded if takes_rounded else x.address,
            x_stride=x_stride,
            rows_at_once=rows_at_once,
            out=out.address,
            out_stride=out.stride,
            bias=bias,
            extent=extent.cell,
            unit=unit,
            items=items,
        )

    def head_norm(self, x: Rows, weight: str, n: int) -> None:
        """Normalise the rows of x in place, in parts of `n` values, in the stage that is open."""
        self._rms_norm(x, x, weight, n, self._tokens)

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

    def _attention_unit(self, group: int) -> int:
        """Tokens that attend together: several, where their scores stay in the second-level cache."""
        row_bytes = 4 * (self.batch.max_pages * self.batch.page_tokens + 1)
        unit = min(max(_CACHED_SCORE_BYTES // (group * row_bytes), 1), _MOST_TOKENS_TOGETHER)
        self.need_scratch(unit * group * row_bytes)
        return unit

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

    def feed_forward(self, prefix: str, n_feed_forward: int) -> None:
        """A dense gated feed-forward network, with its norm."""
        x = self.norm(f"{prefix}ffn_norm.weight")
        with self.plan.side_by_side("feed forward"):
            gate, up = self._gate_up(x, prefix, "", n_feed_forward)
        with self.plan.side_by_side("feed forward"):
            self._swiglu(gate, up, self._tokens)
        with self.plan.side_by_side("feed forward"):
            down = self.linear(gate, f"{prefix}ffn_down.weight", self.hyper.n_embedding, "projected")
        self.add_to_residual(down)

    def _gate_up(self, x: Rows, prefix: str, suffix: str, n: int) -> tuple[Rows, Rows]:
        label = suffix or " dense"
        self.linear(x, f"{prefix}ffn_gate{suffix}.weight", n, f"gate{label}")
        up = self.linear(x, f"{prefix}ffn_up{suffix}.weight", n, f"up{label}")
        return self.rows(f"gate{label}", n, rounded=True), up

    def _swiglu(self, gate: Rows, up: Rows, rows: Extent) -> None:
        row_chunks = -(-gate.n // _SWIGLU_COLUMNS)
        self.plan.add(
            "swiglu",
            Extent(rows.cell, rows.most, 1, row_chunks),
            gate=gate.address,
            up=up.address,
            stride=gate.stride,
            rounded=gate.rounded,
            rounded_stride=gate.rounded_stride,
            n_columns=gate.n,
            columns_per_chunk=_SWIGLU_COLUMNS,
            row_chunks=row_chunks,
        )

    def mixture(
        self,
        layer: int,
        prefix: str,
        *,
        normalise: bool,
        scale: float = 1.0,
        n_shared: int = 0,
        shared_gate: bool = False,
    ) -> None:
        """A mixture-of-experts block: norm, router, the chosen experts, and shared experts of `n_shared` columns."""
        hyper = self.hyper
        x = self.norm(f"{prefix}ffn_norm.weight")
        n_pairs = self._most_pairs
        _, expert_weights = self._routes_of(len(self.moe_layers))
        moe = self._route(layer, prefix, x, normalise=normalise, scale=scale)
        pairs = Extent(self.buffer("number of pairs", 8).address, n_pairs)
        items = Extent(moe.n_items.address, self._most_items())
        gate = self.rows("expert gate", hyper.n_expert_feed_forward, n_rows=n_pairs, rounded=True)
        up = self.rows("expert up", hyper.n_expert_feed_forward, n_rows=n_pairs)
        down = self.rows("expert outputs", hyper.n_embedding, n_rows=n_pairs)
        experts = moe.experts
        inputs = self._expert_inputs(x, experts, pairs)
        with self.plan.side_by_side("experts"):
            self._expert_matmul(moe, experts.gate, inputs, gate, items)
            self._expert_matmul(moe, experts.up, inputs, up, items)
            if n_shared:
                shared_inner, shared_up = self._gate_up(x, prefix, "_shexp", n_shared)
            if shared_gate:
                opening = self.linear(x, f"{prefix}ffn_gate_inp_shexp.weight", 1, "shared gate")
        with self.plan.side_by_side("experts"):
            self._swiglu(gate, up, pairs)
            if n_shared:
                self._swiglu(shared_inner, shared_up, self._tokens)
        with self.plan.side_by_side("experts"):
            self._expert_matmul(moe, experts.down, gate, down, items)
            if n_shared:
                shared = self.linear(
                    shared_inner, f"{prefix}ffn_down_shexp.weight", hyper.n_embedding, "shared outputs"
                )
        self._pending.append(
            (
                "combine",
                {
                    "x": self.x.address,
                    "stride": self.x.stride,
                    "n": hyper.n_embedding,
                    "outputs": down.address,
                    "weights": expert_weights,
                    "pair_of": self.buffer("pair of choice", 4 * n_pairs).address,
                    "top_k": hyper.top_k,
                },
            )
        )
        if shared_gate:
            gated = {"gate": opening.address, "gate_stride": opening.stride}
            self._pending.append(("add_gated", self._add_operands(shared) | gated))
        elif n_shared:
            self.add_to_residual(shared)

    def _expert_inputs(self, x: Rows, experts: ExpertLayer, pairs: Extent) -> Rows:
        """The rows of x once for each (token, choice) pair, so that an expert's rows lie together."""
        needs_floats = not x.rounded or experts.gate.is_float or experts.up.is_float
        needs_rounded = bool(x.rounded) and not (experts.gate.is_float and experts.up.is_float)
        plain = self.buffer("expert inputs", x.stride * pairs.most).address if needs_floats else 0
        rounded = self.rounded_buffer("expert inputs", pairs.most, x.rounded_stride) if needs_rounded else 0
        pair_tokens = self.buffer("pair tokens", 4 * pairs.most).address
        with self.plan.in_sequence("experts"):
            for source, target, stride in ((x.address, plain, x.stride), (x.rounded, rounded, x.rounded_stride)):
                if target:
                    self.plan.add("gather_rows", pairs, x=source, rows=pair_tokens, out=target, stride=stride)
        return Rows(x.n, plain, x.stride, rounded, x.rounded_stride)

    def _expert_matmul(self, moe: MoeLayer, matrix: Matrix, x: Rows, out: Rows, items: Extent) -> None:
        """The same matrix of each chosen expert with the rows that chose it."""
        slots, offset = moe.slots.address, matrix.address
        self._matmul(matrix, x, out, weights=slots, offset=offset, extent=items, items=moe.items.address)

    def _add_operands(self, y: Rows) -> dict[str, float]:
        return {"x": self.x.address, "y": y.address, "stride": self.x.stride, "n": self.hyper.n_embedding}

    def _most_items(self) -> int:
        n_pairs = self._most_pairs
        return min(n_pairs, self.hyper.n_experts + n_pairs // _TOKEN_TILE)

    def _route(self, layer: int, prefix: str, x: Rows, *, normalise: bool, scale: float) -> MoeLayer:
        hyper, index = self.hyper, len(self.moe_layers)
        n_pairs = self._most_pairs
        chosen, expert_weights = self._routes_of(index)
        n_items = self.buffer("number of items", 8)
        missing = self.buffer("missing experts", 8).address
        items = self.buffer("expert items", ITEM_BYTES * self._most_items())
        slots = self.memory.allocate(f"{prefix}expert addresses", 8 * hyper.n_experts, "buffers")
        with self.plan.side_by_side("router"):
            logits = self.linear(x, f"{prefix}ffn_gate_inp.weight", hyper.n_experts, "router logits")
        with self.plan.in_sequence("router"):
            self.plan.add(
                "route",
                self._tokens,
                logits=logits.address,
                logits_stride=logits.stride,
                experts=chosen,
                weights=expert_weights,
                n_experts=hyper.n_experts,
                top_k=hyper.top_k,
                normalise=int(normalise),
                scale=scale,
            )
        stage = len(self.plan.stages)
        with self.plan.side_by_side("router", halt=missing):
            self.plan.add(
                "group",
                Extent(self.batch.one, 1),
                experts=chosen,
                n_tokens=self.batch.n_tokens,
                top_k=hyper.top_k,
                n_experts=hyper.n_experts,
                slots=slots.address,
                max_rows=_TOKEN_TILE,
                items=items.address,
                n_items=n_items.address,
                pair_tokens=self.buffer("pair tokens", 4 * n_pairs).address,
                pair_of=self.buffer("pair of choice", 4 * n_pairs).address,
                n_pairs=self.buffer("number of pairs", 8).address,
                missing=missing,
                counts=self.counts.address + 8 * hyper.n_experts * index,
                last_used=self.last_used.address + 8 * hyper.n_experts * index,
                clock=self.batch.clock,
                newest=self.newest.address + 4 * hyper.top_k * index,
            )
        experts = self.weights.experts(prefix, hyper.n_experts, hyper.n_embedding, hyper.n_expert_feed_forward)
        moe = MoeLayer(layer, experts, slots, items, n_items, stage)
        self.moe_layers.append(moe)
        return moe

    def output(self) -> None:
        """Final norm and logits, of the rows that are asked for only."""
        hyper, n_outputs = self.hyper, self.batch.max_outputs
        with self.plan.in_sequence("norms"):
            self._add_pending()
        wanted = Extent(self.batch.n_outputs, n_outputs)
        last = self.rows("output rows", hyper.n_embedding, n_rows=n_outputs, rounded=True)
        with self.plan.in_sequence("output"):
            self.plan.add(
                "gather_rows",
                wanted,
                x=self.x.address,
                rows=self.batch.output_rows,
                out=last.address,
                stride=last.stride,
            )
            self._rms_norm(last, last, "output_norm.weight", hyper.n_embedding, wanted)
        name = "output.weight" if self.weights.has("output.weight") else "token_embd.weight"
        with self.plan.side_by_side("output"):
            self.logits = self.linear(last, name, self.n_vocab, "logits", extent=wanted)

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
