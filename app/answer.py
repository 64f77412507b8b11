"""One answer being written: its text and reasoning go to the listeners at once and to the disk twice a second."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.chats import ChatStore, ChatStoreError, Message, MessageState
from app.engine_service import EngineService
from app.generation import Generation, text_of
from app.library import model_name
from app.routing import RouteTrace
from engine.errors import ColibriError

if TYPE_CHECKING:
    from engine import Delta, ModelInfo, SamplingParams

logger = logging.getLogger(__name__)

_SAVE_EVERY_S = 0.5
_PAUSE_S = 0.1  # between two looks at what has come; a token that comes later than that is shown at once


class Answer:
    """Writes the message `message_id`; `on_text(id, text, n_tokens)`, `on_reasoning(id, text, n_tokens)` and
    `on_prompt(id, n_read, n_tokens, n_reused)` follow. Text comes in pieces of all the tokens of a moment."""

    def __init__(
        self,
        store: ChatStore,
        message_id: int,
        on_text: Callable[[int, str, int], None],
        on_reasoning: Callable[[int, str, int], None],
        on_prompt: Callable[[int, int, int, int], None],
    ) -> None:
        self._store = store
        self._id = message_id
        self._on_text, self._on_reasoning = on_text, on_reasoning
        self._on_prompt = on_prompt
        self._generation: Generation | None = None
        self._stopped = False
        self._unsaved: list[str] = []
        self._unsaved_reasoning: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._meter = Meter()
        self._service: EngineService | None = None
        self._trace: RouteTrace | None = None

    async def write(
        self,
        service: EngineService,
        history: list[dict[str, Any]],
        params: SamplingParams | Callable[[ModelInfo], SamplingParams],
        thinking: Sequence[str] = (),
    ) -> Message:
        """Generate to the end and return the finished message. Raises what the service raises."""
        if self._stopped:
            return self._finish(MessageState.STOPPED)
        self._service = service
        self._generation = service.generate(history, params, thinking=thinking)
        async with self._generation:
            async for batch in self._generation.batches(_PAUSE_S):
                self._take(batch)
        info = service.info
        if info is not None:
            self._meter.figures["model"] = model_name(Path(info.path), info.name)
        reason = self._meter.figures.get("finish_reason")
        return self._finish(MessageState.STOPPED if reason == "cancelled" else MessageState.COMPLETE)

    def stop(self) -> None:
        """Stop generating; `write` then returns the message as far as it has come."""
        self._stopped = True
        if self._generation is not None:
            self._generation.cancel()

    def fail(self, error: ColibriError) -> Message:
        """End the message with an error, keeping the text so far."""
        self._meter.figures["error"] = str(error)
        try:
            return self._finish(MessageState.ERROR)
        except ChatStoreError:
            logger.exception("a failed answer could not be saved")
            unsaved = self._store.message(self._id)
            return replace(
                unsaved,
                content=unsaved.content + "".join(self._unsaved),
                reasoning=unsaved.reasoning + "".join(self._unsaved_reasoning),
                state=MessageState.ERROR,
                metrics=self._meter.figures,
            )

    def abandon(self) -> None:
        """Save what there is when the program ends under the answer."""
        if self._generation is not None:
            self._generation.cancel()
        self._finish(MessageState.STOPPED)

    def save(self) -> None:
        """Put the text that came since the last time into the store."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._unsaved or self._unsaved_reasoning:
            self._store.append_text(self._id, "".join(self._unsaved), reasoning="".join(self._unsaved_reasoning))
            self._unsaved, self._unsaved_reasoning = [], []

    def _take(self, batch: list[tuple[float, Delta]]) -> None:
        texts: list[str] = []
        thoughts: list[str] = []
        n_text_tokens = n_thought_tokens = 0
        self._meter.take(batch)
        for _, delta in batch:
            self._follow(delta)
            if delta.kind == "prompt":
                self._on_prompt(self._id, delta.n_prefilled, delta.n_prompt_tokens, delta.n_reused)
            elif delta.kind == "reasoning":
                thoughts.append(delta.text)
                n_thought_tokens += delta.token_id is not None
            else:
                texts.append(text_of(delta))
                n_text_tokens += delta.token_id is not None
        if thought := "".join(thoughts):
            self._keep(self._unsaved_reasoning, thought)
            self._on_reasoning(self._id, thought, n_thought_tokens)
        if text := "".join(texts):
            self._keep(self._unsaved, text)
            self._on_text(self._id, text, n_text_tokens)

    def _follow(self, delta: Delta) -> None:
        """Note which experts serve the answer, where the model has any."""
        telemetry = None if self._service is None else self._service.telemetry
        if self._trace is None and telemetry is not None and telemetry.moe_layers and delta.token_id is not None:
            self._trace = RouteTrace(telemetry)
        if self._trace is not None:
            self._trace.take(delta)

    def _keep_routes(self) -> None:
        if self._service is None or self._trace is None:
            return
        trace, self._trace = self._trace, None
        routes = trace.finish(self._id)
        if routes is not None:
            self._service.routes.keep(routes)

    def _keep(self, pieces: list[str], text: str) -> None:
        pieces.append(text)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SAVE_EVERY_S, self._save_on_time)

    def _save_on_time(self) -> None:
        self._timer = None
        try:
            self.save()
        except ChatStoreError:  # the end of the answer will say so, if it lasts
            logger.exception("a piece of an answer could not be saved")

    def _finish(self, state: MessageState) -> Message:
        self.save()
        self._keep_routes()
        return self._store.finish_message(self._id, state, metrics=self._meter.figures)


class Meter:
    """Measures an answer as its reader sees it: time to the first token, tokens a second from then on, and how long
    the model reasoned."""

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}
        self._started_s = time.perf_counter()
        self._first_s: float | None = None
        self._last_s = 0.0
        self._n_tokens = 0
        self._thought_from_s: float | None = None
        self._thought_to_s = 0.0

    def take(self, batch: Sequence[tuple[float, Delta]]) -> None:
        """Count the deltas of a moment, at least one, each with when it came, on the clock of time.perf_counter."""
        last_s = self._last_s
        for at_s, delta in batch:
            if delta.token_id is not None:
                self._n_tokens += 1
                last_s = at_s
                if self._first_s is None:
                    self._first_s = at_s
                    self.figures["ttft_ms"] = round((at_s - self._started_s) * 1e3, 3)
            if delta.kind == "reasoning":
                self._thought_from_s = at_s if self._thought_from_s is None else self._thought_from_s
                self._thought_to_s = at_s
        self._last_s = last_s
        newest = batch[-1][1]
        self.figures["prompt_tokens"] = newest.n_prompt_tokens
        self.figures["reused_tokens"] = newest.n_reused
        self.figures["completion_tokens"] = self._n_tokens
        if self._first_s is not None and last_s > self._first_s:
            self.figures["tokens_per_second"] = round((self._n_tokens - 1) / (last_s - self._first_s), 2)
        if self._thought_from_s is not None:
            self.figures["thinking_ms"] = round((self._thought_to_s - self._thought_from_s) * 1e3, 3)
        if newest.finish_reason is not None:
            self.figures["finish_reason"] = newest.finish_reason
