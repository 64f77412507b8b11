"""The engine: opens a model, takes requests, advances all of them step by step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping
from collections.abc import Sequence as SequenceOf
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from engine.chat import AnswerParser
from engine.chat.chat_prompts import ChatPrompts
from engine.config import EngineConfig, ModelInfo
from engine.constraint import Constraint, Constraints
from engine.errors import (
    ConstraintError,
    ContextLengthError,
    EngineClosedError,
    InvalidRequestError,
    ModelFormatError,
    NumericalError,
)
from engine.kernels.layout import PAGE
from engine.kernels.library import load_library
from engine.kernels.tiers import choose_tier
from engine.memory import MemoryPlan
from engine.model import Model
from engine.models.observed import InputSums
from engine.passage import read_passage
from engine.request import Delta, Request
from engine.sampling import Sampler, SamplingParams
from engine.scheduler import Scheduler, Sequence, Share
from engine.step_notes import StepNotes
from engine.telemetry import Stats, Telemetry
from engine.tokenizer import ChatTemplate, Tokenizer

Array = np.ndarray[Any, Any]
Progress = Callable[[str, float], None]
_CLOSED = "This engine has been closed; open the model again."
_REPORT_SECONDS = 0.05  # between two looks at how far the loading is
_STEP_SECONDS = 4.0  # a step that reads a prompt should not take longer, so that its progress is seen
_LEAST_STEP_TOKENS = 256  # but below this experts get too few rows each: half the speed at 32


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A text's run through the model."""

    logits: Array  # (n_tokens, n_vocab) float32
    experts: Array  # (n_moe_layers, n_tokens, top_k) int32, by falling weight
    expert_weights: Array  # the same shape, float32: what the experts' outputs are multiplied with


class Engine:
    """One model, ready to answer. One thread calls it; others may read `telemetry` and call `interrupt`."""

    def __init__(self, model: Model) -> None:
        """Use `Engine.open`."""
        self._model: Model | None = model
        self.config: EngineConfig = model.config
        self.info: ModelInfo = model.info
        self.memory: MemoryPlan = model.memory_plan()
        self.tokenizer = Tokenizer.from_metadata(model.reader.metadata, model.library)
        if self.tokenizer.n_vocab != model.n_vocab:
            raise ModelFormatError(
                f"The vocabulary has {self.tokenizer.n_vocab} tokens, but the tensor token_embd.weight has "
                f"{model.n_vocab} rows. The file was put together wrongly: fetch or convert it again."
            )
        self.chat_template = ChatTemplate.from_metadata(model.reader.metadata, self.tokenizer)
        self._constraints = Constraints(self.tokenizer)
        self.chat_prompts = ChatPrompts(self.chat_template, self.tokenizer)
        self._clock, self._n_steps = model.clock, 0
        self._notes = StepNotes(model)
        self.telemetry = Telemetry(
            model.moe_layers,
            model.expert_counts,
            model.last_experts,
            ring=self._notes.ring,
            clock=self._clock,
            slots=model.store.slots,
            slab_bytes=[layer.experts.slab_bytes for layer in model.layers],
            kv_capacity_tokens=model.pool.n_pages * PAGE,
        )
        self._scheduler = Scheduler(
            model.pool, self.config.max_batch_tokens, self.config.max_sequences, model.long_from, model.states
        )
        self._interrupt_flag = model.batch.interrupt_flag
        self._requests: dict[int, Request] = {}
        self._preparing: dict[int, Future[Constraint]] = {}  # requests that wait for what holds them to their forms
        self._pending: list[Delta] = []  # not yet handed out
        self._ids = count(1)
        self._added_ns: dict[int, int] = {}  # when each request came that has no token yet
        self._n_prompt = self._n_reused = self._n_completion = 0
        self._prefill_s = self._decode_s = 0.0

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], config: EngineConfig | None = None, *, progress: Progress | None = None
    ) -> Engine:
        """Open the GGUF file at `path`. `progress("kernels", fraction)` is called where some must be compiled first.

        Requests may be added at once. Meanwhile the team packs the resident weights, which the first step waits for:
        see `load`. Raises ModelFormatError, UnsupportedModelError, OutOfMemoryPlanError, PlanError, TokenizerError,
        KernelBuildError.
        """
        config = config or EngineConfig()
        tell = progress or (lambda _phase, _fraction: None)
        library = load_library(choose_tier(config.tier))
        model = Model(Path(path), config, library, lambda _name, fraction: tell("kernels", fraction))
        try:
            return cls(model)
        except BaseException:
            model.close()
            raise

    def load(self, progress: Progress | None = None) -> None:
        """Wait until the resident weights are packed; `progress("weights", fraction)` hears of it, now and then.

        Nobody needs to call this: it is for who shows how far it is, or measures.
        """
        model, is_loaded = self._open_model, False
        while not is_loaded:
            is_loaded = model.wait_until_loaded(_REPORT_SECONDS if progress else None)
            if progress:
                progress("weights", model.loaded_fraction)

    def read_ahead(self) -> bool:
        """Load a few experts that no token has needed yet, as far as the cache has room; False when that is over.

        For who has nothing else to do: a first prompt then need not wait for them. Takes some milliseconds, where they
        come from a disk as long as that takes.
        """
        return self._open_model.read_ahead()

    # Requests -----------------------------------------------------------------------------------------------------

    def add(
        self, prompt_ids: list[int], params: SamplingParams | None = None, parser: AnswerParser | None = None
    ) -> int:
        """Queue a prompt; its deltas come from `step` under the number returned. `parser`: see `chat_prompts`.

        Raises ContextLengthError when the prompt leaves no room for an answer, InvalidRequestError for bad tokens.
        """
        model, params = self._open_model, params or SamplingParams()
        self._check_prompt(prompt_ids)
        sequence = Sequence(next(self._ids), list(prompt_ids), len(prompt_ids))
        sampler = Sampler(model.library, params, model.n_vocab, sequence.tokens)
        request = Request(sequence, params, sampler, self.tokenizer, self.config.context_length, parser)
        if params.output_format is None:
            self._scheduler.add(sequence)
        else:
            self._preparing[request.id] = self._constraints.begin(params.output_format)
        self._requests[request.id] = request
        self._added_ns[request.id] = time.perf_counter_ns()
        return request.id

    def cancel(self, request_id: int) -> None:
        """End a request; the next step brings its last delta. Unknown and finished requests are ignored."""
        request = self._requests.get(request_id)
        if request is not None:
            self._pending += request.end("cancelled")
            self._forget(request)

    def interrupt(self) -> None:
        """End the step under way early, with nothing done; it is begun anew by the next. May be called by any thread.

        For a cancellation that should not wait until a long prompt's step is over.
        """
        self._interrupt_flag[0] = 1

    @property
    def has_work(self) -> bool:
        return bool(self._requests or self._pending)

    def step(self) -> list[Delta]:
        """Advance every request that can be; [] when there is nothing to do, or while weights are being packed."""
        if self._model is None:
            raise EngineClosedError(_CLOSED)
        if self._preparing:
            self._begin_prepared()
        deltas, self._pending = self._pending, []
        if self._requests and not self._model.wait_until_loaded(_REPORT_SECONDS):
            return deltas
        began = time.perf_counter()
        self._notes.begin()
        shares = self._scheduler.compose()
        if not shares:
            if self._preparing and not deltas:
                wait(self._preparing.values(), _REPORT_SECONDS, FIRST_COMPLETED)
            return deltas
        rows = self._run(shares)
        if rows is None:
            return deltas
        n_prompt, n_answered = 0, self._n_completion
        for share, row in zip(shares, rows, strict=True):
            self._scheduler.computed(share)
            request = self._requests[share.sequence.request_id]
            if not (share.n_tokens == 1 and share.wants_logits and request.n_completion):
                n_prompt += share.n_tokens
            deltas += self._advance(request, share, row)
        self._account(time.perf_counter() - began, n_prompt)
        self._notes.end(n_prompt, self._n_completion - n_answered, len(shares), self._kv_tokens)
        return deltas

    def chat(
        self,
        messages: SequenceOf[Mapping[str, Any]],
        params: SamplingParams | None = None,
        *,
        tools: SequenceOf[Any] | None = None,
        **variables: Any,
    ) -> Generator[Delta, None, None]:
        """`generate` for the next message of a conversation, its reasoning and calls told apart.

        The arguments and what is raised are those of `ChatPrompts.prompt`.
        """
        prompt = self.chat_prompts.prompt(messages, tools=tools, **variables)
        return self.generate(prompt.ids, params, prompt.parser)

    def generate(
        self, prompt_ids: list[int], params: SamplingParams | None = None, parser: AnswerParser | None = None
    ) -> Generator[Delta, None, None]:
        """The deltas of one request, from the first piece of its prompt to its end. Closing the iterator cancels.

        Several such iterators may be open at once; each advances all requests and gives out the deltas of its own.
        """
        request_id = self.add(prompt_ids, params, parser)
        finished = False
        try:
            while not finished:
                deltas = self._deltas_of(request_id)
                for delta in deltas:
                    finished = delta.finish_reason is not None
                    yield delta
                if not deltas and request_id not in self._requests:
                    return  # whoever called `step` has had the last delta
        finally:
            if not finished and self._model is not None:
                self.cancel(request_id)
                self._pending = [delta for delta in self._pending if delta.request_id != request_id]

    def _deltas_of(self, request_id: int) -> list[Delta]:
        """Those that wait for this request, else those of one more step; the others' are kept for them."""
        if any(delta.request_id == request_id for delta in self._pending):
            deltas, self._pending = self._pending, []
        else:
            deltas = self.step()
        self._pending += [delta for delta in deltas if delta.request_id != request_id]
        return [delta for delta in deltas if delta.request_id == request_id]

    def logits(self, ids: list[int]) -> Array:
        """(n_tokens, n_vocab) float32: the logits after every position of `ids`. See `evaluate`."""
        return self.evaluate(ids).logits

    def evaluate(self, ids: list[int]) -> Evaluation:
        """Run a text through the model and keep everything: logits and routes of every position.

        Raises ContextLengthError, InvalidRequestError (also while requests are under way).
        """
        model = self._open_model
        self._check_prompt(ids)
        if self._requests:
            raise InvalidRequestError("evaluate() needs an engine without requests; finish or cancel them first.")
        step = min(self.config.max_batch_tokens, model.batch.max_outputs)
        pieces: list[tuple[Array, Array, Array]] = []
        for first, last in read_passage(model, ids, step, self._begin_step):
            pieces.append((model.logits_rows(last - first), *model.routes(last - first)))
        logits, experts, weights = zip(*pieces, strict=True)
        return Evaluation(np.concatenate(logits), np.concatenate(experts, 1), np.concatenate(weights, 1))

    def input_sums(self) -> dict[str, InputSums]:
        """Sums of squares of every matrix's inputs since the model was opened, by tensor (`measures_inputs`)."""
        return self._open_model.observed.sums()

    def kept_inputs(self, n_tokens: int) -> dict[str, Array]:
        """The newest step's inputs (n_tokens, n_inputs) of the matrices named by `keeps_inputs`."""
        return self._open_model.observed.kept(n_tokens)

    def reset_cache(self) -> None:
        """Forget the keys and values of all finished conversations."""
        self._open_model.forget_all()

    # State --------------------------------------------------------------------------------------------------------

    def stats(self) -> Stats:
        """Sums since the model was opened."""
        model, rate = self._open_model, self._clock.ticks_per_us
        pool, store = model.pool, model.store
        counts = model.expert_counts.copy()
        return Stats(
            prompt_tokens=self._n_prompt,
            reused_tokens=self._n_reused,
            completion_tokens=self._n_completion,
            expert_calls=int(counts.sum()),
            expert_counts=counts,
            prefill_ms=self._prefill_s * 1e3,
            decode_ms=self._decode_s * 1e3,
            times_us={kind: ticks / rate for kind, ticks in model.ticks_by_kind().items()},
            kv_used_tokens=self._kv_tokens,
            kv_total_tokens=pool.n_pages * PAGE,
            experts_resident=store.n_resident,
            experts_capacity=store.capacity,
            expert_loads=store.n_loads,
            expert_evictions=store.n_evictions,
            expert_bytes_read=store.bytes_read,
            foresight=model.expert_sums().foresight,
        )

    def close(self) -> None:
        """Stop the workers and give all memory back. Live telemetry must not be read afterwards."""
        if self._model is not None:
            self.telemetry = self.telemetry.detached()
            self._requests.clear()
            self._preparing.clear()
            self._pending.clear()
            self._constraints.close()
            self._model.close()
            self._model = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Inside a step ------------------------------------------------------------------------------------------------

    @property
    def _open_model(self) -> Model:
        if self._model is None:
            raise EngineClosedError(_CLOSED)
        return self._model

    def _check_prompt(self, ids: list[int]) -> None:
        context, n_vocab = self.config.context_length, self.info.n_vocab
        if not ids:
            raise InvalidRequestError("The prompt is empty; at least one token is needed.")
        if len(ids) >= context:
            raise ContextLengthError(
                f"The prompt has {len(ids)} tokens, but this conversation's context holds {context}, the answer "
                "included. Shorten the prompt, or open the model with a longer context."
            )
        if min(ids) < 0 or max(ids) >= n_vocab:
            raise InvalidRequestError(f"The prompt has a token outside of the vocabulary's 0 to {n_vocab - 1}.")

    def _begin_prepared(self) -> None:
        """Let the requests take part whose constraints have been made by now."""
        for request_id, making in list(self._preparing.items()):
            if not making.done():
                continue
            request = self._requests[request_id]
            try:
                request.constraint = making.result()
            except ConstraintError as error:
                self._pending += request.end("error", str(error))
                self._forget(request)
            else:
                del self._preparing[request_id]
                self._scheduler.add(request.sequence)

    def _begin_step(self) -> None:
        self._n_steps += 1
        self._open_model.batch.begin(self._n_steps)

    def _run(self, shares: list[Share]) -> list[int] | None:
        """Run the plan for `shares`; returns each share's row of logits (meaningless where none were wanted).

        None when the run was interrupted.
        """
        model = self._open_model
        self._begin_step()
        rows = []
        for share in shares:
            sequence = share.sequence
            if sequence.n_tabled < len(sequence.pages):
                new_pages = sequence.pages[sequence.n_tabled :]
                table = model.batch.page_table[sequence.slot]
                table[sequence.n_tabled : len(sequence.pages)] = [model.pool.address(page) for page in new_pages]
                sequence.n_tabled = len(sequence.pages)
            model.set_states(sequence.slot, sequence.state, sequence.next_state)
            first = sequence.n_computed
            wants = [share.n_tokens - 1] if share.wants_logits else []
            tokens, rope_row = sequence.tokens[first : first + share.n_tokens], model.first_rope_row(sequence.is_long)
            rows.append(model.batch.add(sequence.slot, tokens, first, wants, first_rope_row=rope_row))
        if not model.run():
            return None
        self._notes.run_ended()
        return rows

    def _advance(self, request: Request, share: Share, row: int) -> list[Delta]:
        if not share.wants_logits:
            return [request.progress()]
        if request.n_completion == 0:
            self._n_reused += request.sequence.n_reused
        began_ns = time.perf_counter_ns()
        try:
            token = request.choose(self._open_model.logits_address(row))
            self._notes.chose(began_ns)
        except (NumericalError, ConstraintError) as error:
            deltas = request.end("error", str(error))
        else:
            self._n_completion += 1
            added_ns = self._added_ns.pop(request.id, None)
            if added_ns is not None:
                self._notes.first_token(added_ns)
            request.step = self._notes.ring.n_written + 1  # of the row that is open
            deltas = request.accept(token)
        if deltas[-1].finish_reason is not None:
            self._forget(request)
        return deltas

    def _forget(self, request: Request) -> None:
        if request.id in self._preparing:
            self._preparing.pop(request.id).cancel()
        else:
            self._scheduler.remove(request.sequence)
        del self._requests[request.id]
        self._added_ns.pop(request.id, None)

    @property
    def _kv_tokens(self) -> int:
        pool = self._open_model.pool
        return (pool.n_pages - pool.n_idle) * PAGE

    def _account(self, seconds: float, n_prompt: int) -> None:
        """Book a step's time, and learn from it how much of a prompt the next step may take."""
        if not n_prompt:
            self._decode_s += seconds
            return
        self._n_prompt += n_prompt
        self._prefill_s += seconds
        if n_prompt >= PAGE:
            pages = int(n_prompt / seconds * _STEP_SECONDS) // PAGE
            wanted = max(pages * PAGE, _LEAST_STEP_TOKENS)
            self._scheduler.prompt_budget = min(wanted, self.config.max_batch_tokens)
