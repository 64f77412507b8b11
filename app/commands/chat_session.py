"""A conversation held straight with an engine, turn by turn, with figures for each answer."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from app.commands.progress_line import ProgressLine
from app.generation import text_of
from app.jobs import Job
from engine.errors import NumericalError

if TYPE_CHECKING:
    from engine import Delta, Engine, SamplingParams
    from engine.chat.chat_prompts import ChatPrompt


@dataclass(slots=True)
class TerminalAnswer:
    """An answer and what it took."""

    token_ids: list[int] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    prompt_tokens: int = 0
    reused_tokens: int = 0
    expert_calls: int = 0
    finish_reason: str = ""
    started_s: float = 0.0
    first_s: float = 0.0
    last_s: float = 0.0

    def take(self, delta: Delta) -> None:
        """Count a token, keep its text."""
        if delta.token_id is not None:
            self.token_ids.append(delta.token_id)
            self.last_s = time.perf_counter()
            self.first_s = self.first_s or self.last_s
        (self.thoughts if delta.kind == "reasoning" else self.pieces).append(text_of(delta))
        self.finish_reason = delta.finish_reason or ""

    @property
    def text(self) -> str:
        """All that was said."""
        return "".join(self.pieces)

    @property
    def reasoning(self) -> str:
        """All that was thought before."""
        return "".join(self.thoughts)

    def figures(self) -> dict[str, Any]:
        """What `--json` prints. Rates are as the user sees them, waiting included."""
        to_first_s = self.first_s - self.started_s if self.token_ids else 0.0
        decode_s = self.last_s - self.first_s
        n_read = self.prompt_tokens - self.reused_tokens
        return {
            "text": self.text,
            "reasoning": self.reasoning,
            "token_ids": self.token_ids,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": len(self.token_ids),
            "expert_calls": self.expert_calls,
            "finish_reason": self.finish_reason,
            "ttft_ms": round(to_first_s * 1e3, 3),
            "prefill_tokens_per_second": round(n_read / to_first_s, 2) if to_first_s else 0.0,
            "decode_tokens_per_second": round((len(self.token_ids) - 1) / decode_s, 2) if decode_s else 0.0,
        }


class ChatSession:
    """The turns so far. `system` None leaves the system prompt to the model's template."""

    def __init__(self, engine: Engine, params: SamplingParams, system: str | None, thinking: str | None = None) -> None:
        """Raises InvalidRequestError where the model has no such setting of `thinking` (see `think`)."""
        self.engine = engine
        self._variables: dict[str, Any] = {}
        self.think(thinking)
        self._params = params
        self._system = system
        self._turns: list[dict[str, Any]] = []
        self.reset()

    def reset(self) -> None:
        """Forget the conversation."""
        self._turns = [] if self._system is None else [{"role": "system", "content": self._system}]

    def think(self, choice: str | None) -> None:
        """From the next answer on: "on", "off" or an effort, as far as the model's template knows it; None: as usual.

        Raises InvalidRequestError for what it does not know.
        """
        if choice is not None or self._variables:
            self._variables = self.engine.chat_prompts.thinking.variables(choice)

    def answer(
        self, question: str, show: Callable[[str], None], show_reasoning: Callable[[str], None] = lambda _: None
    ) -> TerminalAnswer:
        """Ask; `show(text)` is called with each piece, `show_reasoning(text)` with what is thought before it.

        Ctrl-C stops the answer; what there is of it counts.

        A question that raises (too long a conversation, say) is not part of the conversation.
        """
        turns = [*self._turns, {"role": "user", "content": question}]
        prompt = self.engine.chat_prompts.prompt(turns, **self._variables)
        answer = self._generate(prompt, show, show_reasoning)
        reply = {"role": "assistant", "content": answer.text}
        self._turns = [*turns, {**reply, "reasoning_content": answer.reasoning} if answer.reasoning else reply]
        return answer

    def _generate(
        self, prompt: ChatPrompt, show: Callable[[str], None], show_reasoning: Callable[[str], None]
    ) -> TerminalAnswer:
        answer = TerminalAnswer(prompt_tokens=len(prompt.ids))
        calls_before = self.engine.stats().expert_calls
        job = Job("Prompt")
        deltas = self.engine.generate(prompt.ids, self._params, prompt.parser)
        answer.started_s = time.perf_counter()
        with interrupts() as interrupted, ProgressLine(job) as line, closing(deltas):
            for delta in deltas:
                answer.reused_tokens = delta.n_reused
                if interrupted.is_set():
                    answer.finish_reason = "cancelled"
                    break
                if delta.kind == "prompt":
                    job.report("Reading the prompt", fraction=delta.n_prefilled / max(1, delta.n_prompt_tokens))
                    continue
                line.close()
                if delta.finish_reason == "error":
                    raise NumericalError(delta.text)
                answer.take(delta)
                if text := text_of(delta):
                    (show_reasoning if delta.kind == "reasoning" else show)(text)
        answer.expert_calls = self.engine.stats().expert_calls - calls_before
        return answer


@contextmanager
def interrupts() -> Iterator[threading.Event]:
    """Catch Ctrl-C: the first one sets the event, a second one raises KeyboardInterrupt."""
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)
