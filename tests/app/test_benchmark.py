"""Measuring speed with the real engine: what is counted, what is reused, cancelling, what does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.benchmark import Kind, Speed, SpeedTest, measure
from app.machine import Machine, cpu_name
from engine import Engine, EngineConfig
from engine.errors import ContextLengthError, InvalidRequestError

MODEL = Path(__file__).resolve().parents[1] / "data" / "fixtures" / "mixtral-mixed.gguf"
CONTEXT = 96
PROMPT = SpeedTest(Kind.PROMPT, 40)
GENERATE = SpeedTest(Kind.GENERATE, 6)
DEEP = SpeedTest(Kind.GENERATE, 6, depth=50)


@pytest.fixture
def engine() -> Iterator[Engine]:
    config = EngineConfig(CONTEXT, threads=1, max_sequences=1, kv_pool_tokens=CONTEXT)
    with Engine.open(MODEL, config) as engine:
        yield engine


def test_each_test_is_run_in_each_repetition_and_nothing_is_reused(engine: Engine) -> None:
    result = measure(engine, [PROMPT, GENERATE, DEEP], 3)

    assert result.is_complete
    assert [(speed.test, len(speed.samples)) for speed in result.speeds] == [(PROMPT, 3), (GENERATE, 3), (DEEP, 3)]
    assert result.n_threads == 1
    assert result.model is engine.info
    stats = engine.stats()  # the warm-up's share in brackets
    assert stats.reused_tokens == 0
    assert stats.prompt_tokens == (95 + 1) + 3 * (40 + 1 + 50)
    assert stats.completion_tokens == (1 + 5) + 3 * (1 + 7 + 7)
    assert stats.kv_used_tokens == 0


def test_the_progress_rises_to_all_of_it(engine: Engine) -> None:
    told: list[tuple[str, float]] = []
    measure(engine, [PROMPT, DEEP], 2, progress=lambda phase, fraction: told.append((phase, fraction)))

    assert list(dict.fromkeys(phase for phase, _ in told)) == ["Warming up", "Measuring"]
    fractions = [fraction for phase, fraction in told if phase == "Measuring"]
    assert fractions == sorted(fractions)
    assert fractions[0] < 0.5
    assert fractions[-1] == 1.0


def test_a_cancelled_run_gives_what_was_measured_so_far(engine: Engine) -> None:
    reached = 0.0

    def progress(phase: str, fraction: float) -> None:
        nonlocal reached
        reached = fraction if phase == "Measuring" else 0.0

    result = measure(engine, [PROMPT, GENERATE], 4, progress=progress, cancelled=lambda: reached > 0.3)

    assert not result.is_complete
    assert [(speed.test, len(speed.samples)) for speed in result.speeds] == [(PROMPT, 1), (GENERATE, 1)]
    assert not engine.has_work
    assert measure(engine, [GENERATE], 1).is_complete  # the engine is as good as before


def test_a_run_that_is_cancelled_at_once_has_no_figures(engine: Engine) -> None:
    result = measure(engine, [PROMPT], 2, cancelled=lambda: True)
    assert (result.speeds, result.is_complete) == ((), False)


def test_a_test_may_fill_the_context_and_not_exceed_it(engine: Engine) -> None:
    full = SpeedTest(Kind.GENERATE, CONTEXT - 51, depth=50)
    assert measure(engine, [full, SpeedTest(Kind.PROMPT, CONTEXT - 1)], 1).is_complete

    with pytest.raises(ContextLengthError, match=f"'prompt {CONTEXT}' needs a context of {CONTEXT + 1} tokens"):
        measure(engine, [SpeedTest(Kind.PROMPT, CONTEXT)])


def test_a_busy_engine_and_empty_plans_are_refused(engine: Engine) -> None:
    for tests, n_repetitions in (([], 1), ([PROMPT], 0)):
        with pytest.raises(InvalidRequestError, match="1 test and 1 repetition or more"):
            measure(engine, tests, n_repetitions)
    engine.add([1, 2, 3])
    with pytest.raises(InvalidRequestError, match="without requests"):
        measure(engine, [PROMPT])


def test_impossible_tests_are_refused() -> None:
    for kind, n_tokens, depth in ((Kind.PROMPT, 0, 0), (Kind.GENERATE, 4, -1), (Kind.PROMPT, 4, 2)):
        with pytest.raises(InvalidRequestError, match="speed test"):
            SpeedTest(kind, n_tokens, depth)


def test_the_figures_of_some_samples() -> None:
    speed = Speed(PROMPT, (50.0, 20.0, 80.0))
    assert (speed.median, speed.lowest, speed.highest, speed.deviation) == (50.0, 20.0, 80.0, 30.0)
    assert speed.ms_per_token == 20.0
    assert Speed(PROMPT, (50.0,)).deviation is None


def test_the_cpu_is_named_as_the_system_names_it(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor\t: 0\nmodel\t\t: 5\nmodel name\t: A  Fast CPU @ 3 GHz\nflags\t: fpu\n")
    assert cpu_name(cpuinfo) == "A Fast CPU @ 3 GHz"
    cpuinfo.write_text("model name\t:\nflags\t: fpu\n")
    assert cpu_name(cpuinfo) == cpu_name(tmp_path / "missing") != ""
    assert Machine.read().cpu == cpu_name()
