"""Layers whose past is a state of fixed size: short convolutions, and linear attention by the gated delta rule."""

from __future__ import annotations

from dataclasses import dataclass

from engine.kernels.layout import DELTA_COLUMNS
from engine.models.parts import Parts, Setting
from engine.models.weights import Strips
from engine.models.workspace import Rows
from engine.plan import Extent

_UNIT_EPSILON = 1e-6  # added to a query's or key's squared length


@dataclass(frozen=True, slots=True)
class DeltaHeads:
    """Sizes of gated delta-net attention: heads of keys (and queries) and of values, and their widths.

    n_taps: of the convolution before it. is_tiled: a key head serves every n_key-th value head, else neighbouring ones.
    """

    n_key: int
    n_value: int
    key_dim: int
    value_dim: int
    n_taps: int
    is_tiled: bool

    @property
    def n_mixed(self) -> int:
        """Queries, keys and values of all heads."""
        return 2 * self.n_key * self.key_dim + self.n_value * self.value_dim


class Recurrent(Parts):
    """Recurrent blocks; each takes its place in a sequence's state when it is added."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting)
        self.state_bytes = 0  # of one sequence, all layers so far

    def short_convolution(self, prefix: str, n_taps: int) -> None:
        """A gated short convolution in place of attention (LFM2), from its norm to its output projection."""
        if not self.builds(prefix):
            return
        n = self.hyper.n_embedding
        x = self.norm(f"{prefix}attn_norm.weight")
        with self.plan.side_by_side("attention"):
            gates = self.linear(x, f"{prefix}shortconv.in_proj.weight", 3 * n, "convolution gates")
        inner, outer, signal = (Rows(n, gates.address + 4 * n * i, gates.stride) for i in range(3))
        with self.plan.in_sequence("attention"):
            self._multiply(inner, signal)
        out = self.rows("convolved", n, rounded=True)
        with self.plan.in_sequence("attention"):
            self._causal_conv(inner, out, f"{prefix}shortconv.conv.weight", n_taps, silu=False)
            self._multiply(out, outer)
            self._quantise(out, self._tokens)
        with self.plan.side_by_side("attention"):
            projected = self.linear(out, f"{prefix}shortconv.out_proj.weight", n, "projected")
        self.add_to_residual(projected)

    def delta_net(self, prefix: str, heads: DeltaHeads) -> None:
        """Gated delta-net attention (Qwen3-Next), from its norm to its output projection."""
        if not self.builds(prefix):
            return
        n_out = heads.n_value * heads.value_dim
        x = self.norm(f"{prefix}attn_norm.weight")
        with self.plan.side_by_side("attention"):
            inputs, gate = self._delta_inputs(x, prefix, heads)
            alpha, beta, n_group = self._alpha_beta(x, prefix, heads)
        mixed = self.rows("delta mixed", heads.n_mixed)
        gates = self.rows("delta gates", 2 * heads.n_value)
        with self.plan.in_sequence("attention"):
            self._causal_conv(inputs, mixed, f"{prefix}ssm_conv1d.weight", heads.n_taps, silu=True)
            self._unit_length(mixed, 0, heads, 1 / heads.key_dim)
            self._unit_length(mixed, heads.n_key * heads.key_dim, heads, heads.key_dim**-0.5)
            self.plan.add(
                "delta_gates",
                self._tokens,
                alpha=alpha.address,
                alpha_stride=alpha.stride,
                beta=beta.address,
                beta_stride=beta.stride,
                n_heads=heads.n_value,
                n_group=n_group,
                rate=self.weights.vector(f"{prefix}ssm_a", heads.n_value).address,
                bias=self.weights.vector(f"{prefix}ssm_dt.bias", heads.n_value).address,
                gates=gates.address,
                gates_stride=gates.stride,
            )
        out = self.rows("delta output", n_out, rounded=True)
        with self.plan.side_by_side("attention"):
            self._delta_rule(mixed, gates, out, heads)
        with self.plan.in_sequence("attention"):
            plain = Rows(n_out, out.address, out.stride)
            self._rms_norm(plain, plain, f"{prefix}ssm_norm.weight", heads.value_dim, self._tokens)
            self._open_gate(out, gate, is_silu=True)
        with self.plan.side_by_side("attention"):
            projected = self.linear(out, f"{prefix}ssm_out.weight", self.hyper.n_embedding, "projected")
        self.add_to_residual(projected)

    def _delta_inputs(self, x: Rows, prefix: str, heads: DeltaHeads) -> tuple[Rows, Rows]:
        """Queries, keys and values of all heads, and the gates of the output."""
        n_out, names = heads.n_value * heads.value_dim, ("delta inputs", "delta output gate")
        if not self.weights.has(f"{prefix}ssm_in.weight"):
            inputs = self.linear(x, f"{prefix}attn_qkv.weight", heads.n_mixed, names[0])
            return inputs, self.linear(x, f"{prefix}attn_gate.weight", n_out, names[1])
        # older files: for each key head its query, its key, its heads' values, their gates
        n_rows, n_own = heads.n_mixed + n_out, n_out // heads.n_key
        firsts = (0, heads.key_dim, 2 * heads.key_dim, 2 * heads.key_dim + n_own)
        heights = (heads.key_dim, heads.key_dim, n_own, n_own)
        *strips, gates = (Strips(n_rows, f, h, heads.n_key) for f, h in zip(firsts, heights, strict=True))
        inputs = self.linear(x, f"{prefix}ssm_in.weight", heads.n_mixed, names[0], strips=tuple(strips))
        return inputs, self.linear(x, f"{prefix}ssm_in.weight", n_out, names[1], strips=(gates,))

    def _alpha_beta(self, x: Rows, prefix: str, heads: DeltaHeads) -> tuple[Rows, Rows, int]:
        """What decay and strength come from, in own rows or in one with (n_group) betas and alphas in turn."""
        if self.weights.has(f"{prefix}ssm_ba.weight"):
            both = self.linear(x, f"{prefix}ssm_ba.weight", 2 * heads.n_value, "delta strengths and decays")
            return both, both, heads.n_value // heads.n_key
        alpha = self.linear(x, f"{prefix}ssm_alpha.weight", heads.n_value, "delta decays")
        return alpha, self.linear(x, f"{prefix}ssm_beta.weight", heads.n_value, "delta strengths"), 0

    def _unit_length(self, mixed: Rows, first: int, heads: DeltaHeads, length: float) -> None:
        """Give each of the heads from value `first` on the length `length` * sqrt(key_dim), as an RMS norm does."""
        n = heads.key_dim
        rows = Rows(n * heads.n_key, mixed.address + 4 * first, mixed.stride)
        weight = self.weights.constant(length, n).address
        self._rms_norm_by(rows, rows, weight, n, self._tokens, _UNIT_EPSILON / n)

    def _multiply(self, x: Rows, y: Rows) -> None:
        operands = {"x": x.address, "x_stride": x.stride, "y": y.address, "y_stride": y.stride, "n": x.n}
        self.plan.add("multiply", self._tokens, **operands)

    def _state_operands(self, n_bytes: int) -> dict[str, int]:
        """Where a layer's state is, from now on taken."""
        place, self.state_bytes = self.state_bytes, self.state_bytes + -(-n_bytes // 64) * 64
        return {
            "n_tokens": self.batch.n_tokens,
            "sequences": self.batch.sequences,
            "old_states": self.batch.old_states,
            "new_states": self.batch.new_states,
            "state_offset": place,
        }

    def _causal_conv(self, x: Rows, out: Rows, weight: str, n_taps: int, *, silu: bool) -> None:
        self.plan.add(
            "causal_conv",
            self._tokens,
            x=x.address,
            x_stride=x.stride,
            out=out.address,
            out_stride=out.stride,
            weight=self.weights.taps(weight, x.n, n_taps).address,
            n=x.n,
            n_taps=n_taps,
            silu_after=int(silu),
            **self._state_operands(4 * x.n * (n_taps - 1)),
        )

    def _delta_rule(self, mixed: Rows, gates: Rows, out: Rows, heads: DeltaHeads) -> None:
        row_chunks = heads.n_value * -(-heads.value_dim // DELTA_COLUMNS)
        self.need_scratch(4 * 32 * heads.key_dim)
        self.plan.add(
            "delta_rule",
            Extent(self.batch.one, 1, 1, row_chunks),
            mixed=mixed.address,
            mixed_stride=mixed.stride,
            gates=gates.address,
            gates_stride=gates.stride,
            out=out.address,
            out_stride=out.stride,
            n_key_heads=heads.n_key,
            n_value_heads=heads.n_value,
            dk=heads.key_dim,
            dv=heads.value_dim,
            is_tiled=int(heads.is_tiled),
            row_chunks=row_chunks,
            **self._state_operands(4 * heads.n_value * heads.key_dim * heads.value_dim),
        )
