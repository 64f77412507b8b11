"""Interrupting a step: nothing of it counts, and the answer is the same."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from engine import Engine, EngineConfig, SamplingParams
from tests.engine.compact import LLAMA, MIXTRAL, open_small
from tests.support.fixtures import compact_cases
from tests.support.waiting import still_patient

Array = np.ndarray[Any, Any]

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


def interrupt_when_under_way(engine: Engine, ticks: Array, before: Array) -> None:
    """Interrupt the step that begins about now as soon as the team has booked a stage of it: its `ticks` grow."""
    is_patient = still_patient("the first stage of a step")
    while np.array_equal(ticks, before) and is_patient():
        time.sleep(0.0002)
    engine.interrupt()


def test_another_thread_ends_a_step_that_takes_long() -> None:
    path = next(case.path for case in compact_cases() if case.name.startswith("llama"))
    config = EngineConfig(context_length=512, max_batch_tokens=400, activations="float32", threads=1)
    prompt = [5 + i % 500 for i in range(400)]
    is_patient = still_patient("an interrupt in the middle of a step")
    with Engine.open(path, config) as engine:
        for _ in engine.generate(prompt, SamplingParams(temperature=0.0, max_tokens=1)):
            pass
        assert engine._model is not None
        was_cut, ticks = False, engine._model.ticks
        while not was_cut and is_patient():
            engine.reset_cache()
            request_id = engine.add(prompt, GREEDY)
            other = threading.Thread(target=interrupt_when_under_way, args=(engine, ticks, ticks.copy()))
            other.start()
            was_cut = engine.step() == []
            other.join()
            engine.cancel(request_id)
            assert [delta.finish_reason for delta in engine.step()] == ["cancelled"]
        assert not engine.has_work
