"""Which experts give way first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.experts.victims import Victims

SHAPE = (3, 4)


@given(st.integers(0, 2**32), st.integers(0, 14), st.sampled_from(["lru", "lfu", "fifo"]))
def test_the_oldest_goes_first_and_of_equals_what_was_loaded_first(seed: int, n: int, policy: str) -> None:
    rng = np.random.default_rng(seed)
    last_used, counts = rng.integers(0, 3, SHAPE), rng.integers(0, 3, SHAPE)
    loaded_at = rng.permutation(12).reshape(SHAPE) + 1
    candidates = rng.random(SHAPE) < 0.7
    ages = {"lru": last_used, "lfu": counts, "fifo": np.zeros(SHAPE, np.int64)}[policy]

    chosen = Victims(policy, last_used, counts).choose(n, candidates, loaded_at)

    order = sorted(
        zip(*(places.tolist() for places in np.nonzero(candidates)), strict=True),
        key=lambda place: (ages[place], loaded_at[place]),
    )
    assert chosen == order[:n]


@pytest.mark.parametrize("policy", ["lru", "lfu", "fifo"])
def test_ages_are_read_when_a_choice_is_made(policy: str) -> None:
    ages, loaded_at = np.zeros(SHAPE, np.int64), np.arange(1, 13).reshape(SHAPE)
    victims = Victims(policy, ages, ages)
    ages[0, 0] = 1 << 30  # millions of steps, or calls

    (victim,) = victims.choose(1, np.ones(SHAPE, bool), loaded_at)

    assert victim == ((0, 0) if policy == "fifo" else (0, 1))
