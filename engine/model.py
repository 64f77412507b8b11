"""Everything that a model becomes when it is opened: its plan, its memory, its weights, the team that runs it."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine import sampling, team
from engine.batch import Batch
from engine.config import EngineConfig, ModelInfo
from engine.errors import InvalidRequestError
from engine.experts.foresight import Foresight, ForesightSums
from engine.experts.store import ExpertStore
from engine.experts.victims import Victims
from engine.gguf import GGUFReader
from engine.hardware.cpu import usable_cores
from engine.kernels.layout import PAGE
from engine.kernels.library import KernelLibrary, Progress
from engine.kernels.notes import kind_number
from engine.kv import PagePool
from engine.loader import Loader
from engine.loading import Loading
from engine.memory import Buffer, Memory, MemoryPlan, give_back, view
from engine.models import architecture
from engine.models.builder import Builder
from engine.models.hyperparameters import Hyperparameters
from engine.models.keys import Keys
from engine.models.mixture import N_FORESIGHT_SUMS
from engine.models.parts import Setting
from engine.models.weights import Weights
from engine.models.workspace import Rows
from engine.plan import Plan
from engine.recommended_sampling import recommended_sampling
from engine.states import StatePool
from engine.team import Team
from engine.telemetry import Clock
from engine.tokenizer import tokenizer
from engine.verify import Limits, verify

_log = logging.getLogger(__name__)
_READ_AHEAD_BYTES = 8 << 20  # of experts at once: some milliseconds
_SCATTERED_TOKENS = 64  # so many rows of the embedding bring a good part of it into memory, 64 KB around each
_KEPT_STATES = 8  # recurrent states kept for later, at least


@dataclass(slots=True)
class _Parts:
    """What building yields, against real memory or only measured."""

    builder: Builder
    batch: Batch
    store: ExpertStore
    kv_address: int
    n_pages: int
    page_bytes: int
    states: StatePool | None
    scratch_address: int
    weights: Weights
    logits: Rows | None


def _build(
    reader: GGUFReader,
    hyper: Hyperparameters,
    keys: Keys,
    config: EngineConfig,
    n_workers: int,
    library: KernelLibrary,
    memory: Memory,
    *,
    foresees: bool = False,
) -> _Parts:
    weights = Weights(reader, memory)
    max_outputs = max(config.max_sequences, config.logits_rows)
    batch = Batch(memory, config.max_batch_tokens, config.max_sequences, max_outputs, config.context_length)
    builder = Builder(Setting(hyper, weights, memory, library, config, batch, n_workers, foresees))
    architecture(keys.architecture)(builder, keys)
    if config.layers is None:
        weights.refuse_unused(hyper.n_layers)
    page_bytes = builder.page_bytes
    n_pages = -(-(config.kv_pool_tokens or 2 * config.context_length) // PAGE)
    kv = memory.allocate("KV pages", n_pages * page_bytes, "kv")
    states = None
    if builder.state_bytes:
        n_states = 1 + 2 * config.max_sequences + _KEPT_STATES
        address = memory.allocate("recurrent states", n_states * builder.state_bytes, "kv").address
        states = StatePool(n_states, address, builder.state_bytes)
    scratch = memory.allocate("scratch", builder.scratch_bytes * n_workers, "buffers")
    shape = (len(builder.moe_layers), hyper.n_experts)
    counts, last_used = (view(buffer, np.int64, shape) for buffer in (builder.counts, builder.last_used))
    capacity, victims = _expert_capacity(builder, config), Victims(config.cache_policy, last_used, counts)
    store = ExpertStore(builder.moe_layers, hyper.n_experts, capacity, memory, victims, reader.require_whole)
    return _Parts(
        builder, batch, store, kv.address, n_pages, page_bytes, states, scratch.address, weights, builder.logits
    )


def measure_memory(path: Path, config: EngineConfig, library: KernelLibrary) -> MemoryPlan:
    """What opening the model with `config` would take, by the same code that opens it. Reads its header only.

    Raises ModelFormatError, UnsupportedModelError, InvalidRequestError.
    """
    with GGUFReader.open(path) as reader:
        keys = Keys(reader.metadata)
        architecture(keys.architecture)
        hyper = Hyperparameters.read(keys)
        n_workers = config.threads or usable_cores()
        config = _bounded(config, hyper)
        return _build_fitting(reader, hyper, keys, config, n_workers, library, measure_only=True)[2].plan()


def _build_fitting(
    reader: GGUFReader,
    hyper: Hyperparameters,
    keys: Keys,
    config: EngineConfig,
    n_workers: int,
    library: KernelLibrary,
    *,
    measure_only: bool = False,
) -> tuple[_Parts, EngineConfig, Memory]:
    """Builds; where not all experts may stay in memory, once more with what that takes."""
    memory = Memory(measure_only=measure_only)
    parts = _build(reader, hyper, keys, config, n_workers, library, memory)
    n_moe_layers, capacity = len(parts.builder.moe_layers), parts.store.capacity
    if capacity == n_moe_layers * hyper.n_experts:
        return parts, config, memory
    if capacity < hyper.n_experts:  # a step must not need more experts of a layer than the cache holds
        config = replace(config, max_batch_tokens=max(1, min(config.max_batch_tokens, capacity // hyper.top_k)))
    observes = config.measures_inputs or config.keeps_inputs
    foresees = config.prefetch != "never" and n_moe_layers > 1 and not observes
    memory.close()
    memory = Memory(measure_only=measure_only)
    parts = _build(reader, hyper, keys, config, n_workers, library, memory, foresees=foresees)
    return parts, config, memory


def _expert_capacity(builder: Builder, config: EngineConfig) -> int:
    """How many experts may be in memory at once: all, unless the configuration limits their number or bytes."""
    capacity = len(builder.moe_layers) * builder.hyper.n_experts
    if capacity and config.expert_cache_experts is not None:
        capacity = min(capacity, config.expert_cache_experts)
    if capacity and config.expert_cache_bytes is not None:
        slab_bytes = max(layer.experts.slab_bytes for layer in builder.moe_layers)
        capacity = min(capacity, config.expert_cache_bytes // slab_bytes)
    if builder.moe_layers and capacity < builder.hyper.top_k:
        raise InvalidRequestError(
            f"The expert cache would hold {capacity} experts, but each token needs {builder.hyper.top_k} at once. "
            "Raise expert_cache_experts or expert_cache_bytes."
        )
    return capacity


class ExpertSums(NamedTuple):
    """Sums over all layers."""

    calls: int  # of (token, choice) pairs
    used: int  # different experts of a run
    bytes_used: int  # of their weights
    loads: int
    evictions: int
    bytes_read: int
    disk_ns: int  # loading
    foresight: ForesightSums


class Model:
    """An opened model: `run` executes its plan for the batch that has been filled."""

    def __init__(
        self, path: Path, config: EngineConfig, library: KernelLibrary, progress: Progress | None = None
    ) -> None:
        """`progress`: kernel name, fraction, while kernels are compiled that this model is the first to need.

        Raises ModelFormatError, UnsupportedModelError, OutOfMemoryPlanError, PlanError, KernelBuildError.
        """
        self.reader = GGUFReader.open(path)
        self.library = library
        self.memory = Memory()
        self._team: Team | None = None
        self._loading: Loading | None = None
        try:
            self._open(config, library, progress)
        except BaseException:
            self.close()
            raise

    def _open(self, config: EngineConfig, library: KernelLibrary, progress: Progress | None) -> None:
        keys = Keys(self.reader.metadata)
        architecture(keys.architecture)  # refuse an unknown one before its keys are looked at
        self.hyper = _with_top_k(Hyperparameters.read(keys), config.top_k)
        config, n_workers = _bounded(config, self.hyper), config.threads or usable_cores()
        parts, config, self.memory = _build_fitting(self.reader, self.hyper, keys, config, n_workers, library)
        self.memory.commit()
        library.require(_kernels(parts), progress)
        parts.batch.write_one()
        self.config = config
        self.batch, self.plan, self.store, self.logits = parts.batch, parts.builder.plan, parts.store, parts.logits
        self.pool = PagePool(parts.n_pages, parts.kv_address, parts.page_bytes)
        self.states, self.residual = parts.states, parts.builder.x
        self._tables = parts.weights.tables
        self.n_vocab = parts.builder.n_vocab
        self.observed = parts.builder.observed
        self.long_from = parts.builder.long_from
        self.info = self._describe(keys, parts.builder, library)
        self.plan.finish()
        self._team = Team(library, n_workers, parts.scratch_address, parts.builder.scratch_bytes)
        self.clock = Clock()
        self.clock.note(self._team.tick)
        self._loader = Loader(library, self._team, self.batch.one)
        self._moe_stages = {layer.stage: i for i, layer in enumerate(parts.builder.moe_layers)}
        self.chosen_experts, self.expert_weights = parts.builder.routes()
        shape = (len(parts.builder.moe_layers), self.hyper.n_experts)
        self.expert_counts = view(parts.builder.counts, np.int64, shape)
        self.last_experts = view(parts.builder.newest, np.int32, (shape[0], self.hyper.top_k))
        self.layers = parts.builder.moe_layers
        self.moe_layers = [layer.layer for layer in self.layers]
        self._expert_sums = view(parts.builder.sums, np.int64, (3,)).data
        self.n_workers, self.ticks, self._disk_ns = n_workers, self._team.notes, 0
        self.matrix_bytes, self.output_bytes = _matrix_bytes(self.plan, self.batch.n_foreseen)
        self.limits = self._limits(parts)
        self._loading = Loading(self._loader, parts.weights.packings, self._fill)
        verify(self.plan, self.memory, self.limits)
        sums = parts.builder.foresight_sums
        self._foresight = Foresight(config.prefetch, view(sums, np.int64, (N_FORESIGHT_SUMS,)).data if sums else None)

    def _fill(self) -> None:
        self.memory.fill()
        if self._team:
            self.clock.note(self._team.tick)

    @property
    def loaded_fraction(self) -> float:
        """How much of the resident weights is packed; 1.0: nothing need be waited for."""
        return self._loading.fraction if self._loading else 1.0

    def wait_until_loaded(self, seconds: float | None = None) -> bool:
        """Whether all resident weights are packed, after at most `seconds`; only then may anything be run."""
        if self._loading and self._loading.wait(seconds):
            self._loading = None
        return self._loading is None

    def _limits(self, parts: _Parts) -> Limits:
        batch = parts.batch
        return Limits(
            max_tokens=self.config.max_batch_tokens,
            max_pairs=self.config.max_batch_tokens * self.hyper.top_k,
            max_sequences=self.config.max_sequences,
            max_outputs=batch.max_outputs,
            context_length=self.config.context_length,
            slab_bytes=parts.store.slab_bytes,
            page_bytes=parts.page_bytes,
            n_vocab=self.n_vocab,
            state_bytes=parts.builder.state_bytes,
            n_rope_rows=self.config.context_length * (2 if parts.builder.long_from else 1),
            scratch_bytes=parts.builder.scratch_bytes,
            cells={
                "n_tokens": batch.n_tokens,
                "n_outputs": batch.n_outputs,
                "one": batch.one,
                "n_foreseen": batch.n_foreseen,
            },
            arrays={
                "tokens": batch.tokens,
                "positions": batch.positions,
                "rope_rows": batch.rope_rows,
                "sequences": batch.sequences,
                "rows": batch.output_rows,
                "pages": batch.pages,
                "old_states": batch.old_states,
                "new_states": batch.new_states,
            },
        )

    def run(self) -> bool:
        """Execute the plan for the batch, loading experts as they turn out to be needed.

        False when it was interrupted (`batch.interrupt_flag`): then nothing counts as done.
        """
        assert self._team is not None
        self.wait_until_loaded()
        self._foresee()
        stage = self._team.run(self.plan)
        while stage >= 0:
            if stage not in self._moe_stages:
                self.batch.interrupt_flag[0] = 0
                self._take_counts_back(stage)
                return False
            began_ns, index = time.perf_counter_ns(), self._moe_stages[stage]
            self.store.load(index, self._choices(index), self._loader)
            self._disk_ns += time.perf_counter_ns() - began_ns
            stage = self._team.run(self.plan, stage)
        if self.batch.n_tokens_now >= _SCATTERED_TOKENS:
            for address, n_bytes in self._tables:
                give_back(address, n_bytes)
        return True

    def read_ahead(self) -> bool:
        """Load a few experts that no run has asked for yet; False when no more of them fit, or none are left."""
        return self.wait_until_loaded(0) and self.store.read_ahead(_READ_AHEAD_BYTES, self._loader)

    def _foresee(self) -> None:
        """Let the run that is about to begin ask for experts ahead, where that is of use."""
        if self._foresight.is_possible:
            self.store.asks_disk = self._foresight.reads_disk()
            self.batch.foresee(self._foresight.is_of_use(self.store.asks_disk))

    def _choices(self, index: int) -> np.ndarray[Any, Any]:
        """The experts that the newest run's tokens chose in the MoE layer `index`."""
        choices: np.ndarray[Any, Any] = self.chosen_experts[index, : self.batch.n_tokens_now * self.hyper.top_k]
        return choices

    def _take_counts_back(self, last_stage: int) -> None:
        """Let the calls not count that a run has counted which ended with `last_stage`."""
        for stage, index in self._moe_stages.items():
            if stage <= last_stage:
                self.expert_counts[index] -= np.bincount(self._choices(index), minlength=self.hyper.n_experts)

    def set_states(self, slot: int, state: int, next_state: int) -> None:
        """Rows of the recurrent state that the sequence in `slot` comes with, and of the one that the run leaves."""
        if self.states:
            self.batch.set_states(slot, self.states.address(state), self.states.address(next_state))

    def release_state(self, state: int) -> None:
        if self.states:
            self.states.release(state)

    def forget_all(self) -> None:
        """Make nothing of finished conversations findable any more."""
        self.pool.forget_all()
        if self.states:
            self.states.forget_all()

    def first_rope_row(self, is_long: bool) -> int:
        """The row of the rope table for position 0 of a sequence that is, or is not, longer than `long_from`."""
        return self.config.context_length if is_long else 0

    def tick(self) -> int:
        """The time-stamp counter now."""
        return self._team.tick() if self._team else 0

    def ticks_by_kind(self) -> dict[str, int]:
        """What the stages of each kind in the plan have taken since the model was opened."""
        kinds = {kind_number(stage.kind): stage.kind for stage in self.plan.stages}
        return {kind: int(self.ticks[:, 0, number].sum()) for number, kind in kinds.items()}

    def expert_sums(self) -> ExpertSums:
        """What experts have done since the model was opened."""
        store, (calls, used, bytes_used) = self.store, self._expert_sums.tolist()
        loaded = (store.n_loads, store.n_evictions, store.bytes_read, self._disk_ns)
        return ExpertSums(calls, used, bytes_used, *loaded, self._foresight.sums)

    def logits_address(self, row: int) -> int:
        logits = self._has_logits
        return logits.address + row * logits.stride

    def logits_rows(self, n: int) -> np.ndarray[Any, Any]:
        """A copy of the first `n` rows of logits of the newest run, (n, n_vocab) float32."""
        return self._logits_view(n)[:, : self.n_vocab].copy()

    def residual_rows(self, n: int) -> np.ndarray[Any, Any]:
        """The first `n` rows of the residual stream, (n, n_embedding) float32: what a plan of some layers begins with,
        and what it ends with."""
        return _rows_view("residual", self.residual, n)[:, : self.hyper.n_embedding]

    def _logits_view(self, n: int) -> np.ndarray[Any, Any]:
        return _rows_view("logits", self._has_logits, n)

    @property
    def _has_logits(self) -> Rows:
        assert self.logits is not None, "a model of some layers alone has no logits"
        return self.logits

    def routes(self, n_tokens: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Copies of the newest run's experts and weights, each (n_moe_layers, n_tokens, top_k)."""
        n_layers, n_choices = len(self.moe_layers), n_tokens * self.hyper.top_k
        shape = (n_layers, n_tokens, self.hyper.top_k)
        chosen, weights = self.chosen_experts[:, :n_choices], self.expert_weights[:, :n_choices]
        return chosen.copy().reshape(shape), weights.copy().reshape(shape)

    def memory_plan(self) -> MemoryPlan:
        return self.memory.plan()

    def close(self) -> None:
        """Stop the team and give all memory back."""
        if self._loading is not None:
            self._loading.close()
            self._loading = None
        if self._team is not None:
            self._team.close()
            self._team = None
        self.memory.close()
        self.reader.close()

    def _describe(self, keys: Keys, builder: Builder, library: KernelLibrary) -> ModelInfo:
        metadata, tensors = self.reader.metadata, self.reader.tensors.values()
        sizes: Counter[str] = Counter()
        for tensor in tensors:
            if len(tensor.shape) > 1:
                sizes[tensor.type.name] += tensor.n_bytes
        path, name, licence = self.reader.paths[0], metadata.get("general.name"), metadata.get("general.license")
        n_parameters = sum(math.prod(tensor.shape) for tensor in tensors)
        return ModelInfo(
            path=path,
            name=name if isinstance(name, str) and name else path.stem,
            architecture=keys.architecture,
            type_name=sizes.most_common(1)[0][0],
            licence=licence if isinstance(licence, str) else None,
            file_bytes=self.reader.file_bytes,
            n_parameters=n_parameters,
            n_layers=self.hyper.n_layers,
            n_embedding=self.hyper.n_embedding,
            n_vocab=builder.n_vocab,
            training_context=self.hyper.training_context,
            n_moe_layers=len(builder.moe_layers),
            n_experts=self.hyper.n_experts,
            top_k=self.hyper.top_k,
            tier=library.tier.name,
            sampling=recommended_sampling(metadata, n_parameters),
        )


def _rows_view(name: str, rows: Rows, n: int) -> np.ndarray[Any, Any]:
    return view(Buffer(name, rows.address, n * rows.stride), np.float32, (n, rows.stride // 4))


def _kernels(parts: _Parts) -> set[str]:
    """All that opening the model and answering with it calls."""
    names = {operation.kernel for stage in parts.builder.plan.stages for operation in stage.operations}
    matrices = [packing.matrix for packing in parts.weights.packings]
    for layer in parts.builder.moe_layers:
        matrices += layer.experts.gate, layer.experts.up, layer.experts.down
    names |= {f"repack_{matrix.type_name}" for matrix in matrices}
    return names.union(team.KERNELS, tokenizer.KERNELS, sampling.KERNELS)


def _matrix_bytes(plan: Plan, n_foreseen: int) -> tuple[int, int]:
    """Bytes of all resident matrices of a plan that every token is multiplied with, and of the output's.

    The routers that are read a second time, for as many tokens as the cell `n_foreseen` says, are not counted again.
    """
    n_bytes = {True: 0, False: 0}
    for stage in plan.stages:
        for operation in stage.operations:
            operands = operation.operands
            is_resident = operation.kernel.startswith("matmul_") and not operands["items"]
            if is_resident and operation.extent.cell != n_foreseen:
                n_bytes[stage.kind == "output"] += int(operands["n_groups"] * operands["group_bytes"])
    return n_bytes[False], n_bytes[True]


def _with_top_k(hyper: Hyperparameters, top_k: int | None) -> Hyperparameters:
    if top_k is None:
        return hyper
    if top_k > hyper.n_experts:
        raise InvalidRequestError(f"top_k is {top_k}, but this model has {hyper.n_experts or 'no'} experts.")
    return replace(hyper, top_k=top_k)


def _bounded(config: EngineConfig, hyper: Hyperparameters) -> EngineConfig:
    """The configuration with the context no longer than the model was trained for."""
    if config.context_length <= hyper.training_context:
        return config
    _log.warning("context %d is more than the model's %d, which is used", config.context_length, hyper.training_context)
    return replace(config, context_length=hyper.training_context)
