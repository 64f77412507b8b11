"""From router logits to experts, work items and back to one sum a token."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.library import KernelLibrary
from engine.kernels.routing import route_reference
from tests.engine.kernels.operands import Array, at

EXAMPLES = settings(max_examples=40)


def route(
    library: KernelLibrary, logits: Array, top_k: int, normalise: bool = False, scale: float = 1.0
) -> tuple[Array, Array]:
    n_tokens, n_experts = logits.shape
    padded = np.full((n_tokens, -(-n_experts // 16) * 16), np.nan, np.float32)
    padded[:, :n_experts] = logits
    experts, weights = np.full((n_tokens, top_k), -1, np.int32), np.full((n_tokens, top_k), np.nan, np.float32)
    scratch = np.zeros(padded.shape[1], np.float32)
    for token in range(n_tokens):
        library.run(
            "route",
            token,
            at(scratch),
            logits=at(padded),
            logits_stride=padded.strides[0],
            experts=at(experts),
            weights=at(weights),
            n_experts=n_experts,
            top_k=top_k,
            normalise=int(normalise),
            scale=scale,
        )
    return experts, weights


@EXAMPLES
@given(data=st.data(), n_experts=st.integers(1, 70), normalise=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_the_best_experts_are_chosen_with_their_weights(
    library: KernelLibrary, data: st.DataObject, n_experts: int, normalise: bool, seed: int
) -> None:
    top_k = data.draw(st.integers(1, min(8, n_experts)))
    logits = np.random.default_rng(seed).integers(-8, 9, (3, n_experts)).astype(np.float32)  # many ties

    experts, weights = route(library, logits, top_k, normalise, 2.5)

    expected_experts, expected_weights = route_reference(logits, top_k, normalise, 2.5)
    np.testing.assert_array_equal(experts, expected_experts)
    np.testing.assert_allclose(weights, expected_weights, rtol=3e-6)


@pytest.mark.parametrize("normalise", [True, False])
@pytest.mark.parametrize("n_bad", [1, 20])
def test_no_weight_hides_a_nan(library: KernelLibrary, normalise: bool, n_bad: int) -> None:
    logits = np.zeros((2, 20), np.float32)
    logits[1, :n_bad] = np.nan
    experts, weights = route(library, logits, 4, normalise)
    assert np.isfinite(weights[0]).all()
    assert np.isnan(weights[1]).all()
    assert ((experts >= 0) & (experts < 20)).all()


SLAB_BYTES = 7


class Grouping:
    """The group kernel's operands and results for a batch's choices (n_tokens, top_k)."""

    def __init__(self, library: KernelLibrary, experts: Array, n_experts: int, slots: Array, max_rows: int) -> None:
        n_tokens, top_k = experts.shape
        n_pairs = n_tokens * top_k
        self.items = np.zeros((n_pairs + n_experts, 4), np.int64)
        self.pair_tokens, self.pair_of = np.full(n_pairs, -1, np.int32), np.full(n_pairs, -1, np.int32)
        self.counts, self.last_used = np.full(n_experts, 100, np.int64), np.full(n_experts, 5, np.int64)
        self.newest = np.full(top_k, -1, np.int32)
        self.sums = np.array([1000, 100, 10], np.int64)
        self.n_items, self.n_pairs, self.missing = (np.full(1, -1, np.int64) for _ in range(3))
        tokens, clock = np.array([n_tokens], np.int64), np.array([77], np.int64)
        scratch = np.full(2 * n_experts, -1, np.int64)
        library.run(
            "group",
            0,
            at(scratch),
            experts=at(experts),
            n_tokens=at(tokens),
            top_k=top_k,
            n_experts=n_experts,
            slots=at(slots),
            max_rows=max_rows,
            items=at(self.items),
            n_items=at(self.n_items),
            pair_tokens=at(self.pair_tokens),
            pair_of=at(self.pair_of),
            n_pairs=at(self.n_pairs),
            missing=at(self.missing),
            counts=at(self.counts),
            last_used=at(self.last_used),
            clock=at(clock),
            newest=at(self.newest),
            sums=at(self.sums),
            slab_bytes=SLAB_BYTES,
        )


def choices(rng: np.random.Generator, n_tokens: int, n_experts: int, top_k: int) -> Array:
    return np.array([rng.permutation(n_experts)[:top_k] for _ in range(n_tokens)], np.int32)


@EXAMPLES
@given(
    seed=st.integers(0, 2**32 - 1),
    n_tokens=st.integers(1, 40),
    n_experts=st.integers(2, 20),
    max_rows=st.integers(1, 9),
)
def test_pairs_are_sorted_by_expert_into_items(
    library: KernelLibrary, seed: int, n_tokens: int, n_experts: int, max_rows: int
) -> None:
    top_k = 2
    experts = choices(np.random.default_rng(seed), n_tokens, n_experts, top_k)
    order = np.argsort(experts.reshape(-1), kind="stable")
    counts = np.bincount(experts.reshape(-1), minlength=n_experts)

    result = Grouping(library, experts, n_experts, np.ones(n_experts, np.int64), max_rows)

    assert result.n_pairs[0] == n_tokens * top_k
    assert result.missing[0] == 0
    np.testing.assert_array_equal(result.pair_tokens, order // top_k)
    np.testing.assert_array_equal(result.pair_of[order], np.arange(n_tokens * top_k))
    expected_items = [
        (expert, counts[:expert].sum() + first, min(max_rows, counts[expert] - first))
        for expert in range(n_experts)
        for first in range(0, counts[expert], max_rows)
    ]
    assert result.n_items[0] == len(expected_items)
    np.testing.assert_array_equal(result.items[: len(expected_items), :3], expected_items)
    np.testing.assert_array_equal(result.counts, 100 + counts)
    np.testing.assert_array_equal(result.last_used, np.where(counts > 0, 77, 5))
    np.testing.assert_array_equal(result.newest, experts[-1])
    n_used = np.count_nonzero(counts)
    np.testing.assert_array_equal(result.sums, [1000 + n_tokens * top_k, 100 + n_used, 10 + n_used * SLAB_BYTES])


def test_missing_experts_are_counted_and_nothing_is_recorded(library: KernelLibrary) -> None:
    experts = np.array([[0, 3], [3, 5]], np.int32)
    slots = np.array([1, 0, 1, 0, 0, 0], np.int64)  # 1 and 4 are missing too, but nobody chose them
    result = Grouping(library, experts, 6, slots, 4)
    assert result.missing[0] == 2
    assert (result.counts == 100).all()
    assert (result.last_used == 5).all()
    assert (result.newest == -1).all()
    assert list(result.sums) == [1000, 100, 10]


@pytest.mark.parametrize("scale", [1.0, 0.4])
@pytest.mark.parametrize("has_bias", [False, True])
def test_outputs_of_a_tokens_experts_are_summed(library: KernelLibrary, scale: float, has_bias: bool) -> None:
    rng = np.random.default_rng(1)
    n_tokens, n_experts, top_k, n = 3, 6, 4, 48
    x = rng.standard_normal((n_tokens, n), np.float32)
    outputs = rng.standard_normal((n_tokens * top_k, n), np.float32)
    weights = rng.random((n_tokens, top_k), np.float32)
    pair_of, experts = rng.permutation(n_tokens * top_k).astype(np.int32), choices(rng, n_tokens, n_experts, top_k)
    bias = rng.standard_normal((n_experts, n), np.float32) * has_bias
    values = outputs[pair_of].reshape(n_tokens, top_k, n) + bias[experts]
    expected = x + scale * np.einsum("tk,tkn->tn", weights, values)
    for token in range(n_tokens):
        library.run(
            "combine",
            token,
            x=at(x),
            stride=x.strides[0],
            n=n,
            outputs=at(outputs),
            weights=at(weights),
            pair_of=at(pair_of),
            experts=at(experts),
            bias=at(bias) if has_bias else 0,
            top_k=top_k,
            scale=scale,
        )
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)


def add_gated(library: KernelLibrary, x: Array, y: Array, gates: Array, scale: float = 1.0) -> None:
    for row in range(len(x)):
        library.run(
            "add_gated",
            row,
            x=at(x),
            y=at(y),
            stride=x.strides[0],
            n=x.shape[1],
            gate=at(gates),
            gate_stride=gates.strides[0],
            scale=scale,
        )


def test_a_shared_expert_is_added_behind_its_gate(library: KernelLibrary) -> None:
    x, y = np.random.default_rng(2).standard_normal((2, 4, 32), np.float32)
    gates = np.zeros((4, 16), np.float32)
    gates[:, 0] = [0, -3, 200, -200]
    expected = x + 0.5 * y / (1 + np.exp(-gates[:, :1].astype(np.float64)))
    add_gated(library, x, y, gates, 0.5)
    np.testing.assert_allclose(x, expected, rtol=2e-6, atol=1e-6)


def test_a_gate_that_is_nan_shows(library: KernelLibrary) -> None:
    x, y = np.ones((2, 2, 32), np.float32)
    gates = np.array([[np.nan], [0]], np.float32)
    add_gated(library, x, y, gates)
    assert np.isnan(x[0]).all()
    assert np.isfinite(x[1]).all()
