"""The figures are exact: every expert call counted once, every token booked where it belongs."""

from __future__ import annotations

import numpy as np
import pytest

from engine import Engine, SamplingParams
from engine.telemetry import Clock
from tests.engine.compact import LLAMA, MIXTURES, QWEN3_MOE, open_small

PARAMS = SamplingParams(temperature=0.0, max_tokens=12, ignore_eos=True)


def random_prompt(engine: Engine, n: int) -> list[int]:
    return np.random.default_rng(2).integers(0, engine.info.n_vocab, n).tolist()


@pytest.mark.parametrize("policy", ["lru", "lfu", "fifo"])
@pytest.mark.parametrize("name", MIXTURES)
def test_every_expert_call_is_counted_once_though_steps_halt_for_missing_experts(name: str, policy: str) -> None:
    with open_small(name) as engine:
        top_k, prompt = engine.info.top_k, random_prompt(engine, 50)
        routes = engine.evaluate(prompt).experts
    expected = np.stack([np.bincount(layer.ravel(), minlength=engine.info.n_experts) for layer in routes])
    with open_small(name, expert_cache_experts=2 * top_k, cache_policy=policy) as engine:
        engine.logits(prompt)
        stats = engine.stats()
        assert stats.expert_loads > engine.info.n_experts  # it did halt
        assert np.array_equal(stats.expert_counts, expected)
        assert stats.expert_calls == 50 * top_k * engine.info.n_moe_layers
        engine.logits(prompt)
        assert np.array_equal(engine.stats().expert_counts, 2 * expected)
        assert np.array_equal(engine.telemetry.expert_counts, 2 * expected)


@pytest.mark.parametrize("name", MIXTURES)
def test_the_newest_choice_is_the_last_tokens(name: str) -> None:
    with open_small(name) as engine:
        prompt = random_prompt(engine, 45)
        assert np.array_equal(engine.evaluate(prompt).experts[:, -1], engine.telemetry.last_experts)


def test_tokens_are_booked_as_computed_reused_or_generated() -> None:
    with open_small(QWEN3_MOE) as engine:
        prompt = random_prompt(engine, 70)
        list(engine.generate(prompt, PARAMS))
        first = engine.stats()
        assert (first.prompt_tokens, first.reused_tokens, first.completion_tokens) == (70, 0, 12)
        list(engine.generate(prompt, PARAMS))
        second = engine.stats()
        assert (second.prompt_tokens, second.reused_tokens, second.completion_tokens) == (70 + 6, 64, 24)
        n_computed = 70 + 6 + 2 * 11  # the last token of an answer is never fed back
        assert second.expert_calls == n_computed * engine.info.top_k * engine.info.n_moe_layers
        assert second.prefill_ms > first.prefill_ms > 0
        assert second.decode_ms > first.decode_ms > 0


def test_pages_in_use_are_counted_while_a_request_runs() -> None:
    with open_small(LLAMA, kv_pool_tokens=256) as engine:
        request_id = engine.add(random_prompt(engine, 33), PARAMS)
        while engine.stats().completion_tokens == 0:
            engine.step()
        assert engine.stats().kv_used_tokens == 64
        assert engine.stats().kv_total_tokens == 256
        engine.cancel(request_id)
        assert engine.stats().kv_used_tokens == 0


def test_times_by_kind_add_up_to_less_than_the_wall_time() -> None:
    with open_small(QWEN3_MOE) as engine:
        list(engine.generate(random_prompt(engine, 100), PARAMS))
        stats = engine.stats()
        assert {"attention", "router", "experts", "norms", "output", "embedding"} == set(stats.times_us)
        assert all(time >= 0 for time in stats.times_us.values())
        assert 0 < sum(stats.times_us.values()) / 1e3 <= stats.prefill_ms + stats.decode_ms


def test_a_dense_model_has_no_experts_to_count() -> None:
    with open_small(LLAMA) as engine:
        engine.logits(random_prompt(engine, 5))
        stats = engine.stats()
        assert (stats.expert_calls, stats.expert_loads, stats.experts_capacity) == (0, 0, 0)
        assert stats.expert_counts.size == 0
        assert engine.telemetry.moe_layers == []


def test_a_clock_without_runs_gives_a_rate_that_divides_nothing_away() -> None:
    clock = Clock()
    assert clock.ticks_per_us == 1.0
    clock.note(1000)
    assert clock.ticks_per_us == 1.0
