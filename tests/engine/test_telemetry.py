"""The figures are exact: every expert call counted once, every token booked where it belongs."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from engine import Engine, SamplingParams
from engine.kernels.notes import N_KINDS, N_PARTS
from engine.step_ring import HEAD, StepRing
from engine.steps import BANDS
from engine.telemetry import Clock
from tests.engine.compact import LLAMA, MIXTRAL, MIXTURES, QWEN3_MOE, open_small

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
        assert stats.expert_loads >= engine.info.n_experts  # it did halt
        assert np.array_equal(stats.expert_counts, expected)
        assert stats.expert_calls == 50 * top_k * engine.info.n_moe_layers
        engine.logits(prompt)
        assert np.array_equal(engine.stats().expert_counts, 2 * expected)
        assert np.array_equal(engine.telemetry.expert_counts, 2 * expected)


@pytest.mark.parametrize("name", MIXTURES)
def test_the_newest_choice_is_the_last_tokens(name: str) -> None:
    with open_small(name) as engine:
        engine.load()
        assert (engine.telemetry.last_experts == -1).all()  # none yet
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


@pytest.mark.parametrize("name", [LLAMA, QWEN3_MOE, MIXTRAL])
def test_the_bands_of_a_token_add_up_to_its_wall_time(name: str) -> None:
    with open_small(name) as engine:
        engine.add(random_prompt(engine, 20), SamplingParams(temperature=0.0, max_tokens=90, ignore_eos=True))
        clock_s = [time.perf_counter()]
        while engine.has_work:
            engine.step()
            clock_s.append(time.perf_counter())
        steps = engine.telemetry.steps()
    assert len(steps) == len(clock_s) - 1 == 90
    assert (steps.bands_us >= 0).all()
    assert steps.bands_us.sum(1) == pytest.approx(steps.wall_us, rel=0.02)
    assert (steps.bands_us[:, BANDS.index("host")] < steps.wall_us).all()
    assert (clock_s[:-1] <= steps.began_s).all()
    assert (steps.began_s + steps.wall_us / 1e6 <= np.array(clock_s[1:]) + 1e-6).all()  # they are whole nanoseconds


def test_time_waiting_for_experts_is_a_band_of_its_own_and_still_adds_up() -> None:
    with open_small(QWEN3_MOE, expert_cache_experts=4) as engine:
        list(engine.generate(random_prompt(engine, 8), PARAMS))
        steps = engine.telemetry.steps()
    assert steps.expert_loads.sum() > 50
    assert steps.disk_bytes.sum() > 0
    disk_us = steps.bands_us[:, BANDS.index("disk")]
    assert ((disk_us > 0) == (steps.expert_loads > 0)).all()
    assert steps.bands_us.sum(1) == pytest.approx(steps.wall_us, rel=0.02)


@pytest.mark.parametrize("name", MIXTURES)
def test_the_expert_calls_of_each_step_are_its_tokens_times_layers_times_experts_a_token(name: str) -> None:
    with open_small(name) as engine:
        info = engine.info
        for n_prompt in (50, 7):
            engine.add(random_prompt(engine, n_prompt), PARAMS)
        while engine.has_work:
            engine.step()
        engine.logits(random_prompt(engine, 3))  # not a step: counted, but in nobody's row
        steps, stats = engine.telemetry.steps(), engine.stats()
    assert (steps.expert_calls == steps.n_tokens * info.n_moe_layers * info.top_k).all()
    assert steps.expert_calls.sum() == stats.expert_calls - 3 * info.n_moe_layers * info.top_k
    assert steps.n_prompt.sum() == stats.prompt_tokens == 57
    assert steps.n_answered.sum() == stats.completion_tokens == 24
    assert (steps.experts_used <= steps.expert_calls).all()
    assert (steps.experts_used <= info.n_moe_layers * info.n_experts).all()
    assert steps.expert_loads.sum() <= stats.expert_loads
    assert sorted(steps.n_sequences) == [1] * (len(steps) - 11) + [2] * 11 or steps.n_sequences.max() == 2


def test_each_step_has_the_route_of_its_last_token() -> None:
    with open_small(QWEN3_MOE) as engine:
        prompt = random_prompt(engine, 9)
        answer = [delta.token_id for delta in engine.generate(prompt, PARAMS) if delta.token_id is not None]
        routes = engine.telemetry.steps().routes
        expected = engine.evaluate(prompt + answer[:-1]).experts  # (n_layers, n_tokens, top_k)
    assert np.array_equal(routes, expected[:, len(prompt) - 1 :].transpose(1, 0, 2))


def test_the_first_token_of_a_request_is_marked_with_how_long_it_took() -> None:
    with open_small(QWEN3_MOE) as engine:
        began_s = time.perf_counter()
        for _ in range(2):
            list(engine.generate(random_prompt(engine, 40), PARAMS))
        elapsed_us = (time.perf_counter() - began_s) * 1e6
        steps = engine.telemetry.steps()
    marked = steps.ttft_us > 0
    assert marked.sum() == 2
    assert (steps.n_answered[marked] == 1).all()
    assert steps.ttft_us.sum() < elapsed_us
    in_it = steps.run_us + steps.bands_us[:, BANDS.index("sampling")]  # a part of which none lies behind the token
    assert (steps.ttft_us[marked] > 0.9 * in_it[marked]).all()


def test_weights_read_are_all_resident_matrices_and_the_chosen_experts() -> None:
    with open_small(LLAMA) as dense, open_small(QWEN3_MOE) as mixture:
        list(dense.generate(random_prompt(dense, 5), PARAMS))
        list(mixture.generate(random_prompt(mixture, 5), PARAMS))
        decoding = dense.telemetry.steps().weight_bytes[1:]
        assert len(set(decoding)) == 1
        embedding = 2 * dense.info.n_vocab * dense.info.n_embedding  # a table from which rows are taken
        assert dense.memory.weights_bytes - embedding * 2 < decoding[0] <= dense.memory.weights_bytes
        telemetry, info = mixture.telemetry, mixture.info
        experts = sum(telemetry.slab_bytes) * info.top_k
        assert experts < telemetry.steps().weight_bytes[-1] <= experts + mixture.memory.weights_bytes


def test_an_interrupted_step_leaves_no_row() -> None:
    with open_small(QWEN3_MOE) as engine:
        engine.add(random_prompt(engine, 30), PARAMS)
        engine.interrupt()
        assert engine.step() == []
        assert engine.telemetry.n_steps == 0
        while engine.has_work:
            engine.step()
        assert engine.telemetry.n_steps == 12


def test_telemetry_can_be_read_while_steps_are_written_and_after_the_engine_is_closed() -> None:
    with open_small(QWEN3_MOE) as engine:
        telemetry, seen, done = engine.telemetry, list[int](), threading.Event()

        def read() -> None:
            while not done.is_set() or (seen[-1:] or [0])[0] < telemetry.n_steps:
                steps = telemetry.steps(seen[-1] if seen else 0)
                seen.extend(steps.numbers.tolist())
                assert (steps.n_tokens > 0).all()

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(20):
            list(engine.generate(random_prompt(engine, 4), PARAMS))
        done.set()
        reader.join()
    assert seen == list(range(1, 241))
    assert len(engine.telemetry.steps()) == 240
    assert engine.telemetry.is_resident(0, 0) in (True, False)


def test_a_ring_keeps_the_newest_steps_and_drops_what_is_written_anew() -> None:
    ring, notes = StepRing(n_workers=40, n_moe_layers=1, top_k=1), np.full((40, N_PARTS, N_KINDS), 7)
    assert len(ring.read().numbers) == 0
    for number in range(ring.n_rows + 10):
        ring.begin(notes.data.cast("B"))
        notes += number
        ring.end(notes.data.cast("B"), (number,) * len(HEAD), np.full((1, 1), number % 100))
    raw = ring.read()
    assert raw.numbers[-1] == ring.n_rows + 10 and raw.numbers[0] == 12  # the oldest row may be written anew
    assert all((raw.head(name) == raw.numbers - 1).all() for name in HEAD)
    assert (raw.ticks == (raw.numbers - 1)[:, None, None, None]).all()
    assert (raw.routes[:, 0, 0] == (raw.numbers - 1) % 100).all()
    assert list(ring.read(after=ring.n_rows + 8).numbers) == [ring.n_rows + 9, ring.n_rows + 10]
    assert len(ring.read(after=ring.n_rows + 10).numbers) == 0


def test_a_clock_without_pairs_gives_a_rate_that_divides_nothing_away() -> None:
    clock = Clock()
    assert clock.ticks_per_us == 1.0
    clock.note(lambda: 1000)
    assert clock.ticks_per_us == 1.0


def test_a_clock_takes_the_closest_pair_though_the_thread_is_put_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = [0]

    def passes(ns: int) -> int:
        now_ns[0] += ns
        return now_ns[0]

    def slow_now_and_then() -> int:
        tick = passes(50) * 3
        if next(delays):
            passes(20_000_000)
        return tick

    monkeypatch.setattr("engine.telemetry.time.perf_counter_ns", lambda: passes(50))
    clock, delays = Clock(), iter([1, 0, 1, 0, 1] * 2)
    clock.note(slow_now_and_then)
    passes(50_000_000)
    clock.note(slow_now_and_then)
    assert clock.ticks_per_us == pytest.approx(3000, rel=0.01)
