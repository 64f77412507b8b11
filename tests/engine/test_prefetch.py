"""Asking for experts ahead of their turn: it never shows in a result, and what is counted about it is exact."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Engine, SamplingParams
from engine.errors import InvalidRequestError, ModelFormatError
from tests.engine.compact import MIXTRAL, MIXTURES, QWEN3_MOE, model_path, open_model, open_small, small_config

SAMPLING = SamplingParams(temperature=1.0, max_tokens=20, seed=7, ignore_eos=True)
NEW_KERNELS = {"foresee", "ask"}


def prompts(engine: Engine, n: int) -> list[list[int]]:
    rng = np.random.default_rng(n)
    return [rng.integers(0, engine.info.n_vocab, 5 + 9 * i).tolist() for i in range(n)]


def answers(engine: Engine, n: int = 3, *, interrupted_before: tuple[int, ...] = ()) -> dict[int, list[int]]:
    ids = [engine.add(prompt, replace(SAMPLING, seed=i)) for i, prompt in enumerate(prompts(engine, n))]
    tokens: dict[int, list[int]] = {request_id: [] for request_id in ids}
    n_steps = 0
    while engine.has_work:
        if n_steps in interrupted_before:
            engine.interrupt()
            assert engine.step() == []
        for delta in engine.step():
            if delta.token_id is not None:
                tokens[delta.request_id].append(delta.token_id)
        n_steps += 1
    return tokens


def small_caches(engine: Engine) -> list[int]:
    info = engine.info
    return [info.top_k, info.top_k + 1, info.n_experts, info.n_experts * info.n_moe_layers - 1]


@pytest.mark.parametrize("name", MIXTURES)
def test_logits_and_routes_are_the_same_bits_with_any_cache_and_policy(name: str) -> None:
    with open_small(name) as engine:
        (prompt,) = prompts(engine, 1)
        prompt, expected, sizes = prompt * 6, engine.evaluate(prompt * 6), small_caches(engine)
    for policy in ("lru", "lfu", "fifo"):
        for capacity in sizes:
            limits: dict[str, Any] = {"expert_cache_experts": capacity, "cache_policy": policy}
            with open_small(name, prefetch="always", **limits) as engine:
                found = engine.evaluate(prompt)
                has_next_layer = engine.info.n_moe_layers > 1
                assert (engine._open_model.expert_sums().foresight.foreseeable > 0) == has_next_layer
            np.testing.assert_array_equal(found.logits, expected.logits)
            np.testing.assert_array_equal(found.experts, expected.experts)
            np.testing.assert_array_equal(found.expert_weights, expected.expert_weights)


@pytest.mark.parametrize("name", [MIXTRAL, QWEN3_MOE])
def test_answers_and_what_the_cache_did_are_the_same_with_it_and_without(name: str) -> None:
    with open_small(name) as engine:
        expected, sizes = answers(engine), small_caches(engine)
    for capacity in sizes:
        cached = []
        for prefetch in ("never", "always"):
            with open_small(name, expert_cache_experts=capacity, prefetch=prefetch) as engine:
                assert answers(engine) == expected
                stats, sums = engine.stats(), engine._open_model.expert_sums()
                cached.append((stats.expert_loads, stats.expert_evictions, stats.expert_bytes_read, sums.used))
        assert cached[0] == cached[1]


@pytest.mark.parametrize("name", MIXTURES)
def test_all_that_was_asked_for_is_found_to_have_been_needed_or_not(name: str) -> None:
    with open_small(name, expert_cache_experts=5, prefetch="always") as engine:
        answers(engine)
        sums = engine._open_model.expert_sums()
        slab_sources = {layer.experts.source_bytes for layer in engine._open_model.layers[1:]}
    ahead = sums.foresight
    assert ahead.asked == ahead.used + ahead.unused
    assert (ahead.asked > 0) == bool(slab_sources)  # of one layer nobody looks ahead
    assert ahead.used <= ahead.foreseen <= ahead.foreseeable <= sums.used
    assert ahead.used <= sums.loads
    if len(slab_sources) == 1:
        assert ahead.asked_bytes == ahead.asked * slab_sources.pop()


def test_what_was_foreseen_is_what_the_next_router_likes_of_this_layers_state() -> None:
    """Where one layer's router sees what the next one's does, foresight is perfect: all experts are chosen."""
    with open_small(QWEN3_MOE, expert_cache_experts=7, prefetch="always", top_k=4) as engine:
        answers(engine, 1)
        ahead = engine._open_model.expert_sums().foresight
    assert ahead.foreseen == ahead.foreseeable > 0


def test_interrupted_steps_change_neither_answers_nor_the_balance() -> None:
    with open_small(MIXTRAL) as engine:
        expected = answers(engine)
    with open_small(MIXTRAL, expert_cache_experts=5, prefetch="always") as engine:
        assert answers(engine, interrupted_before=(0, 1, 3, 7)) == expected
        ahead = engine._open_model.expert_sums().foresight
    assert ahead.asked == ahead.used + ahead.unused


@pytest.mark.parametrize("limits", [{}, {"expert_cache_experts": 5, "prefetch": "never"}])
def test_a_plan_that_asks_for_nothing_has_not_one_operation_more(limits: dict[str, Any]) -> None:
    plans = []
    for changes in ({}, limits, {"expert_cache_experts": 5, "prefetch": "always"}):
        model = open_model(MIXTRAL, max_batch_tokens=2, **changes)
        plans.append([operation.kernel for stage in model.plan.stages for operation in stage.operations])
        model.close()
    assert plans[0] == plans[1] != plans[2]
    assert NEW_KERNELS.isdisjoint(plans[0])
    assert set(plans[2]) >= NEW_KERNELS


def test_the_routers_of_a_plan_that_looks_ahead_are_held_once() -> None:
    weights = []
    for changes in ({"prefetch": "never"}, {"prefetch": "always"}):
        with open_small(MIXTRAL, expert_cache_experts=5, **changes) as engine:
            weights.append(engine.memory.weights_bytes)
            n_embedding = engine.info.n_embedding
    assert weights[1] - weights[0] == 4 * n_embedding  # the next layer's norm


def test_calibration_sees_each_input_once() -> None:
    for changes in ({"measures_inputs": True}, {"keeps_inputs": "ffn_gate_inp.weight"}):
        model = open_model(MIXTRAL, expert_cache_experts=5, prefetch="always", **changes)
        kernels = {operation.kernel for stage in model.plan.stages for operation in stage.operations}
        model.close()
        assert NEW_KERNELS.isdisjoint(kernels)


@pytest.mark.parametrize("prefetch", ["never", "always"])
def test_a_file_cut_short_is_reported_when_an_expert_is_needed(prefetch: str, tmp_path: Path) -> None:
    path = Path(shutil.copy(model_path(MIXTRAL), tmp_path / "model.gguf"))
    with Engine.open(path, small_config(expert_cache_experts=4, prefetch=prefetch)) as engine:
        engine.load()
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(ModelFormatError, match=r"expected the \d+ bytes that it had when it was opened, found \d+"):
            answers(engine, 1)


def test_an_unknown_way_of_prefetching_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequestError, match="prefetch must be one of auto, always, never, not 'maybe'"):
        small_config(prefetch="maybe")


def test_the_rows_of_the_steps_add_up_to_what_was_counted() -> None:
    with open_small(MIXTRAL, expert_cache_experts=5, prefetch="always") as engine:
        answers(engine)
        steps, total = engine.telemetry.steps(), engine.stats().foresight
    columns = (steps.experts_foreseeable, steps.experts_foreseen, steps.experts_asked)
    assert [int(column.sum()) for column in columns] == [total.foreseeable, total.foreseen, total.asked]
    columns = (steps.asked_bytes, steps.asked_used, steps.asked_unused)
    assert [int(column.sum()) for column in columns] == [total.asked_bytes, total.used, total.unused]
    assert (steps.asked_used + steps.asked_unused == steps.experts_asked).all()
    assert (steps.experts_foreseen <= steps.experts_foreseeable).all()


def test_nothing_is_counted_where_nothing_is_asked_for() -> None:
    with open_small(MIXTRAL, expert_cache_experts=5, prefetch="never") as engine:
        answers(engine)
        steps = engine.telemetry.steps()
    assert not steps.experts_foreseeable.any()
    assert not steps.experts_asked.any()
