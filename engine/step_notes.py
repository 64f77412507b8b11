"""Notes what a step of the engine does, from its beginning to its last token, into the ring of steps."""

from __future__ import annotations

import time

import numpy as np

from engine.model import Model
from engine.step_ring import StepRing

_TOKENS_AT_ONCE = 128  # rows for which a matrix product reads its weights once


class StepNotes:
    """The engine's thread calls these in order: begin, run_ended, chose for each answer, end."""

    def __init__(self, model: Model) -> None:
        self.ring = StepRing(model.n_workers, len(model.moe_layers), model.hyper.top_k)
        self._model, self._clock = model, model.clock
        self._slab_bytes = np.array([layer.experts.slab_bytes for layer in model.layers], np.int64)
        self._began_ns = self._sampling_ns = self._ttft_ns = 0
        self._before = (0, 0, 0, 0, 0, 0)

    def begin(self) -> None:
        """A step is about to be composed."""
        self._began_ns = time.perf_counter_ns()
        self._sampling_ns = self._ttft_ns = 0
        self._model.note_into(self.ring.open_row())
        self._before = self._sums()

    def run_ended(self) -> None:
        """The plan has been executed."""
        self._clock.note_now_and_then(self._model.tick)

    def chose(self, began_ns: int) -> None:
        """A token has been sampled; that was begun at `began_ns`."""
        self._sampling_ns += time.perf_counter_ns() - began_ns

    def first_token(self, added_ns: int) -> None:
        """A request that was added at `added_ns` has its first token now."""
        self._ttft_ns = time.perf_counter_ns() - added_ns

    def end(self, n_prompt: int, n_answered: int, n_sequences: int, kv_tokens: int) -> None:
        """The step's results are known."""
        model = self._model
        n_tokens = model.batch.n_tokens_now
        calls, loads, evictions, n_bytes, disk_ns, run_ns = (
            now - before for now, before in zip(self._sums(), self._before, strict=True)
        )
        used = model.experts_used()
        weight_bytes = (
            model.matrix_bytes * -(-n_tokens // _TOKENS_AT_ONCE)
            + (model.output_bytes if model.batch.n_outputs_now else 0)
            + int(used @ self._slab_bytes)
        )
        now_ns = time.perf_counter_ns()
        wall_ns = now_ns - self._began_ns
        head = (
            self._began_ns,
            wall_ns,
            n_tokens,
            n_prompt,
            n_answered,
            run_ns,
            disk_ns,
            self._sampling_ns,
            wall_ns - run_ns - disk_ns - self._sampling_ns,
            calls,
            int(used.sum()),
            loads,
            evictions,
            n_bytes,
            weight_bytes,
            kv_tokens,
            n_sequences,
            self._ttft_ns,
        )
        self.ring.close_row(head, model.last_experts)
        model.note_into(0)

    def _sums(self) -> tuple[int, int, int, int, int, int]:
        model, store = self._model, self._model.store
        return (
            int(model.expert_counts.sum()),
            store.n_loads,
            store.n_evictions,
            store.bytes_read,
            model.disk_ns,
            model.walked_ns,
        )
