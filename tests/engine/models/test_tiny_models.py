"""Every architecture, on tiny random models: results that depend on nothing but the tokens."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.kernels.layout import PAGE
from tests.support.tiny_models import TINY, TINY_MODELS, tiny_model

CONTEXT = 256
SAMPLED = SamplingParams(temperature=1.2, top_k=0, top_p=1.0, min_p=0.0, seed=5, max_tokens=40, ignore_eos=True)


def prompt(n: int, seed: int = 1) -> list[int]:
    return np.random.default_rng(seed).integers(0, TINY.n_vocab, n).tolist()


def open_tiny(name: str, **changes: object) -> Engine:
    return Engine.open(tiny_model(name), EngineConfig(**{"context_length": CONTEXT, "max_batch_tokens": 64, **changes}))


@pytest.fixture(scope="module", params=sorted(TINY_MODELS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def engine(name: str) -> Iterator[Engine]:
    with open_tiny(name) as engine:
        yield engine


def tokens(engine: Engine, ids: list[int]) -> list[int]:
    return [delta.token_id for delta in engine.generate(ids, SAMPLED) if delta.token_id is not None]


def test_logits_do_not_depend_on_threads_pieces_or_cache(engine: Engine, name: str) -> None:
    ids = prompt(3 * PAGE + 7)
    expected = engine.logits(ids)
    assert np.isfinite(expected).all()
    changes: list[dict[str, object]] = [
        {"threads": 1},
        {"threads": 3},
        {"max_batch_tokens": 7},
        {"max_batch_tokens": 1, "max_sequences": 1},
    ]
    if engine.info.n_experts:
        changes.append({"expert_cache_experts": engine.info.top_k})
    for change in changes:
        with open_tiny(name, **change) as other:
            assert np.array_equal(other.logits(ids), expected), change


def test_an_earlier_turn_is_used_again_with_the_same_result(engine: Engine) -> None:
    engine.reset_cache()
    first = prompt(70)
    answer = tokens(engine, first)
    second = [*first, *answer, *prompt(20, 2)]
    n_before = engine.stats().reused_tokens
    with_reuse = tokens(engine, second)
    assert engine.stats().reused_tokens > n_before
    engine.reset_cache()
    assert tokens(engine, second) == with_reuse


def test_an_edited_conversation_continues_as_if_it_were_new(engine: Engine) -> None:
    engine.reset_cache()
    first = prompt(100)
    tokens(engine, first)
    edited = [*first[:75], *prompt(30, 3)]
    with_reuse = tokens(engine, edited)
    engine.reset_cache()
    assert tokens(engine, edited) == with_reuse


def test_a_token_generated_equals_a_token_read(engine: Engine) -> None:
    """Greedy decoding token by token, beside another request, chooses what one pass over the whole text says."""
    engine.reset_cache()
    greedy = SamplingParams(temperature=0.0, max_tokens=60, ignore_eos=True)
    other = engine.add(prompt(50, 4), SAMPLED)
    ids = prompt(60)
    chosen = [delta.token_id for delta in engine.generate(ids, greedy) if delta.token_id is not None]
    engine.cancel(other)
    engine.step()
    logits = engine.logits([*ids, *chosen[:-1]])
    if engine.info.architecture != "phi3":  # read in one pass, all of it rotates as long sequences do
        assert logits[len(ids) - 1 :].argmax(-1).tolist() == chosen


def test_a_conversation_that_outgrows_short_rotation_is_computed_anew_as_a_long_one() -> None:
    with open_tiny("phi3") as engine:
        greedy = SamplingParams(temperature=0.0, max_tokens=60, ignore_eos=True)
        ids = prompt(60)  # of 96 that short rotation is for
        chosen = [delta.token_id for delta in engine.generate(ids, greedy) if delta.token_id is not None]
        for n in (1, 36, 37, 50, 60):
            assert engine.logits([*ids, *chosen[: n - 1]])[-1].argmax() == chosen[n - 1], n
        short, long = engine.logits(ids), engine.logits([*ids, *chosen])
        assert not np.array_equal(short, long[:60])
