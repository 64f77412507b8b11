"""Experts chosen by sigmoids, correction biases and groups, and by the sparse mixer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.library import KernelLibrary
from engine.kernels.router_scores import route_scored_reference
from engine.kernels.sparse_mixer import route_sparse_reference
from tests.engine.kernels.operands import Array, at

EXAMPLES = settings(max_examples=60)


def run(library: KernelLibrary, kernel: str, logits: Array, top_k: int, **operands: float) -> tuple[Array, Array]:
    n_tokens, n_experts = logits.shape
    padded = np.full((n_tokens, -(-n_experts // 16) * 16), np.nan, np.float32)
    padded[:, :n_experts] = logits
    experts, weights = np.full((n_tokens, top_k), -1, np.int32), np.full((n_tokens, top_k), np.nan, np.float32)
    scratch = np.full(3 * padded.shape[1], np.nan, np.float32)
    for token in range(n_tokens):
        library.run(
            kernel,
            token,
            at(scratch),
            logits=at(padded),
            logits_stride=padded.strides[0],
            experts=at(experts),
            weights=at(weights),
            n_experts=n_experts,
            top_k=top_k,
            **operands,
        )
    return experts, weights


def scored(
    library: KernelLibrary,
    logits: Array,
    bias: Array | None,
    top_k: int,
    *,
    sigmoid: bool,
    groups: tuple[int, int, int] = (1, 1, 1),
    normalise: bool = False,
    epsilon: float = 0.0,
    scale: float = 1.0,
) -> tuple[Array, Array]:
    n_groups, n_used, n_best = groups
    return run(
        library,
        "route_scored",
        logits,
        top_k,
        bias=0 if bias is None else at(bias),
        n_groups=n_groups,
        n_groups_used=n_used,
        n_group_best=n_best,
        sigmoid=int(sigmoid),
        normalise=int(normalise),
        epsilon=epsilon,
        scale=scale,
    )


@EXAMPLES
@given(
    data=st.data(),
    n_groups=st.integers(1, 6),
    n_members=st.integers(2, 12),
    sigmoid=st.booleans(),
    normalise=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_experts_are_chosen_by_score_and_bias_in_the_best_groups(
    library: KernelLibrary,
    data: st.DataObject,
    n_groups: int,
    n_members: int,
    sigmoid: bool,
    normalise: bool,
    seed: int,
) -> None:
    n_used = data.draw(st.integers(1, n_groups))
    top_k = data.draw(st.integers(1, min(8, n_used * n_members)))
    has_bias, n_best = data.draw(st.booleans()), data.draw(st.integers(1, 2))
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((3, n_groups * n_members), np.float32)
    bias = rng.standard_normal(n_groups * n_members, np.float32) if has_bias else None
    groups = (n_groups, n_used, n_best)

    experts, weights = scored(
        library, logits, bias, top_k, sigmoid=sigmoid, groups=groups, normalise=normalise, epsilon=0.25, scale=2.5
    )

    expected_experts, expected_weights = route_scored_reference(
        logits, bias, top_k, sigmoid=sigmoid, groups=groups, normalise=normalise, epsilon=0.25, scale=2.5
    )
    np.testing.assert_array_equal(experts, expected_experts)
    np.testing.assert_allclose(weights, expected_weights, rtol=5e-6)


def test_a_bias_decides_the_choice_and_not_the_weight(library: KernelLibrary) -> None:
    logits = np.array([[4, 3, 2, 1]], np.float32)
    bias = np.array([-9, 0, 0, 9], np.float32)
    experts, weights = scored(library, logits, bias, 2, sigmoid=True)
    np.testing.assert_array_equal(experts, [[1, 3]])
    np.testing.assert_allclose(weights, 1 / (1 + np.exp(-np.array([[3.0, 1.0]]))), rtol=1e-6)


@pytest.mark.parametrize("sigmoid", [True, False])
@pytest.mark.parametrize("n_bad", [1, 20])
def test_no_weight_hides_a_nan(library: KernelLibrary, sigmoid: bool, n_bad: int) -> None:
    logits = np.zeros((2, 20), np.float32)
    logits[1, :n_bad] = np.nan
    experts, weights = scored(library, logits, None, 4, sigmoid=sigmoid, groups=(4, 2, 2), normalise=True)
    assert np.isfinite(weights[0]).all()
    assert np.isnan(weights[1]).all()
    assert ((experts >= 0) & (experts < 20)).all()


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1), n_experts=st.integers(2, 40), spread=st.floats(0.001, 4))
def test_the_sparse_mixer_weighs_each_choice_among_those_close_to_it(
    library: KernelLibrary, seed: int, n_experts: int, spread: float
) -> None:
    rng = np.random.default_rng(seed)
    logits = (rng.standard_normal((4, n_experts)) * spread + rng.uniform(-2, 2)).astype(np.float32)
    experts, weights = run(library, "route_sparse", logits, 2, jitter=0.01)
    expected_experts, expected_weights = route_sparse_reference(logits, 0.01)
    np.testing.assert_allclose(weights, expected_weights, rtol=5e-6)
    clear = np.abs(np.diff(expected_weights, axis=1))[:, 0] > 1e-5  # else either order is right
    np.testing.assert_array_equal(experts[clear], expected_experts[clear])


def test_the_sparse_mixer_hides_no_nan(library: KernelLibrary) -> None:
    logits = np.zeros((2, 20), np.float32)
    logits[1, 7] = np.nan
    experts, weights = run(library, "route_sparse", logits, 2, jitter=0.01)
    assert np.isfinite(weights[0]).all()
    assert np.isnan(weights[1]).all()
    assert ((experts >= 0) & (experts < 20)).all()
