"""The mixture of experts: routing, the chosen experts' work, shared experts, and one sum for each token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.gguf import TensorType
from engine.kernels.layout import ITEM_BYTES
from engine.memory import Buffer, view
from engine.models.parts import SWIGLU_COLUMNS, TOKEN_TILE, Parts, Setting
from engine.models.weights import ExpertLayer, Matrix, whole_registers
from engine.models.workspace import Rows
from engine.plan import Extent

N_SUMS, N_FORESIGHT_SUMS = 3, 6
_JITTER = 0.01  # of the sparse mixer: router_jitter_noise of every published model, which GGUF has no key for
_ROUTER_TYPES = {"fp32": TensorType.F32, "bf16": TensorType.BF16, "fp16": TensorType.F16}


@dataclass(frozen=True, slots=True)
class MoeLayer:
    """One layer's routed experts and the table that holds their addresses, which the store fills."""

    layer: int
    experts: ExpertLayer
    slots: Buffer  # (n_experts,) int64
    items: Buffer
    n_items: Buffer
    stage: int  # the plan's stage that halts when experts are missing
    chosen: int  # address of the experts that the batch's tokens choose, (most pairs,) int32


@dataclass(frozen=True, slots=True)
class Router:
    """How experts are chosen and weighted.

    scoring: "softmax" or "sigmoid" of the logits, or "sparse" (PhiMoE's sparse mixer).
    Where the file has the tensor exp_probs_b it is added to the scores, for the choice alone.
    groups: (how many groups of experts, how many may be used, how many of a group's best scores rank it).
    normalise: the weights of the chosen are divided by their sum (plus epsilon); then all are multiplied with `scale`.
    """

    scoring: str = "softmax"
    normalise: bool = False
    scale: float = 1.0
    groups: tuple[int, int, int] = (1, 1, 1)
    epsilon: float = 0.0


@dataclass(frozen=True, slots=True)
class Clamped:
    """Experts with biases and a clamped SwiGLU: see clamped_swiglu_reference."""

    limit: float
    slope: float


@dataclass(frozen=True, slots=True)
class Shared:
    """Shared experts of together `n` columns; has_gate: their sum is multiplied with the sigmoid of a gate."""

    n: int
    has_gate: bool = False


class Mixture(Parts):
    """Mixture-of-experts blocks and what is counted about them."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.moe_layers: list[MoeLayer] = []
        hyper = self.hyper
        self.counts = self.buffer("expert counts", 8 * hyper.n_layers * max(hyper.n_experts, 1))
        self.last_used = self.buffer("expert use", 8 * hyper.n_layers * max(hyper.n_experts, 1))
        self.newest = self.buffer("newest choice", 4 * hyper.n_layers * max(hyper.top_k, 1))
        self.memory.fill_later(lambda: view(self.newest, np.int32, (self.newest.n_bytes // 4,)).fill(-1))
        self.sums = self.buffer("expert sums", 8 * N_SUMS)
        self._routers: dict[str, Matrix] = {}
        self._layers: dict[str, ExpertLayer] = {}
        self.foresight_sums: Buffer | None = None
        if self.foresees:
            n_experts, n_layers = hyper.n_experts, hyper.n_layers
            self._wanted = self.buffer("wanted experts", 8 * n_experts)
            self._n_wanted = self.buffer("number of wanted experts", 8)
            self._asked = self.buffer("experts asked for", 8 * n_experts * n_layers)
            self.foresight_sums = self.buffer("foresight sums", 8 * N_FORESIGHT_SUMS)
        self.need_scratch(8 * max(hyper.n_experts, 16) * 2)

    def is_dense(self, prefix: str) -> bool:
        """Whether the layer `prefix` has a dense network, in a model whose other layers may have experts."""
        return self.weights.has(f"{prefix}ffn_gate.weight")

    def mixture(
        self,
        layer: int,
        prefix: str,
        router: Router,
        *,
        shared: Shared | None = None,
        clamped: Clamped | None = None,
        norm: str = "ffn_norm",
    ) -> None:
        """A mixture-of-experts block: norm, router, the chosen experts, shared experts."""
        if not self.builds(prefix):
            return
        hyper = self.hyper
        x = self.norm(f"{prefix}{norm}.weight")
        n_pairs = self._most_pairs
        chosen, expert_weights = self._routes_of(len(self.moe_layers))
        next_prefix = self._next_mixture(layer) if self.foresees else None
        moe = self._route(layer, prefix, x, router, next_prefix, norm)
        pairs = Extent(self.buffer("number of pairs", 8).address, n_pairs)
        items = Extent(moe.n_items.address, self._most_items())
        gate = self.rows("expert gate", hyper.n_expert_feed_forward, n_rows=n_pairs, rounded=True)
        up = self.rows("expert up", hyper.n_expert_feed_forward, n_rows=n_pairs)
        down = self.rows("expert outputs", hyper.n_embedding, n_rows=n_pairs)
        experts = moe.experts
        inputs = self._expert_inputs(x, experts, pairs)
        with self.plan.side_by_side("experts"):
            if self.foresight_sums:
                self._foresee(moe, next_prefix, self.foresight_sums)
            self._expert_matmul(moe, experts.gate, inputs, gate, items)
            self._expert_matmul(moe, experts.up, inputs, up, items)
            if shared:
                shared_inner, shared_up = self._gate_up(x, prefix, "_shexp", shared.n)
            if shared and shared.has_gate:
                opening = self.linear(x, f"{prefix}ffn_gate_inp_shexp.weight", 1, "shared gate")
        with self.plan.side_by_side("experts"):
            if clamped:
                self._swiglu_clamped(prefix, gate, up, moe, clamped)
            else:
                self._swiglu(gate, up, pairs)
            if shared:
                self._swiglu(shared_inner, shared_up, self._tokens)
        with self.plan.side_by_side("experts"):
            if next_prefix:
                self._ask(next_prefix)
            self._expert_matmul(moe, experts.down, gate, down, items)
            if shared:
                name = f"{prefix}ffn_down_shexp.weight"
                shared_out = self.linear(shared_inner, name, hyper.n_embedding, "shared outputs")
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
                    "experts": chosen,
                    "bias": self._expert_bias(f"{prefix}ffn_down", hyper.n_embedding) if clamped else 0,
                    "top_k": hyper.top_k,
                    "scale": self.residual_scale,
                },
            )
        )
        if shared and shared.has_gate:
            gated = {"gate": opening.address, "gate_stride": opening.stride}
            self._pending.append(("add_gated", self._add_operands(shared_out) | gated))
        elif shared:
            self.add_to_residual(shared_out)

    def _expert_bias(self, stem: str, n: int) -> int:
        return self.weights.vectors(f"{stem}_exps.bias", self.hyper.n_experts, n).address

    def _swiglu_clamped(self, prefix: str, gate: Rows, up: Rows, moe: MoeLayer, clamped: Clamped) -> None:
        row_chunks = -(-gate.n // SWIGLU_COLUMNS)
        self.plan.add(
            "swiglu_clamped",
            Extent(moe.n_items.address, self._most_items(), 1, row_chunks),
            gate=gate.address,
            up=up.address,
            stride=gate.stride,
            rounded=gate.rounded,
            rounded_stride=gate.rounded_stride,
            n_columns=gate.n,
            columns_per_chunk=SWIGLU_COLUMNS,
            row_chunks=row_chunks,
            items=moe.items.address,
            gate_bias=self._expert_bias(f"{prefix}ffn_gate", gate.n),
            up_bias=self._expert_bias(f"{prefix}ffn_up", gate.n),
            limit=clamped.limit,
            slope=clamped.slope,
        )

    def _next_mixture(self, layer: int) -> str | None:
        """The prefix of the next layer with experts that this plan has."""
        prefixes = (f"blk.{later}." for later in range(layer + 1, self.hyper.n_layers))
        return next((p for p in prefixes if self.builds(p) and self.weights.has(f"{p}ffn_gate_inp.weight")), None)

    def _foresee(self, moe: MoeLayer, next_prefix: str | None, sums: Buffer) -> None:
        """Find out what the next layer is expected to need and has not, and what became of what was asked for."""
        index, hyper = len(self.moe_layers) - 1, self.hyper
        asked = self._asked.address + 8 * hyper.n_experts * index
        self.plan.add(
            "foresee",
            Extent(self.batch.one, 1),
            n_experts=hyper.n_experts,
            top_k=hyper.top_k,
            n_tokens=self.batch.n_tokens,
            n_foreseen=self.batch.n_foreseen,
            chosen=moe.chosen,
            foreseen=self._foreseen_of(index) if index else 0,
            asked=asked,
            sums=sums.address,
            next_foreseen=self._foreseen_of(index + 1) if next_prefix else 0,
            next_slots=self._slots_of(index + 1).address if next_prefix else 0,
            next_asked=asked + 8 * hyper.n_experts if next_prefix else 0,
            wanted=self._wanted.address,
            n_wanted=self._n_wanted.address,
            n_ranks=-(-hyper.top_k // 2),
            expert_bytes=self._experts_of(next_prefix).source_bytes if next_prefix else 0,
        )

    def _ask(self, next_prefix: str) -> None:
        """Let the disk read what the layer `next_prefix` is expected to need."""
        experts, n_experts = self._experts_of(next_prefix), self.hyper.n_experts
        gate_bytes, up_bytes, down_bytes = experts.matrix_bytes
        sources = self.buffer(f"{next_prefix}sources of experts", 8 * 3 * n_experts)

        def fill() -> None:
            view(sources, np.int64, (n_experts, 3))[:] = experts.sources

        self.memory.fill_later(fill)
        self.plan.add(
            "ask",
            Extent(self._n_wanted.address, n_experts),
            wanted=self._wanted.address,
            sources=sources.address,
            gate_bytes=gate_bytes,
            up_bytes=up_bytes,
            down_bytes=down_bytes,
        )

    def _experts_of(self, prefix: str) -> ExpertLayer:
        if prefix not in self._layers:
            hyper = self.hyper
            sizes = (hyper.n_experts, hyper.n_embedding, hyper.n_expert_feed_forward)
            self._layers[prefix] = self.weights.experts(prefix, *sizes)
        return self._layers[prefix]

    def _foreseen_of(self, index: int) -> int:
        """Address of the experts that are expected to be chosen in the MoE layer `index`."""
        n_bytes = 4 * self._most_pairs
        return self.buffer("foreseen experts", n_bytes * self.hyper.n_layers).address + n_bytes * index

    def _slots_of(self, index: int) -> Buffer:
        """The table of addresses of the MoE layer `index`."""
        return self.buffer(f"expert addresses {index}", 8 * self.hyper.n_experts)

    def _route(self, layer: int, prefix: str, x: Rows, router: Router, next_prefix: str | None, norm: str) -> MoeLayer:
        hyper, index = self.hyper, len(self.moe_layers)
        n_pairs = self._most_pairs
        chosen, expert_weights = self._routes_of(index)
        n_items = self.buffer("number of items", 8)
        missing = self.buffer("missing experts", 8).address
        items = self.buffer("expert items", ITEM_BYTES * self._most_items())
        slots = self._slots_of(index)
        ahead, foreseen_tokens = None, Extent(self.batch.n_foreseen, self.config.max_batch_tokens)
        if next_prefix:
            ahead = self.rows("foreseen state", hyper.n_embedding, rounded=True)
            with self.plan.in_sequence("router"):
                self._norm(self.x, ahead, f"{next_prefix}{norm}.weight", foreseen_tokens)
        with self.plan.side_by_side("router"):
            logits = self._router_logits(x, f"{prefix}ffn_gate_inp", "router logits", self._tokens)
            if ahead:
                name = f"{next_prefix}ffn_gate_inp"
                ahead_logits = self._router_logits(ahead, name, "foreseen logits", foreseen_tokens)
        if next_prefix:
            foreseen, unused = self._foreseen_of(index + 1), self.buffer("foreseen weights", 4 * n_pairs).address
            with self.plan.in_sequence("router"):
                self._choose(next_prefix, ahead_logits, router, foreseen, unused, foreseen_tokens)
        with self.plan.in_sequence("router"):
            self._choose(prefix, logits, router, chosen, expert_weights, self._tokens)
        experts = self._experts_of(prefix)
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
                max_rows=TOKEN_TILE,
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
                sums=self.sums.address,
                slab_bytes=experts.slab_bytes,
            )
        moe = MoeLayer(layer, experts, slots, items, n_items, stage, chosen)
        self.moe_layers.append(moe)
        return moe

    def _router_logits(self, x: Rows, name: str, out: str, tokens: Extent) -> Rows:
        n_experts, precision = self.hyper.n_experts, self.config.router_precision
        rounded_to = _ROUTER_TYPES[precision] if precision else None
        if name not in self._routers:  # one may be wanted twice: by its own layer and by the one before
            self._routers[name] = self.weights.router(f"{name}.weight", n_experts, x.n, rounded_to)
        matrix = self._routers[name]
        bias = self.weights.optional_vector(f"{name}.bias", n_experts)
        logits = self.rows(out, n_experts)
        self._matmul(matrix, x, logits, weights=matrix.address, bias=bias, extent=tokens)
        return logits

    def _choose(self, prefix: str, logits: Rows, router: Router, chosen: int, weights: int, tokens: Extent) -> None:
        hyper = self.hyper
        common: dict[str, float] = {
            "logits": logits.address,
            "logits_stride": logits.stride,
            "experts": chosen,
            "weights": weights,
            "n_experts": hyper.n_experts,
            "top_k": hyper.top_k,
        }
        bias = self.weights.optional_vector(f"{prefix}exp_probs_b.bias", hyper.n_experts)
        n_groups, n_used, n_best = router.groups
        if router.scoring == "sparse":
            self.plan.add("route_sparse", tokens, **common, jitter=_JITTER)
            return
        common |= {"normalise": int(router.normalise), "scale": router.scale}
        if router.scoring == "softmax" and not bias and n_groups == 1:
            self.plan.add("route", tokens, **common)
            return
        self.need_scratch(3 * 4 * whole_registers(hyper.n_experts))
        self.plan.add(
            "route_scored",
            tokens,
            **common,
            bias=bias,
            n_groups=n_groups,
            n_groups_used=n_used,
            n_group_best=n_best,
            sigmoid=int(router.scoring == "sigmoid"),
            epsilon=router.epsilon,
        )

    def _expert_inputs(self, x: Rows, experts: ExpertLayer, pairs: Extent) -> Rows:
        """The rows of x once for each (token, choice) pair, so that an expert's rows lie together."""
        needs_floats = not x.rounded or experts.gate.is_float or experts.up.is_float or self.config.measures_inputs
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

    def _most_items(self) -> int:
        n_pairs = self._most_pairs
        return min(n_pairs, self.hyper.n_experts + n_pairs // TOKEN_TILE)

    @property
    def _most_pairs(self) -> int:
        return self.config.max_batch_tokens * self.hyper.top_k

    def _routes_of(self, index: int) -> tuple[int, int]:
        """Addresses of the chosen experts and of their weights of the MoE layer `index`."""
        n_bytes = 4 * self._most_pairs
        chosen = self.buffer("chosen experts", n_bytes * self.hyper.n_layers)
        weights = self.buffer("expert weights", n_bytes * self.hyper.n_layers)
        return chosen.address + n_bytes * index, weights.address + n_bytes * index

    def routes(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """The newest batch's experts (int32) and their weights (float32), each (n_moe_layers, most pairs)."""
        shape = (len(self.moe_layers), self._most_pairs)
        if not self.moe_layers:
            return np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        chosen, weights = self._buffers["chosen experts"], self._buffers["expert weights"]
        return view(chosen, np.int32, shape), view(weights, np.float32, shape)
