"""Each architecture against an independent float32 evaluation of the same file: logits, routes, greedy tokens."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Engine, EngineConfig, SamplingParams
from tests.support.fixtures import Case, Prompt, fixture_cases

CASES = fixture_cases()
LIMIT = 1e-3  # of a float32 engine with another order of summation
REFERENCE = EngineConfig(context_length=256, max_batch_tokens=64, activations="float32", kv_type="f32")
ROUNDED = EngineConfig(context_length=256, max_batch_tokens=64)
GREEDY = SamplingParams(temperature=0.0, max_tokens=24, ignore_eos=True)


def greedy_ids(engine: Engine, prompt: Prompt) -> list[int]:
    return [d.token_id for d in engine.generate(prompt.input_ids, GREEDY) if d.token_id is not None]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_float32_path_equals_the_reference(case: Case) -> None:
    with Engine.open(case.path, REFERENCE) as engine:
        for prompt in case.prompts:
            found = engine.evaluate(prompt.input_ids)
            np.testing.assert_allclose(found.logits[prompt.positions], prompt.logits, rtol=LIMIT, atol=LIMIT)
            if prompt.router_idx is not None:
                assert np.array_equal(found.experts, prompt.router_idx)
                np.testing.assert_allclose(found.expert_weights, prompt.router_w, rtol=LIMIT, atol=1e-4)
            assert greedy_ids(engine, prompt) == prompt.greedy_ids


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rounded_activations_stay_close(case: Case) -> None:
    """In these small random models rounding may move a router across a near tie; that position then differs much."""
    differences, n_routes, n_equal = [], 0, 0
    with Engine.open(case.path, ROUNDED) as engine:
        for prompt in case.prompts:
            found = engine.evaluate(prompt.input_ids)
            differences.append(np.abs(found.logits[prompt.positions] - prompt.logits).max(-1))
            if prompt.router_idx is not None:
                same = np.all(np.sort(found.experts, -1) == np.sort(prompt.router_idx, -1), -1)
                n_routes, n_equal = n_routes + same.size, n_equal + int(same.sum())
    limit = (
        0.06 if case.architecture == "granitemoe" else 0.03
    )  # llama.cpp's: 0.38 for that one, 0.12 and more elsewhere
    assert np.median(np.concatenate(differences)) < limit
    assert n_equal >= 0.98 * n_routes


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_logits_do_not_depend_on_threads_pieces_or_cache(case: Case) -> None:
    prompt = case.prompts[1]
    with Engine.open(case.path, ROUNDED) as engine:
        expected = engine.logits(prompt.input_ids)
        n_experts = engine.info.n_experts
    others = [
        EngineConfig(context_length=256, max_batch_tokens=64, threads=1),
        EngineConfig(context_length=256, max_batch_tokens=64, threads=3),
        EngineConfig(context_length=256, max_batch_tokens=7),
        EngineConfig(context_length=256, max_batch_tokens=1, max_sequences=1),
    ]
    if n_experts:
        others += [
            EngineConfig(context_length=256, max_batch_tokens=64, expert_cache_experts=n_experts, cache_policy=policy)
            for policy in ("lru", "lfu", "fifo")
        ]
        others.append(EngineConfig(context_length=256, expert_cache_experts=engine.info.top_k))
    for config in others:
        with Engine.open(case.path, config) as engine:
            assert np.array_equal(engine.logits(prompt.input_ids), expected), config
