"""Experts under a limit: which give way, and that it never shows in a result."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import InvalidRequestError
from engine.experts.store import ExpertStore
from engine.loader import Loader
from engine.model import Model
from engine.models.weights import Packing
from tests.engine.compact import LLAMA, MIXTRAL, MIXTURES, QWEN3_MOE, open_model, open_small


def random_prompt(n_vocab: int, n: int = 40) -> list[int]:
    return np.random.default_rng(4).integers(0, n_vocab, n).tolist()


@pytest.mark.parametrize("name", MIXTURES)
def test_any_cache_size_and_policy_gives_the_same_bits(name: str) -> None:
    with open_small(name) as engine:
        prompt, info = random_prompt(engine.info.n_vocab), engine.info
        expected = engine.logits(prompt)
    everything = info.n_experts * info.n_moe_layers
    for policy in ("lru", "lfu", "fifo"):
        for capacity in (info.top_k, info.top_k + 1, info.n_experts, everything - 1, everything, 10 * everything):
            with open_small(name, expert_cache_experts=capacity, cache_policy=policy) as engine:
                assert np.array_equal(engine.logits(prompt), expected), (policy, capacity)
                stats = engine.stats()
                assert stats.experts_capacity == min(capacity, everything)
                assert stats.experts_resident <= stats.experts_capacity
                assert stats.expert_loads - stats.expert_evictions == stats.experts_resident
                assert (stats.expert_evictions > 0) == (capacity < stats.experts_resident + stats.expert_evictions)
                assert stats.expert_bytes_read > 0


def test_a_limit_in_bytes_is_kept() -> None:
    with open_small(MIXTRAL) as engine:
        slab_bytes = engine.memory.expert_bytes // (engine.info.n_experts * engine.info.n_moe_layers)
    with open_small(MIXTRAL, expert_cache_bytes=5 * slab_bytes + slab_bytes // 2) as engine:
        assert engine.stats().experts_capacity == 5
        assert engine.memory.expert_bytes <= 5 * slab_bytes + 64


@pytest.mark.parametrize("limit", [{"expert_cache_experts": 1}, {"expert_cache_bytes": 1}])
def test_a_cache_smaller_than_one_token_needs_is_refused_with_both_numbers(limit: dict[str, int]) -> None:
    with pytest.raises(InvalidRequestError, match=r"would hold [01] experts, but each token needs 2"):
        open_small(MIXTRAL, **limit)


def slots_of(model: Model, layer: int) -> list[int]:
    return [int(slot) for slot in model.store.slots[layer]]


def opened(policy: str, capacity: int = 4) -> Model:
    return open_model(MIXTRAL, expert_cache_experts=capacity, cache_policy=policy)


def load(model: Model, layer: int, *experts: int) -> None:
    model.store.load(layer, np.array(experts, np.int32), model._loader)


def resident(model: Model, layer: int) -> set[int]:
    return {expert for expert, slot in enumerate(slots_of(model, layer)) if slot}


def test_fifo_lets_the_first_loaded_go() -> None:
    model = opened("fifo")
    try:
        load(model, 0, 5)
        load(model, 0, 1)
        load(model, 1, 2, 3)
        load(model, 0, 5)  # being used again does not help it
        load(model, 1, 7)
        assert (resident(model, 0), resident(model, 1)) == ({1}, {2, 3, 7})
        assert model.store.n_evictions == 1
    finally:
        model.close()


@pytest.mark.parametrize("policy", ["lru", "lfu"])
def test_age_or_use_decides_over_all_layers(policy: str) -> None:
    model = opened(policy)
    try:
        load(model, 0, 1, 2)
        load(model, 1, 3, 4)
        ages = model.store._victims._ages
        assert ages is not None
        ages[0, 1], ages[0, 2], ages[1, 3], ages[1, 4] = 9, 3, 2, 8
        load(model, 0, 6)
        ages[0, 6] = 10
        assert (resident(model, 0), resident(model, 1)) == ({1, 2, 6}, {4})
        load(model, 1, 0, 1)
        assert (resident(model, 0), resident(model, 1)) == ({1, 6}, {0, 1})
    finally:
        model.close()


@pytest.mark.parametrize("policy", ["lru", "lfu", "fifo"])
def test_an_expert_that_the_step_needs_never_gives_way(policy: str) -> None:
    model, rng = opened(policy), np.random.default_rng(0)
    try:
        for _ in range(100):
            layer, wanted = int(rng.integers(2)), rng.choice(8, int(rng.integers(1, 5)), replace=False)
            load(model, layer, *wanted)
            assert set(wanted.tolist()) <= resident(model, layer)
            slots = [slot for layer in (0, 1) for slot in slots_of(model, layer) if slot]
            assert len(slots) == len(set(slots)) == model.store.n_resident <= 4
            assert not model.store.missing(layer, wanted)
    finally:
        model.close()


def test_more_experts_at_once_than_the_cache_holds_are_refused() -> None:
    model = opened("lru")
    try:
        with pytest.raises(InvalidRequestError, match="needs 5 experts of a layer at once, but the cache holds 4"):
            load(model, 0, 0, 1, 2, 3, 4)
    finally:
        model.close()


class InterruptedLoader(Loader):
    """A loader that the user interrupts before anything is read."""

    def load(self, packings: list[Packing], progress: object = None) -> None:
        raise KeyboardInterrupt


def test_an_interrupted_load_leaves_no_expert_that_only_seems_to_be_there() -> None:
    model = open_model(QWEN3_MOE, expert_cache_experts=4)
    try:
        load(model, 0, 0, 1)
        interrupted = InterruptedLoader(model.library, model._team, model.batch.one)  # type: ignore[arg-type]
        for _ in range(3):
            with pytest.raises(KeyboardInterrupt):
                model.store.load(0, np.array([1, 2, 3], np.int32), interrupted)
        assert resident(model, 0) == {0, 1}
        load(model, 0, 0, 1, 2, 3)
        assert resident(model, 0) == {0, 1, 2, 3}
        assert len(set(slots_of(model, 0))) == 4
    finally:
        model.close()


def test_a_store_without_experts_takes_no_memory() -> None:
    model = open_model("qwen2-mixed")
    try:
        assert isinstance(model.store, ExpertStore)
        assert (model.store.capacity, model.store.slab_bytes, model.memory_plan().expert_bytes) == (0, 0, 0)
    finally:
        model.close()


def test_a_batch_never_needs_more_experts_than_the_cache_holds() -> None:
    model = open_model(MIXTRAL, max_batch_tokens=64, expert_cache_experts=5)
    try:
        assert model.config.max_batch_tokens == 2
    finally:
        model.close()


def test_read_ahead_loads_all_experts_and_no_answer_waits_for_one() -> None:
    with open_small(MIXTRAL) as engine:
        prompt = random_prompt(engine.info.n_vocab)
        expected = engine.logits(prompt)
    with open_small(MIXTRAL) as engine:
        engine.load()
        while engine.read_ahead():
            pass
        n_experts = engine.info.n_experts * engine.info.n_moe_layers
        assert engine.stats().experts_resident == n_experts
        assert np.array_equal(engine.logits(prompt), expected)
        assert engine.stats().expert_loads == n_experts


def test_read_ahead_fills_a_small_cache_and_puts_nothing_out() -> None:
    with open_small(MIXTRAL, expert_cache_experts=5) as engine:
        prompt = random_prompt(engine.info.n_vocab, 2)
        expected = engine.logits(prompt)
    with open_small(MIXTRAL, expert_cache_experts=5) as engine:
        engine.load()
        while engine.read_ahead():
            pass
        stats = engine.stats()
        assert (stats.experts_resident, stats.expert_evictions) == (5, 0)
        assert np.array_equal(engine.logits(prompt), expected)
        assert engine.stats().expert_evictions > 0  # they give way to those that are needed


def test_a_model_without_experts_has_nothing_to_read_ahead() -> None:
    with open_small(LLAMA) as engine:
        engine.load()
        assert not engine.read_ahead()
