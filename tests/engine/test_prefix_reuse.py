"""Keys and values of an earlier turn are used again, and give the same bits as computing them anew."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine import Delta, Engine, SamplingParams
from engine.kernels.layout import PAGE
from tests.engine.compact import LLAMA, MIXTURES, open_small

SAMPLED = SamplingParams(temperature=1.2, top_k=0, top_p=1.0, min_p=0.0, seed=11, max_tokens=16, ignore_eos=True)


@pytest.fixture(scope="module", params=[LLAMA, *MIXTURES])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with open_small(request.param, context_length=256) as engine:
        yield engine


def answer(engine: Engine, prompt: list[int]) -> list[Delta]:
    return list(engine.generate(prompt, SAMPLED))


def tokens(deltas: list[Delta]) -> list[int]:
    return [delta.token_id for delta in deltas if delta.token_id is not None]


def random_prompt(engine: Engine, n: int, seed: int = 1) -> list[int]:
    return np.random.default_rng(seed).integers(0, engine.info.n_vocab, n).tolist()


def test_a_second_turn_reuses_the_first_and_answers_as_without(engine: Engine) -> None:
    engine.reset_cache()
    first = random_prompt(engine, 70)
    second = [*first, *tokens(answer(engine, first)), *random_prompt(engine, 20, 2)]
    with_reuse = answer(engine, second)
    assert with_reuse[0].n_reused == 2 * PAGE  # 70 + 16 tokens, of which the last has never been computed
    engine.reset_cache()
    without = answer(engine, second)
    assert without[0].n_reused == 0
    assert tokens(with_reuse) == tokens(without)


@pytest.mark.parametrize("n", [PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 1])
def test_the_same_prompt_again_computes_at_least_its_last_token(engine: Engine, n: int) -> None:
    engine.reset_cache()
    prompt = random_prompt(engine, n)
    first, again = answer(engine, prompt), answer(engine, prompt)
    assert again[0].n_reused == (n - 1) // PAGE * PAGE
    assert tokens(first) == tokens(again)


def test_prompts_that_part_reuse_only_what_is_equal(engine: Engine) -> None:
    engine.reset_cache()
    prompt = random_prompt(engine, 3 * PAGE)
    answer(engine, prompt)
    other = [*prompt[: PAGE + 3], (prompt[PAGE + 3] + 1) % engine.info.n_vocab, *prompt[PAGE + 4 :]]
    with_reuse = answer(engine, other)
    assert with_reuse[0].n_reused == PAGE
    engine.reset_cache()
    assert tokens(answer(engine, other)) == tokens(with_reuse)


def test_evaluating_a_text_does_not_disturb_what_may_be_reused(engine: Engine) -> None:
    engine.reset_cache()
    prompt = random_prompt(engine, 70)
    expected = tokens(answer(engine, prompt))
    engine.logits(random_prompt(engine, 200, 3))
    assert tokens(answer(engine, prompt)) == expected
