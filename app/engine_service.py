"""The engine's background thread and its asynchronous face.

One thread owns the engine: commands go in by a queue, results come out on the caller's event loop. Between two
commands the thread steps the engine, so all generations under way advance together. Nothing here blocks the loop.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from app.generation import Generation
from app.jobs import Job, JobCancelledError
from app.routing import RouteBook
from engine.errors import ColibriError, EngineClosedError, NumericalError

if TYPE_CHECKING:  # the engine is imported in its own thread: the window need not wait for it
    from app.benchmark import BenchmarkResult, SpeedTest
    from engine import Delta, Engine, EngineConfig, MemoryPlan, ModelInfo, SamplingParams, Stats
    from engine.chat.chat_prompts import ChatPrompt
    from engine.chat.thinking import Thinking
    from engine.telemetry import Telemetry

    _Params = SamplingParams | Callable[[ModelInfo], SamplingParams] | None

logger = logging.getLogger(__name__)

T = TypeVar("T")
Message = Mapping[str, Any]  # {"role": ..., "content": ...}, and what ChatPrompts.prompt takes besides


class NoModelError(ColibriError):
    """Something was asked of a model while none is open."""


class EngineFailureError(ColibriError):
    """The engine failed in a way that nobody foresaw; the log has the details."""


class ServiceState(StrEnum):
    """Whether there is a model to talk to."""

    EMPTY = "empty"
    LOADING = "loading"
    READY = "ready"
    ERROR = "error"


class EngineService:
    """Loads models and generates with them, for one event loop. Call its methods on that loop's thread.

    `state`, `info`, `memory`, `telemetry`, `loading`, `measuring` and `error` say what is going on; `on_change`
    listeners are called on the loop's thread when any of them changes. `routes`: which experts served the newest
    answers.
    """

    def __init__(self) -> None:
        self.state = ServiceState.EMPTY
        self.info: ModelInfo | None = None
        self.memory: MemoryPlan | None = None
        self.telemetry: Telemetry | None = None
        self.thinking: Thinking | None = None  # what may be said about it to the open model; None: nothing
        self.loading: Job | None = None
        self.measuring: Job | None = None  # answers wait until it is over
        self.routes = RouteBook()
        self.error: BaseException | None = None
        self._listeners: list[Callable[[], None]] = []
        self._commands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._n_changes = 0  # loads and unloads asked for; only the newest one's outcome counts
        self._closed = False
        # The following three belong to the engine's thread.
        self._engine: Engine | None = None
        self._running: dict[int, Generation] = {}
        self._reads_ahead = False  # there are experts to load while nothing else is to be done
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._thread.start()

    # What callers use, on the loop's thread.

    async def load(self, path: str | Path, config: EngineConfig | None = None, job: Job | None = None) -> ModelInfo:
        """Open a model in place of the present one, whose generations end. A load under way gives way to this one.

        Progress is in `job` (also `self.loading`): its phases are "kernels" and "weights". Raises what
        Engine.open raises, and JobCancelledError.
        """
        job = job or Job(f"Loading {Path(path).name}")
        change = self._begin_change(ServiceState.LOADING, job)
        loop = asyncio.get_running_loop()

        def settle(engine: Engine | None, thinking: Thinking | None, error: BaseException | None) -> None:
            if change == self._n_changes:
                self.thinking = thinking
                self._settle(engine, error)

        async def work(job: Job) -> ModelInfo:
            return await self._call(lambda: self._open(Path(path), config, job, _on(loop, settle)))

        return await job.run(work)

    async def unload(self) -> None:
        """Close the model; its generations end."""
        self._begin_change(ServiceState.EMPTY, None)
        await self._call(self._close_engine)

    def generate(
        self,
        messages: Sequence[Message],
        params: _Params = None,
        *,
        tools: Sequence[Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        thinking: Sequence[str] = (),
    ) -> Generation:
        """Answer a conversation with the open model, or with the one that is being loaded.

        `params`: may depend on the model that answers. `tools`: functions that the model may call. `variables`: the
        chat template's own (`enable_thinking`, ...). `thinking`: how long the model should think; the first that it
        knows counts, and none where it knows none.

        Returns an asynchronous iterator of Delta; its `cancel` or `aclose` stops it within one step of the engine.
        Iterating raises NoModelError, what Engine.add and the chat template raise, and NumericalError for an answer
        whose logits are no numbers any more.
        """

        def prompt(engine: Engine) -> ChatPrompt:
            known = engine.chat_prompts.thinking
            own = known.variables(known.first_of(thinking)) if thinking else {}
            return engine.chat_prompts.prompt(messages, tools=tools, **own, **(variables or {}))

        return self._generate(prompt, params)

    def complete(self, text: str, params: SamplingParams | None = None) -> Generation:
        """Continue a plain text, without the model's chat template."""

        def prompt(engine: Engine) -> ChatPrompt:
            from engine.chat.chat_prompts import ChatPrompt  # noqa: PLC0415

            return ChatPrompt(engine.tokenizer.encode(text), None)

        return self._generate(prompt, params)

    async def stats(self) -> Stats | None:
        """The engine's figures; None while no model is open."""
        return await self._call(lambda: None if self._engine is None else self._engine.stats())

    async def measure(self, job: Job, tests: Sequence[SpeedTest], n_repetitions: int = 3) -> BenchmarkResult:
        """Measure the open model's speed; phases and cancelling as app.benchmark.measure has them, through `job`.

        Other work waits until it is over. Raises NoModelError, InvalidRequestError (while answers are being written),
        ContextLengthError, NumericalError; JobCancelledError when it was cancelled before anything was measured.
        """

        def work() -> BenchmarkResult:
            from app.benchmark import measure  # noqa: PLC0415 - the window's first paint need not wait for it

            if self._engine is None:
                raise NoModelError("No model is open: choose one in the model list first.")
            result = measure(
                self._engine,
                tests,
                n_repetitions,
                progress=lambda phase, fraction: job.report(phase, fraction=fraction),
                cancelled=lambda: job.cancelled,
            )
            if not result.speeds:
                job.check()
            return result

        async def call(_job: Job) -> BenchmarkResult:
            return await self._call(work)

        self.measuring = job
        self._notify()
        try:
            return await job.run(call)
        finally:
            self.measuring = None
            self._notify()

    def on_change(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener()` on the loop's thread after each change; returns a function that ends this."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def close(self, timeout_s: float = 10.0) -> None:
        """End everything and join the thread. May be called more than once, from any thread; no listener is told."""
        if not self._closed:
            self._closed = True
            self._listeners.clear()
            self._begin_change(ServiceState.EMPTY, None)
            self._commands.put(None)
        self._thread.join(timeout_s)

    # On the loop's thread.

    def _generate(self, prompt: Callable[[Engine], ChatPrompt], params: _Params) -> Generation:
        generation = self._new_generation()
        self._post(lambda: self._add(generation, prompt, params))
        return generation

    def _new_generation(self) -> Generation:
        return Generation(asyncio.get_running_loop(), self._cancel)

    def _cancel(self, generation: Generation) -> None:
        self._commands.put(lambda: self._cancel_in_engine(generation))
        self._interrupt()

    def _interrupt(self) -> None:
        """Let the engine's thread look at its commands now, not after a long prompt's step."""
        engine = self._engine
        if engine is not None:
            engine.interrupt()

    def _begin_change(self, state: ServiceState, job: Job | None) -> int:
        self._n_changes += 1
        self._interrupt()
        if self.loading is not None:
            self.loading.cancel()
        self.loading = job
        self.info = self.memory = self.telemetry = self.thinking = self.error = None
        self.state = state
        self._notify()
        return self._n_changes

    def _settle(self, engine: Engine | None, error: BaseException | None) -> None:
        self.loading = None
        if engine is not None:
            self.state, self.info = ServiceState.READY, engine.info
            self.memory, self.telemetry = engine.memory, engine.telemetry
        elif isinstance(error, JobCancelledError):
            self.state = ServiceState.EMPTY
        else:
            self.state, self.error = ServiceState.ERROR, error
        self._notify()

    def _notify(self) -> None:
        for listener in list(self._listeners):
            listener()

    def _post(self, command: Callable[[], None]) -> None:
        if self._closed:
            raise EngineClosedError("The engine's service is closed: the program is ending.")
        self._commands.put(command)

    async def _call(self, function: Callable[[], T]) -> T:
        """Run a function on the engine's thread, and return or raise what it does."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            if not future.done():
                future.set_exception(error) if error is not None else future.set_result(result)

        deliver = _on(loop, settle)

        def command() -> None:
            try:
                result = function()
            except BaseException as error:
                deliver(None, error)
            else:
                deliver(result, None)

        self._post(command)
        return await future

    # On the engine's thread.

    def _run(self) -> None:
        while True:
            try:
                command = self._commands.get(block=not (self._running or self._reads_ahead))
            except queue.Empty:
                if self._running:
                    self._step()
                else:
                    self._read_ahead()
                continue
            if command is None:
                break
            self._try(command, "A command failed")
        self._try(self._close_engine, "The model could not be closed")

    def _open(
        self,
        path: Path,
        config: EngineConfig | None,
        job: Job,
        settle: Callable[[Engine | None, Thinking | None, BaseException | None], None],
    ) -> ModelInfo:
        from engine import Engine, EngineConfig  # noqa: PLC0415

        def progress(phase: str, fraction: float) -> None:
            job.check()
            job.report(phase, fraction=fraction)

        try:
            self._close_engine()
            job.check()
            engine = Engine.open(path, config or EngineConfig(), progress=progress)
            try:
                thinking = _warm_up(engine)
                engine.load(progress)
                job.check()
            except BaseException:
                engine.close()
                raise
        except BaseException as error:
            failure = _presentable(error, f"{path}: cannot be opened")
            settle(None, None, failure)
            if failure is error:
                raise
            raise failure from error
        self._engine, self._reads_ahead = engine, True
        settle(engine, thinking, None)
        return engine.info

    def _close_engine(self) -> None:
        self._fail_all(EngineClosedError("The model was closed before the answer was complete."))
        engine, self._engine, self._reads_ahead = self._engine, None, False
        if engine is not None:
            engine.close()

    def _add(self, generation: Generation, prompt: Callable[[Engine], ChatPrompt], params: _Params) -> None:
        from engine import SamplingParams  # noqa: PLC0415

        if generation.cancelled:
            generation.end()
            return
        try:
            if self._engine is None:
                raise NoModelError("No model is open: choose one in the model list first.")
            made = prompt(self._engine)
            chosen = params(self._engine.info) if callable(params) else params or SamplingParams()
            request_id = self._engine.add(made.ids, chosen, made.parser)
        except Exception as error:
            generation.end(_presentable(error, "The request could not be started"))
        else:
            self._running[request_id] = generation

    def _cancel_in_engine(self, generation: Generation) -> None:
        for request_id, running in self._running.items():
            if running is generation and self._engine is not None:
                self._engine.cancel(request_id)

    def _step(self) -> None:
        assert self._engine is not None
        try:
            deltas = self._engine.step()
        except Exception as error:
            self._fail_all(_presentable(error, "The engine stopped"))
            return
        for delta in deltas:
            self._deliver(delta)
        if not deltas and not self._engine.has_work:
            self._fail_all(EngineFailureError("The engine ended the answer without saying why; see the log."))

    def _read_ahead(self) -> None:
        engine, self._reads_ahead = self._engine, False
        assert engine is not None

        def load() -> None:
            self._reads_ahead = engine.read_ahead()

        self._try(load, "Experts could not be loaded ahead")  # whoever needs one of them will be told

    def _deliver(self, delta: Delta) -> None:
        generation = self._running.get(delta.request_id)
        if generation is None:
            return
        if delta.finish_reason is not None:
            del self._running[delta.request_id]
        if delta.finish_reason == "error":
            generation.end(NumericalError(delta.text))
            return
        generation.put(delta)
        if delta.finish_reason is not None:
            generation.end()

    def _fail_all(self, error: BaseException) -> None:
        running, self._running = self._running, {}
        for request_id, generation in running.items():
            generation.end(error)
            if self._engine is not None:
                self._try(partial(self._engine.cancel, request_id), "An answer could not be cancelled")

    def _try(self, command: Callable[[], None], what: str) -> None:
        """Run what must not end the engine's thread."""
        try:
            command()
        except Exception:
            logger.exception(what)


def _presentable(error: BaseException, what: str) -> BaseException:
    """The error itself when its text is fit for a user, else one that is."""
    if isinstance(error, ColibriError):
        return error
    if isinstance(error, OSError):
        return ColibriError(f"{what}: {error.strerror or error}")
    logger.error("%s", what, exc_info=error)
    return EngineFailureError(f"{what}: {type(error).__name__}: {error}. This is a fault of Colibri; the log has more.")


def _warm_up(engine: Engine) -> Thinking | None:
    """Let the tokenizer and the template build what they build on first use, while the weights are being packed.

    Returns what may be said about thinking; None for a template that does not work.
    """
    thinking = None
    try:
        thinking = engine.chat_prompts.thinking
        engine.chat_prompts.prompt([{"role": "user", "content": "."}])
    except ColibriError as error:  # whoever asks will be told
        logger.info("the chat template does not take a short message: %s", error)
    return thinking


def _on(loop: asyncio.AbstractEventLoop, function: Callable[..., None]) -> Callable[..., None]:
    """The function made to be called on the loop's thread, from any other; nothing happens once the loop is closed."""

    def call(*arguments: Any) -> None:
        try:
            loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            logger.debug("the event loop is closed: %s is not told", function)

    return call
