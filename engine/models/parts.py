"""The parts that every decoder is made of: matrix products, norms, the residual stream, dense feed-forward networks."""

from __future__ import annotations

from dataclasses import dataclass

from engine.batch import Batch
from engine.config import EngineConfig
from engine.errors import UnsupportedModelError
from engine.kernels.layout import GROUP, MATMUL_SCRATCH_BYTES, matmul_kernel
from engine.kernels.library import KernelLibrary
from engine.memory import Memory
from engine.models.hyperparameters import Hyperparameters
from engine.models.observed import ObservedInputs
from engine.models.weights import Matrix, Strips, Weights, whole_registers
from engine.models.workspace import Rows, Workspace
from engine.plan import Extent, Plan

TOKEN_TILE = 128  # activation rows that one chunk of a matrix product takes
_LEAST_CHUNK_BYTES, _MOST_CHUNK_BYTES = 8 << 10, 128 << 10
_CHUNKS_PER_WORKER = 8
_SHARING_GROUPS = 4  # of a chunk, however large they are: they take activations from the first-level cache together
SWIGLU_COLUMNS = 512


@dataclass(frozen=True, slots=True)
class Setting:
    """What a model is built from and for."""

    hyper: Hyperparameters
    weights: Weights
    memory: Memory
    library: KernelLibrary
    config: EngineConfig
    batch: Batch
    n_workers: int
    foresees: bool = False  # whether each layer's experts are chosen in advance, too (see kernels/foresight.py)


class Parts(Workspace):
    """Adds operations to the plan of one model; each method is one well-known part."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting.memory, setting.config)
        self.hyper, self.weights, self.batch = setting.hyper, setting.weights, setting.batch
        self.plan = Plan(setting.library, setting.batch.interrupt)
        self.logits: Rows | None = None
        self._n_workers, self.foresees = setting.n_workers, setting.foresees
        self._pending: list[tuple[str, dict[str, float]]] = []  # additions to the residual stream, for the next norm
        self.residual_scale = 1.0  # what every addition to the residual stream is multiplied with
        self.has_layer_norms = False  # layer normalisation with biases, instead of RMS normalisation
        self.x = self.rows("residual", self.hyper.n_embedding)
        n_layers = self.hyper.n_layers
        self._first_layer, self._last_layer = setting.config.layers or (0, n_layers)
        self._has_output = setting.config.layers in (None, (n_layers, n_layers))
        self.observed = ObservedInputs(self.memory, self.config)

    def builds(self, prefix: str) -> bool:
        """Whether the layer `prefix` is one of those that are wanted (`EngineConfig.layers`)."""
        return self._first_layer <= int(prefix.split(".")[1]) < self._last_layer

    @property
    def n_vocab(self) -> int:
        return self.weights.n_rows("token_embd.weight")

    @property
    def _tokens(self) -> Extent:
        return Extent(self.batch.n_tokens, self.config.max_batch_tokens)

    def embed(self, name: str = "token_embd.weight", *, scale: float = 1.0) -> None:
        """The residual stream begins as the tokens' rows of the embedding table, times `scale`."""
        if self._first_layer:
            return  # the layers before have left it there
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
            self._scale(self.x, scale, self._tokens)

    def _scale(self, x: Rows, scale: float, extent: Extent) -> None:
        if scale != 1.0:
            n = whole_registers(x.n)
            self.plan.add("scale_rows", extent, x=x.address, stride=x.stride, n=n, scale=scale)

    def norm(self, weight: str) -> Rows:
        """The normalised residual stream, after adding to it what the part before has left."""
        out = self.rows("normalised", self.hyper.n_embedding, rounded=True)
        with self.plan.in_sequence("norms"):
            self._add_pending()
            self._norm(self.x, out, weight, self._tokens)
        return out

    def _norm(self, x: Rows, out: Rows, weight: str, extent: Extent) -> None:
        """The norm of whole rows of the residual stream, of the model's kind."""
        if not self.has_layer_norms:
            self._rms_norm(x, out, weight, x.n, extent)
            return
        if x.n % GROUP:
            raise UnsupportedModelError(
                f"The embedding length of this model: {x.n}; its layer norms need a multiple of {GROUP}."
            )
        self.plan.add(
            "layer_norm",
            extent,
            x=x.address,
            weight=self.weights.vector(weight, x.n).address,
            bias=self.weights.vector(weight.replace(".weight", ".bias"), x.n).address,
            out=out.address,
            n=x.n,
            stride=x.stride,
            eps=self.hyper.norm_epsilon,
        )
        self._quantise(out, extent)

    def _add_pending(self) -> None:
        for kernel, operands in self._pending:
            self.plan.add(kernel, self._tokens, **operands)
        self._pending.clear()

    def _rms_norm(
        self, x: Rows, out: Rows, weight: str, n: int, extent: Extent, *, epsilon: float | None = None
    ) -> None:
        """out = x normalised in parts of `n` values, also rounded where `out` is. `epsilon`: None: the model's."""
        epsilon = self.hyper.norm_epsilon if epsilon is None else epsilon
        self._rms_norm_by(x, out, self.weights.vector(weight, n).address, n, extent, epsilon)
        self._quantise(out, extent)

    def _rms_norm_by(self, x: Rows, out: Rows, weight: int, n: int, extent: Extent, epsilon: float) -> None:
        parts = {"x": x.address, "weight": weight, "out": out.address, "n": n, "n_parts": x.n // n}
        self.plan.add("rms_norm", extent, **parts, stride=x.stride, eps=epsilon)

    def _quantise(self, x: Rows, extent: Extent) -> None:
        if x.rounded:
            self.plan.add(
                "quantise",
                extent,
                x=x.address,
                x_stride=x.stride,
                out=x.rounded,
                out_stride=x.rounded_stride,
                n_inputs=x.n,
            )

    def _open_gate(self, x: Rows, gate: Rows, *, is_silu: bool = False) -> None:
        """x *= sigmoid(gate), or silu(gate), and rounded (again)."""
        operands = {"x": x.address, "x_stride": x.stride, "gate": gate.address, "gate_stride": gate.stride}
        self.plan.add("open_gate", self._tokens, n=x.n, is_silu=int(is_silu), **operands)
        self._quantise(x, self._tokens)

    def add_to_residual(self, y: Rows) -> None:
        """x += y, carried out at the start of the next norm."""
        self._pending.append(("add", self._add_operands(y)))

    def _add_operands(self, y: Rows) -> dict[str, float]:
        return {
            "x": self.x.address,
            "y": y.address,
            "stride": self.x.stride,
            "n": self.hyper.n_embedding,
            "scale": self.residual_scale,
        }

    def linear(
        self,
        x: Rows,
        weight: str,
        n_rows: int,
        out: str,
        *,
        bias: str | int | None = None,
        extent: Extent | None = None,
        strips: tuple[Strips, ...] = (),
    ) -> Rows:
        """out = W x (+ bias), in the stage that is open. `strips`: which rows of the tensor `weight` W is.

        bias: the name of a tensor that a file may leave out, or an address.
        """
        matrix = self.weights.matrix(weight, n_rows, x.n, *strips)
        bias_address = bias if isinstance(bias, int) else self.weights.optional_vector(bias, n_rows) if bias else 0
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
        kernel = matmul_kernel(matrix.type_name, floats=not takes_rounded)
        n_together = self.hyper.top_k if items else 1  # experts whose chunks are there at once
        chunk_bytes = matrix.n_bytes * n_together // (self._n_workers * _CHUNKS_PER_WORKER)
        most = max(_MOST_CHUNK_BYTES, _SHARING_GROUPS * matrix.group_bytes)
        chunk_bytes = min(max(chunk_bytes, _LEAST_CHUNK_BYTES), most)
        groups_per_chunk = min(max(1, chunk_bytes // matrix.group_bytes), matrix.n_groups)
        row_chunks = -(-matrix.n_groups // groups_per_chunk)
        unit = 1 if items else TOKEN_TILE
        x_stride = x.rounded_stride if takes_rounded else x.stride
        self.need_scratch(MATMUL_SCRATCH_BYTES)
        n_matrices = self.hyper.n_experts if items else 1
        self.observed.add_to(self.plan, matrix, x, extent, self.batch.one, items=items, n_matrices=n_matrices)
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
            out=out.address,
            out_stride=out.stride,
            bias=bias,
            extent=extent.cell,
            unit=unit,
            items=items,
        )

    def feed_forward(self, prefix: str, n_feed_forward: int, *, norm: str = "ffn_norm", is_fused: bool = False) -> None:
        """A dense gated feed-forward network, with its norm. `is_fused`: ffn_up holds the gate's rows, then its own."""
        if not self.builds(prefix):
            return
        x = self.norm(f"{prefix}{norm}.weight")
        with self.plan.side_by_side("feed forward"):
            gate, up = self._gate_up(x, prefix, "", n_feed_forward, is_fused=is_fused)
        with self.plan.side_by_side("feed forward"):
            self._swiglu(gate, up, self._tokens)
        with self.plan.side_by_side("feed forward"):
            down = self.linear(gate, f"{prefix}ffn_down.weight", self.hyper.n_embedding, "projected")
        self.add_to_residual(down)

    def _gate_up(self, x: Rows, prefix: str, suffix: str, n: int, *, is_fused: bool = False) -> tuple[Rows, Rows]:
        label = suffix or " dense"
        up_name = f"{prefix}ffn_up{suffix}.weight"
        gate_name = up_name if is_fused else f"{prefix}ffn_gate{suffix}.weight"
        first, second = ((Strips(2 * n, 0, n),), (Strips(2 * n, n, n),)) if is_fused else ((), ())
        self.linear(x, gate_name, n, f"gate{label}", strips=first)
        up = self.linear(x, up_name, n, f"up{label}", strips=second)
        return self.rows(f"gate{label}", n, rounded=True), up

    def _swiglu(self, gate: Rows, up: Rows, rows: Extent) -> None:
        row_chunks = -(-gate.n // SWIGLU_COLUMNS)
        self.plan.add(
            "swiglu",
            Extent(rows.cell, rows.most, 1, row_chunks),
            gate=gate.address,
            up=up.address,
            stride=gate.stride,
            rounded=gate.rounded,
            rounded_stride=gate.rounded_stride,
            n_columns=gate.n,
            columns_per_chunk=SWIGLU_COLUMNS,
            row_chunks=row_chunks,
        )

    def output(self, *, norm: str = "output_norm.weight", scale: float = 1.0) -> None:
        """Final norm and logits times `scale`, of the rows that are asked for only."""
        hyper, n_outputs = self.hyper, self.batch.max_outputs
        if self._pending:
            with self.plan.in_sequence("norms"):
                self._add_pending()
        if not self._has_output:
            return
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
            self._norm(last, last, norm, wanted)
        name = "output.weight" if self.weights.has("output.weight") else "token_embd.weight"
        with self.plan.side_by_side("output"):
            self.logits = self.linear(last, name, self.n_vocab, "logits", bias="output.bias", extent=wanted)
        if scale != 1.0:
            with self.plan.in_sequence("output"):
                self._scale(self.logits, scale, wanted)
