"""Notes what a step of the engine does, from its beginning to its last token, into the ring of steps.

Between two tokens the caches are full of weights, so every object and every line of code that is touched here is
fetched anew: what can be told later, from what was noted, is left to who reads it.
"""

from __future__ import annotations

import time

from engine.model import Model
from engine.step_ring import StepRing

_TOKENS_AT_ONCE = 128  # rows for which a matrix product reads its weights once


class StepNotes:
    """The engine's thread calls these in order: begin, run_ended, chose for each answer, end."""

    def __init__(self, model: Model) -> None:
        self.ring = StepRing(model.n_workers, len(model.moe_layers), model.hyper.top_k)
        self._model, self._clock = model, model.clock
        self._ticks = model.ticks.data.cast("B")
        self._began_ns = self._sampling_ns = self._ttft_ns = 0
        self._before = model.expert_sums()

    def begin(self) -> None:
        """A step is about to be composed."""
        self._began_ns = time.perf_counter_ns()
        self._sampling_ns = self._ttft_ns = 0
        self.ring.begin(self._ticks)
        self._before = self._model.expert_sums()

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
        model, before, now = self._model, self._before, self._model.expert_sums()
        n_tokens = model.batch.n_tokens_now
        weight_bytes = model.matrix_bytes * -(-n_tokens // _TOKENS_AT_ONCE) + now.bytes_used - before.bytes_used
        if model.batch.n_outputs_now:
            weight_bytes += model.output_bytes
        ahead, ahead_before = now.foresight, before.foresight
        head = (
            self._began_ns,
            time.perf_counter_ns() - self._began_ns,
            n_tokens,
            n_prompt,
            n_answered,
            now.disk_ns - before.disk_ns,
            self._sampling_ns,
            now.calls - before.calls,
            now.used - before.used,
            now.loads - before.loads,
            now.evictions - before.evictions,
            now.bytes_read - before.bytes_read,
            ahead.foreseeable - ahead_before.foreseeable,
            ahead.foreseen - ahead_before.foreseen,
            ahead.asked - ahead_before.asked,
            ahead.used - ahead_before.used,
            ahead.unused - ahead_before.unused,
            ahead.asked_bytes - ahead_before.asked_bytes,
            weight_bytes,
            kv_tokens,
            n_sequences,
            self._ttft_ns,
        )
        self.ring.end(self._ticks, head, model.last_experts)
