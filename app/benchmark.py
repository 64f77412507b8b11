"""Measures how many tokens per second an open engine reads and generates."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from random import Random
from typing import TYPE_CHECKING

from app.machine import Machine
from engine.errors import ContextLengthError, InvalidRequestError, NumericalError
from engine.hardware.cpu import usable_cores

if TYPE_CHECKING:
    from engine import Delta, Engine, ModelInfo

Progress = Callable[[str, float], None]

_SEED = 20261129  # the same random tokens in each run of the program, so that runs can be compared
_WARM_UP_PROMPT = 512
_WARM_UP_GENERATED = 4


class Kind(StrEnum):
    """What a test measures."""

    PROMPT = "prompt"  # from adding a prompt to its first answered token
    GENERATE = "generate"  # the tokens after the first one, turned into text


@dataclass(frozen=True, slots=True)
class SpeedTest:
    """`n_tokens` of one kind. `depth`: tokens already in the context before a generation."""

    kind: Kind
    n_tokens: int
    depth: int = 0

    def __post_init__(self) -> None:
        if self.n_tokens < 1 or self.depth < 0 or (self.kind is Kind.PROMPT and self.depth):
            raise InvalidRequestError(
                f"A speed test needs 1 token or more and a depth of 0 or more (0 for a prompt), not {self}."
            )

    @property
    def name(self) -> str:
        """For people: "generate 128 at depth 1024"."""
        return f"{self.kind} {self.n_tokens}" + (f" at depth {self.depth}" if self.depth else "")

    @property
    def n_prompt_tokens(self) -> int:
        """Tokens of the prompt that the test gives to the engine."""
        return self.n_tokens if self.kind is Kind.PROMPT else max(1, self.depth)

    @property
    def n_answer_tokens(self) -> int:
        """Tokens that it lets the engine generate; the first one belongs to the prompt's time."""
        return 1 if self.kind is Kind.PROMPT else self.n_tokens + 1

    @property
    def n_context_tokens(self) -> int:
        """The context that it needs."""
        return self.n_prompt_tokens + self.n_answer_tokens


@dataclass(frozen=True, slots=True)
class Speed:
    """A test's repetitions, at least one, in tokens per second and in the order in which they were made."""

    test: SpeedTest
    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def lowest(self) -> float:
        return min(self.samples)

    @property
    def highest(self) -> float:
        return max(self.samples)

    @property
    def deviation(self) -> float | None:
        """The samples' standard deviation; None for a single one, which has no spread to speak of."""
        return statistics.stdev(self.samples) if len(self.samples) > 1 else None

    @property
    def ms_per_token(self) -> float:
        """At the median."""
        return 1e3 / self.median


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """All that was measured, and on what. A cancelled run has fewer samples, and tests without any are left out."""

    machine: Machine
    model: ModelInfo
    n_threads: int
    started_at: datetime
    n_repetitions: int  # that were asked for
    speeds: tuple[Speed, ...]
    is_complete: bool


class _Cancelled(Exception):
    """A way out of the engine's loop, not a fault."""


def measure(
    engine: Engine,
    tests: Sequence[SpeedTest],
    n_repetitions: int = 5,
    *,
    machine: Machine | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> BenchmarkResult:
    """Load all experts that fit and warm up, then run every test once in each repetition.

    So a noisy minute hits all alike.

    machine: read before the model was opened (opening it is work, too); None: as it is now.
    progress(phase, fraction of the phase), with the phases "Warming up" and "Measuring", and cancelled() are called
    after each engine step; once cancelled() is true, the result is what has been measured so far.
    Prompts are random tokens, new ones each time, and nothing of an earlier one is reused. The engine must be idle.

    Raises ContextLengthError for a test that does not fit, NumericalError when the model computes no numbers.
    """
    _check(engine, tests, n_repetitions)
    machine, started_at = machine or Machine.read(), datetime.now().astimezone()
    random, tell = Random(_SEED), progress or (lambda _phase, _fraction: None)
    samples: dict[SpeedTest, list[float]] = {test: [] for test in tests}

    def run(test: SpeedTest, phase: str, n_done: int, n_all: int) -> float:
        def on_delta(delta: Delta, n_answered: int) -> None:
            part = (delta.n_prefilled + n_answered) / test.n_context_tokens
            tell(phase, (n_done + min(1.0, part)) / n_all)
            if cancelled():
                raise _Cancelled

        return _run_once(engine, test, random, on_delta)

    is_complete = False
    try:
        while engine.read_ahead():
            tell("Warming up", 0.0)
            if cancelled():
                raise _Cancelled
        for number, test in enumerate(warm_up := _warm_up_tests(engine, tests)):
            run(test, "Warming up", number, len(warm_up))
        for repetition in range(n_repetitions):
            for number, test in enumerate(samples):
                n_done = repetition * len(samples) + number
                samples[test].append(run(test, "Measuring", n_done, n_repetitions * len(samples)))
        is_complete = True
    except _Cancelled:
        pass
    engine.reset_cache()
    speeds = tuple(Speed(test, tuple(values)) for test, values in samples.items() if values)
    n_threads = engine.config.threads or usable_cores()
    return BenchmarkResult(machine, engine.info, n_threads, started_at, n_repetitions, speeds, is_complete)


def _check(engine: Engine, tests: Sequence[SpeedTest], n_repetitions: int) -> None:
    if not tests or n_repetitions < 1:
        raise InvalidRequestError(
            f"A benchmark needs 1 test and 1 repetition or more, not {len(tests)} and {n_repetitions}."
        )
    if engine.has_work:
        raise InvalidRequestError("A benchmark needs an engine without requests; finish or cancel them first.")
    for test in tests:
        if test.n_context_tokens > engine.config.context_length:
            raise ContextLengthError(
                f"The test '{test.name}' needs a context of {test.n_context_tokens} tokens, but the model was opened "
                f"with one of {engine.config.context_length}. Make the test smaller or the context longer."
            )


def _warm_up_tests(engine: Engine, tests: Sequence[SpeedTest]) -> list[SpeedTest]:
    """What is run first and not counted: touches the weights and the longest context's pages."""
    room = engine.config.context_length
    n_prompt = max(min(_WARM_UP_PROMPT, room - 1), *(test.n_prompt_tokens for test in tests))
    return [
        SpeedTest(Kind.PROMPT, n_prompt),
        SpeedTest(Kind.GENERATE, min(_WARM_UP_GENERATED, room - 2)),
    ]


def _run_once(engine: Engine, test: SpeedTest, random: Random, on_delta: Callable[[Delta, int], None]) -> float:
    """Tokens per second of one run, from a prompt that the engine has not seen."""
    from engine import SamplingParams  # noqa: PLC0415 - loading the engine takes a while

    ids = random.choices(range(engine.info.n_vocab), k=test.n_prompt_tokens)
    params = SamplingParams(temperature=0.0, max_tokens=test.n_answer_tokens, ignore_eos=True)
    engine.reset_cache()
    answered_s: list[float] = []
    started_s = time.perf_counter()
    with closing(engine.generate(ids, params)) as deltas:
        for delta in _sound(deltas):
            if delta.token_id is not None:
                answered_s.append(time.perf_counter())
            on_delta(delta, len(answered_s))
    if len(answered_s) != test.n_answer_tokens:
        raise RuntimeError(f"{test.name}: expected {test.n_answer_tokens} tokens, the engine gave {len(answered_s)}")
    if test.kind is Kind.PROMPT:
        return test.n_tokens / (answered_s[0] - started_s)
    return test.n_tokens / (answered_s[-1] - answered_s[0])


def _sound(deltas: Iterator[Delta]) -> Iterator[Delta]:
    for delta in deltas:
        if delta.finish_reason == "error":
            raise NumericalError(delta.text)
        yield delta
