"""Sequences are isolated (contract S15): what others do never changes a token of mine."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine import Engine, SamplingParams
from tests.engine.compact import LLAMA, MIXTURES, open_small

LENGTHS = (5, 40, 17, 33, 64, 1)
GREEDY = SamplingParams(temperature=0.0, max_tokens=20, ignore_eos=True)


@pytest.fixture(scope="module", params=[LLAMA, *MIXTURES])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with open_small(request.param, max_sequences=4, kv_pool_tokens=1024) as engine:
        yield engine


def prompts(engine: Engine) -> list[list[int]]:
    rng = np.random.default_rng(5)
    return [rng.integers(0, engine.info.n_vocab, n).tolist() for n in LENGTHS]


def sampled(seed: int) -> SamplingParams:
    return SamplingParams(temperature=1.5, top_k=0, top_p=1.0, min_p=0.0, seed=seed, max_tokens=20, ignore_eos=True)


def run_all(engine: Engine) -> dict[int, list[int]]:
    """Step until nothing is left; the tokens of each request."""
    answers: dict[int, list[int]] = {}
    while engine.has_work:
        for delta in engine.step():
            assert delta.finish_reason in (None, "length", "cancelled")
            if delta.token_id is not None:
                answers.setdefault(delta.request_id, []).append(delta.token_id)
    return answers


def alone(engine: Engine, prompt: list[int], params: SamplingParams) -> list[int]:
    engine.reset_cache()
    return [delta.token_id for delta in engine.generate(prompt, params) if delta.token_id is not None]


def test_greedy_answers_together_equal_those_alone(engine: Engine) -> None:
    expected = [alone(engine, prompt, GREEDY) for prompt in prompts(engine)]
    engine.reset_cache()
    ids = [engine.add(prompt, GREEDY) for prompt in prompts(engine)]
    answers = run_all(engine)
    assert [answers[i] for i in ids] == expected


def test_seeded_answers_together_equal_those_alone(engine: Engine) -> None:
    expected = [alone(engine, prompt, sampled(seed)) for seed, prompt in enumerate(prompts(engine))]
    engine.reset_cache()
    ids = [engine.add(prompt, sampled(seed)) for seed, prompt in enumerate(prompts(engine))]
    answers = run_all(engine)
    assert [answers[i] for i in ids] == expected


def test_coming_and_going_of_others_changes_nothing(engine: Engine) -> None:
    mine, *others = prompts(engine)
    expected = alone(engine, mine, sampled(3))
    engine.reset_cache()
    my_id, found = engine.add(mine, sampled(3)), list[int]()
    current: list[int] = []
    for n_steps in range(200):
        if n_steps % 3 == 1 and len(current) < 3:
            current.append(engine.add(others[n_steps % len(others)], sampled(n_steps)))
        if n_steps % 5 == 4 and current:
            engine.cancel(current.pop(0))
        for delta in engine.step():
            if delta.request_id == my_id and delta.token_id is not None:
                found.append(delta.token_id)
        if len(found) == len(expected):
            break
    for request_id in current:
        engine.cancel(request_id)
    run_all(engine)
    assert found == expected


def test_equal_prompts_at_once_get_equal_answers(engine: Engine) -> None:
    prompt = prompts(engine)[4]
    expected = alone(engine, prompt, GREEDY)
    engine.reset_cache()
    for _ in range(4):
        engine.add(prompt, GREEDY)
    assert list(run_all(engine).values()) == [expected] * 4


@pytest.mark.parametrize("name", [LLAMA, *MIXTURES])
def test_answers_are_the_same_when_pages_run_out_and_requests_make_room(name: str) -> None:
    """Five pages for four conversations of up to four pages: they must give theirs back and be computed anew."""
    params = SamplingParams(temperature=0.0, max_tokens=50, ignore_eos=True)
    with open_small(name, max_sequences=4, kv_pool_tokens=160) as engine:
        asked = [prompt[:60] for prompt in prompts(engine)[1:5]]
        expected = [alone(engine, prompt, params) for prompt in asked]
        engine.reset_cache()
        ids = [engine.add(prompt, params) for prompt in asked]
        n_read: dict[int, int] = {}
        was_put_back = False
        answers: dict[int, list[int]] = {i: [] for i in ids}
        while engine.has_work:
            for delta in engine.step():
                was_put_back |= delta.n_prefilled < n_read.get(delta.request_id, 0)
                n_read[delta.request_id] = delta.n_prefilled
                assert delta.n_reused == 0
                if delta.token_id is not None:
                    answers[delta.request_id].append(delta.token_id)
        assert was_put_back
        assert [answers[i] for i in ids] == expected


def test_iterators_that_take_turns_lose_nothing() -> None:
    """Each advances all requests, and keeps the others' deltas for them."""
    with open_small(LLAMA) as engine:
        first, second = prompts(engine)[:2]
        expected = [alone(engine, first, GREEDY), alone(engine, second, GREEDY)]
        a, b = engine.generate(first, GREEDY), engine.generate(second, GREEDY)
        found: list[list[int | None]] = [[], []]
        while len(found[0]) + len(found[1]) < 40:
            for answer, iterator in zip(found, (a, b), strict=True):
                delta = next(iterator, None)
                if delta is not None and delta.token_id is not None:
                    answer.append(delta.token_id)
        assert found == expected
        assert not list(a)
        assert not list(b)
        assert not engine.has_work


def test_an_iterator_keeps_the_deltas_of_requests_that_were_added() -> None:
    with open_small(LLAMA) as engine:
        first, second = prompts(engine)[:2]
        expected = alone(engine, second, GREEDY)
        request_id = engine.add(second, GREEDY)
        list(engine.generate(first, SamplingParams(temperature=0.0, max_tokens=40, ignore_eos=True)))
        assert run_all(engine) == {request_id: expected}


def test_an_iterator_whose_end_somebody_else_took_ends() -> None:
    with open_small(LLAMA) as engine:
        iterator = engine.generate(prompts(engine)[0], GREEDY)
        next(iterator)
        run_all(engine)
        assert list(iterator) == []
