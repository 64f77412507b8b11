"""One request's life: what is refused, how it ends, what its deltas say; and the engine's own end."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import psutil
import pytest

from engine import Delta, Engine, EngineConfig, SamplingParams
from engine.errors import ContextLengthError, EngineClosedError, InvalidRequestError
from tests.engine.compact import LLAMA, MIXTRAL, OLMOE, model_path, open_small

PROMPT = [5, 17, 200, 3, 88]


def greedy(**changes: Any) -> SamplingParams:
    return SamplingParams(**{"temperature": 0.0, "max_tokens": 24, "ignore_eos": True, **changes})


def wild(**changes: Any) -> SamplingParams:
    return SamplingParams(**{"temperature": 3.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "max_tokens": 40, **changes})


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with open_small(LLAMA) as engine:
        yield engine


def tokens(deltas: list[Delta]) -> list[int]:
    return [delta.token_id for delta in deltas if delta.token_id is not None]


def text(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas)


# What is refused ------------------------------------------------------------------------------------------------------


def test_a_prompt_that_fills_the_context_is_refused_with_both_numbers(engine: Engine) -> None:
    with pytest.raises(ContextLengthError, match=r"128 tokens.*context holds 128"):
        engine.add([1] * 128)
    with pytest.raises(ContextLengthError, match=r"1000 tokens.*context holds 128"):
        engine.logits([1] * 1000)


def test_an_empty_prompt_is_refused(engine: Engine) -> None:
    for call in (engine.add, engine.logits):
        with pytest.raises(InvalidRequestError, match="empty"):
            call([])


@pytest.mark.parametrize("token", [-1, 1 << 20, 1 << 40])
def test_a_token_outside_of_the_vocabulary_is_refused(engine: Engine, token: int) -> None:
    for call in (engine.add, engine.logits):
        with pytest.raises(InvalidRequestError, match="outside of the vocabulary"):
            call([1, token])


def test_the_first_token_beyond_the_vocabulary_is_refused_and_the_last_in_it_is_not(engine: Engine) -> None:
    n_vocab = engine.info.n_vocab
    with pytest.raises(InvalidRequestError):
        engine.logits([n_vocab])
    assert engine.logits([n_vocab - 1]).shape == (1, n_vocab)


@pytest.mark.parametrize("bias", [{-1: 1.0}, {1 << 20: 1.0}, {3: math.nan}, {3: math.inf}, {3: -1e300}])
def test_a_senseless_logit_bias_is_refused(engine: Engine, bias: dict[int, float]) -> None:
    with pytest.raises(InvalidRequestError, match="logit_bias"):
        engine.add(PROMPT, greedy(logit_bias=bias))
    assert not engine.has_work


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_k", -1),
        ("top_p", 1.1),
        ("min_p", -0.5),
        ("repetition_penalty", 0.0),
        ("presence_penalty", math.nan),
        ("penalty_window", 5000),
        ("max_tokens", 0),
        ("seed", 1 << 64),
        ("stop", ("",)),
    ],
)
def test_sampling_values_out_of_range_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequestError, match="stop string" if name == "stop" else name):
        SamplingParams(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("context_length", 31),
        ("threads", 0),
        ("threads", 100_000),
        ("max_batch_tokens", 0),
        ("max_sequences", 0),
        ("kv_pool_tokens", 64),
        ("kv_type", "q8"),
        ("activations", "int8"),
        ("cache_policy", "random"),
        ("expert_cache_experts", 0),
    ],
)
def test_configurations_out_of_range_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InvalidRequestError, match=name):
        EngineConfig(**{name: value})


def test_evaluating_while_requests_run_is_refused(engine: Engine) -> None:
    request_id = engine.add(PROMPT, greedy())
    with pytest.raises(InvalidRequestError, match="without requests"):
        engine.logits(PROMPT)
    engine.cancel(request_id)
    engine.step()


# How it ends ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7])
def test_max_tokens_ends_with_length(engine: Engine, n: int) -> None:
    deltas = list(engine.generate(PROMPT, greedy(max_tokens=n)))
    assert len(tokens(deltas)) == n
    assert [d.finish_reason for d in deltas if d.finish_reason] == ["length"]
    assert deltas[-1].finish_reason == "length"


@pytest.mark.parametrize("n_prompt", [5, 100, 126, 127])
def test_a_full_context_ends_with_context(engine: Engine, n_prompt: int) -> None:
    deltas = list(engine.generate([9] * n_prompt, greedy(max_tokens=None)))
    assert deltas[-1].finish_reason == "context"
    assert n_prompt + len(tokens(deltas)) == 128


def test_an_end_token_ends_with_stop_unless_ignored(engine: Engine) -> None:
    end = min(engine.tokenizer.end_ids)
    stopped = list(engine.generate(PROMPT, greedy(ignore_eos=False, logit_bias={end: 1000.0})))
    assert tokens(stopped) == [end]
    assert stopped[-1].finish_reason == "stop"
    assert text(stopped) == ""
    ignored = list(engine.generate(PROMPT, greedy(max_tokens=5, logit_bias={end: 1000.0})))
    assert tokens(ignored) == [end] * 5
    assert ignored[-1].finish_reason == "length"


def test_cancelling_brings_one_last_delta_with_the_next_step(engine: Engine) -> None:
    request_id = engine.add(PROMPT, greedy(max_tokens=None))
    for _ in range(4):
        engine.step()
    engine.cancel(request_id)
    engine.cancel(request_id)
    engine.cancel(123_456)
    assert engine.has_work
    deltas = engine.step()
    assert [(d.request_id, d.finish_reason, d.token_id) for d in deltas] == [(request_id, "cancelled", None)]
    assert not engine.has_work
    assert engine.step() == []


def test_cancelling_before_the_first_step_works(engine: Engine) -> None:
    request_id = engine.add(PROMPT)
    engine.cancel(request_id)
    assert [d.finish_reason for d in engine.step()] == ["cancelled"]


def test_closing_the_iterator_cancels(engine: Engine) -> None:
    iterator = engine.generate(PROMPT, greedy(max_tokens=None))
    next(iterator)
    iterator.close()
    assert not engine.has_work
    assert engine.stats().kv_used_tokens == 0


def test_prefill_is_reported_while_a_prompt_is_read(engine: Engine) -> None:
    engine.reset_cache()
    deltas = list(engine.generate([7] * 100, greedy(max_tokens=1)))
    assert [(d.n_prefilled, d.token_id is None) for d in deltas] == [(32, True), (64, True), (96, True), (100, False)]
    assert all(d.n_prompt_tokens == 100 for d in deltas)


# Text -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [LLAMA, MIXTRAL, OLMOE])
@pytest.mark.parametrize("seed", range(6))
def test_deltas_joined_equal_the_decoding_of_their_tokens(name: str, seed: int) -> None:
    with open_small(name) as engine:
        deltas = list(engine.generate(PROMPT, wild(seed=seed, ignore_eos=True)))
        assert text(deltas) == engine.tokenizer.decode(tokens(deltas))


@pytest.mark.parametrize("seed", range(12))
def test_a_stop_string_across_tokens_ends_before_it(engine: Engine, seed: int) -> None:
    whole = text(list(engine.generate(PROMPT, wild(seed=seed, ignore_eos=True))))
    for first, length in ((3, 1), (5, 4), (10, 9), (len(whole) // 2, 6)):
        stop = whole[first : first + length]
        if not stop:
            continue
        deltas = list(engine.generate(PROMPT, wild(seed=seed, ignore_eos=True, stop=(stop, "never comes"))))
        assert text(deltas) == whole[: whole.index(stop)]
        assert deltas[-1].finish_reason == "stop"
        assert sum(d.finish_reason is not None for d in deltas) == 1


def test_text_held_back_for_a_stop_string_that_does_not_come_is_given_at_the_end(engine: Engine) -> None:
    whole = text(list(engine.generate(PROMPT, wild(seed=1, ignore_eos=True))))
    deltas = list(engine.generate(PROMPT, wild(seed=1, ignore_eos=True, stop=(whole[-3:] + "\0\0",))))
    assert text(deltas) == whole
    assert deltas[-1].finish_reason == "length"


# Sampling -------------------------------------------------------------------------------------------------------------


def test_equal_seeds_give_equal_answers_and_others_do_not(engine: Engine) -> None:
    answers = [tokens(list(engine.generate(PROMPT, wild(seed=seed)))) for seed in (1, 1, 2, -1, 2**64 - 1)]
    assert answers[0] == answers[1]
    assert answers[3] == answers[4]  # the same 64 bits
    assert len({tuple(answer) for answer in answers}) == 3


def test_without_a_seed_answers_differ(engine: Engine) -> None:
    first, second = (tokens(list(engine.generate(PROMPT, wild()))) for _ in range(2))
    assert first != second


def test_greedy_takes_the_largest_logit_at_every_step(engine: Engine) -> None:
    answer = tokens(list(engine.generate(PROMPT, greedy())))
    logits = engine.logits([*PROMPT, *answer])
    assert answer == np.argmax(logits[len(PROMPT) - 1 : -1], -1).tolist()


def test_bias_forbids_and_forces(engine: Engine) -> None:
    natural = tokens(list(engine.generate(PROMPT, greedy(max_tokens=1))))[0]
    assert natural not in tokens(list(engine.generate(PROMPT, greedy(logit_bias={natural: -1e9}))))
    assert tokens(list(engine.generate(PROMPT, greedy(max_tokens=3, logit_bias={42: 1e9})))) == [42] * 3


def test_a_strong_repetition_penalty_never_repeats_within_its_window(engine: Engine) -> None:
    answer = tokens(list(engine.generate(PROMPT, greedy(max_tokens=60, presence_penalty=100.0))))
    assert len({*PROMPT, *answer}) == len(PROMPT) + len(answer)
    loops = tokens(list(engine.generate(PROMPT, greedy(max_tokens=60, presence_penalty=100.0, penalty_window=1))))
    assert all(a != b for a, b in pairwise(loops))


# The engine's end -----------------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[Engine], Any]] = {
    "add": lambda engine: engine.add(PROMPT),
    "step": lambda engine: engine.step(),
    "logits": lambda engine: engine.logits(PROMPT),
    "generate": lambda engine: next(engine.generate(PROMPT)),
    "stats": lambda engine: engine.stats(),
    "reset_cache": lambda engine: engine.reset_cache(),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_closed_engine_says_so(call: str) -> None:
    engine = open_small(MIXTRAL)
    engine.logits(PROMPT)
    counts = engine.telemetry.expert_counts.copy()
    engine.close()
    engine.close()
    with pytest.raises(EngineClosedError, match="closed"):
        CALLS[call](engine)
    assert np.array_equal(engine.telemetry.expert_counts, counts)  # the last figures stay readable
    assert not engine.has_work


def test_an_iterator_outlives_its_engine_harmlessly() -> None:
    engine = open_small(LLAMA)
    iterator = engine.generate(PROMPT, greedy(max_tokens=None))
    next(iterator)
    engine.close()
    with pytest.raises(EngineClosedError):
        next(iterator)
    iterator.close()


def test_closing_ends_all_threads() -> None:
    before = set(threading.enumerate())
    with open_small(LLAMA, threads=4) as engine:
        engine.logits(PROMPT)
        assert len(set(threading.enumerate()) - before) == 3
    assert set(threading.enumerate()) == before


def test_opening_many_times_keeps_no_memory() -> None:
    process = psutil.Process()

    def use_once() -> None:
        with open_small(MIXTRAL, context_length=256, kv_pool_tokens=32_768) as engine:  # 32 MB of keys and values
            assert engine.memory.kv_bytes > 30e6
            list(engine.generate(PROMPT, greedy(max_tokens=4)))

    for _ in range(3):
        use_once()
    before, mapped_before = process.memory_info().rss, process.memory_info().vms
    for _ in range(20):
        use_once()
    assert process.memory_info().rss - before < 16e6
    assert process.memory_info().vms - mapped_before < 200e6
    assert not [file for file in process.memory_maps() if file.path == str(model_path(MIXTRAL))]


def test_progress_of_the_weights_reaches_the_end() -> None:
    seen: list[tuple[str, float]] = []
    with open_small(LLAMA) as engine:
        engine.load(lambda phase, done: seen.append((phase, done)))
        assert seen[-1] == ("weights", 1.0)
        assert [done for _, done in seen] == sorted(done for _, done in seen)
        engine.load()  # which returns at once
