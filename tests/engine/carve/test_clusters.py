"""Neurons are grouped evenly, by working at the same time; the busiest are shared."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.carve.clusters import balanced_clusters, busiest
from engine.carve.split import fit_router


@given(n_clusters=st.integers(2, 6), size=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_every_neuron_is_in_one_of_equal_groups(n_clusters: int, size: int, seed: int) -> None:
    features = np.random.default_rng(seed).random((n_clusters * size, 12), np.float32)
    groups = balanced_clusters(features, n_clusters)
    assert [len(group) for group in groups] == [size] * n_clusters
    assert sorted(np.concatenate(groups)) == list(range(n_clusters * size))


def test_neurons_that_work_together_are_grouped_together() -> None:
    rng = np.random.default_rng(3)
    owners = rng.permutation(np.repeat(np.arange(4), 20))
    patterns = rng.random((4, 200)) > 0.7
    features = (patterns[owners] * rng.uniform(0.5, 2, (80, 200)) + 0.05 * rng.random((80, 200))).astype(np.float32)
    for group in balanced_clusters(features, 4):
        assert len(set(owners[group])) == 1


def test_the_busiest_neurons_are_found() -> None:
    contributions = np.array([[1, 5, 0, 2], [1, 0, 0, 3]], np.float32)
    shared, rest = busiest(contributions, 2)
    assert (shared.tolist(), rest.tolist()) == ([1, 3], [0, 2])


def test_a_router_ranks_experts_by_what_they_will_contribute() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((600, 32)).astype(np.float32)
    norms = np.exp(x @ rng.standard_normal((32, 5)).astype(np.float32) * 0.3)
    router = fit_router(x[:400], norms[:400])
    assert router.shape == (5, 32)
    logits = x[400:] @ router.T
    assert (logits.argmax(1) == norms[400:].argmax(1)).mean() > 0.95
    weights = np.exp(logits) / np.exp(logits).sum(1, keepdims=True) * 5
    assert np.abs(weights - 1).max() < 0.005
