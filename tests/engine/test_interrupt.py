"""Interrupting a step: nothing of it counts, and the answer is the same."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from engine import Engine, EngineConfig, SamplingParams
from tests.engine.compact import LLAMA, MIXTRAL, open_small
from tests.support.fixtures import compact_cases

GREEDY = SamplingParams(temperature=0.0, max_tokens=12, ignore_eos=True)
PROMPT = list(range(5, 105))


def answer(engine: Engine, *, interrupted_before: tuple[int, ...] = ()) -> list[int]:
    """Greedy tokens; `interrupted_before` names the steps before which the engine is interrupted."""
    request_id, tokens, n_steps = engine.add(PROMPT, GREEDY), [], 0
    while engine.has_work:
        if n_steps in interrupted_before:
            engine.interrupt()
            assert engine.step() == []
        deltas = engine.step()
        n_steps += 1
        assert all(delta.request_id == request_id for delta in deltas)
        tokens += [delta.token_id for delta in deltas if delta.token_id is not None]
    return tokens


@pytest.mark.parametrize("name", [LLAMA, MIXTRAL])
def test_an_interrupted_step_is_begun_anew_with_the_same_result(name: str) -> None:
    with open_small(name) as engine:
        expected, counts = answer(engine), engine.stats().expert_counts
    with open_small(name) as engine:
        assert answer(engine, interrupted_before=(0, 1, 4)) == expected
        np.testing.assert_array_equal(engine.stats().expert_counts, counts)


def test_another_thread_ends_a_step_that_takes_long() -> None:
    path = next(case.path for case in compact_cases() if case.name.startswith("llama"))
    config = EngineConfig(context_length=512, max_batch_tokens=400, activations="float32", threads=1)
    prompt = [5 + i % 500 for i in range(400)]
    with Engine.open(path, config) as engine:
        start = time.perf_counter()
        for _ in engine.generate(prompt, SamplingParams(temperature=0.0, max_tokens=1)):
            pass
        whole_s = time.perf_counter() - start
        engine.reset_cache()
        request_id = engine.add(prompt, GREEDY)
        threading.Timer(whole_s / 10, engine.interrupt).start()
        assert engine.step() == []
        engine.cancel(request_id)
        assert [delta.finish_reason for delta in engine.step()] == ["cancelled"]
        assert not engine.has_work
