"""Which experts give way first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.experts.victims import Victims

SHAPE = (3, 4)


@given(st.integers(0, 2**32), st.integers(0, 14), st.sampled_from(["lru", "lfu", "fifo"]))
def test_what_was_never_used_goes_first_then_the_oldest_then_what_was_loaded_first(
    seed: int, n: int, policy: str
) -> None:
    rng = np.random.default_rng(seed)
    last_used, counts = rng.integers(0, 3, SHAPE), rng.integers(0, 3, SHAPE)
    loaded_at, unused = rng.permutation(12).reshape(SHAPE) + 1, rng.integers(0, 2, SHAPE)
    candidates = rng.random(SHAPE) < 0.7
    ages = {"lru": last_used, "lfu": counts, "fifo": np.zeros(SHAPE, np.int64)}[policy]

    chosen = Victims(policy, last_used, counts).choose(n, candidates, loaded_at, unused)

    order = sorted(
        zip(*(places.tolist() for places in np.nonzero(candidates)), strict=True),
        key=lambda place: (unused[place] == 0, ages[place], loaded_at[place]),
    )
    assert chosen == order[:n]


@pytest.mark.parametrize("policy", ["lru", "lfu", "fifo"])
def test_ages_are_read_when_a_choice_is_made(policy: str) -> None:
    ages, loaded_at = np.zeros(SHAPE, np.int64), np.arange(1, 13).reshape(SHAPE)
    victims, nothing = Victims(policy, ages, ages), np.zeros(SHAPE, np.int64)
    ages[0, 0] = 1 << 30  # millions of steps, or calls

    (victim,) = victims.choose(1, np.ones(SHAPE, bool), loaded_at, nothing)

    assert victim == ((0, 0) if policy == "fifo" else (0, 1))
