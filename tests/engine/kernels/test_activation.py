"""Rounding activations to 12 bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.activation import quantise_reference
from engine.kernels.library import KernelLibrary
from tests.engine.kernels.operands import activation_parts, quantise

EXAMPLES = settings(max_examples=60)


def random_rows(seed: int, n_rows: int, n_blocks: int, exponent: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_rows, 32 * n_blocks), np.float32) * np.float32(10.0**exponent)
    x[rng.random(x.shape) < 0.2] = 0
    return x


@EXAMPLES
@given(
    seed=st.integers(0, 2**32 - 1), n_rows=st.integers(1, 3), n_blocks=st.integers(1, 25), exponent=st.integers(-25, 25)
)
def test_rows_equal_the_reference_bit_for_bit(
    library: KernelLibrary, seed: int, n_rows: int, n_blocks: int, exponent: int
) -> None:
    x = random_rows(seed, n_rows, n_blocks, exponent)
    expected_q, expected_scales = (np.stack(parts) for parts in zip(*map(quantise_reference, x), strict=True))

    q, scales, sums = activation_parts(quantise(library, x), x.shape[1])

    np.testing.assert_array_equal(q, expected_q)
    np.testing.assert_array_equal(scales, expected_scales)
    halves = expected_q.reshape(*q.shape[:2], 2, 16).sum(-1)
    whole = np.concatenate([halves.sum(-1, keepdims=True), halves], axis=2).astype(np.float32)
    np.testing.assert_array_equal(sums, -whole)


def test_no_value_is_off_by_more_than_half_a_step(library: KernelLibrary) -> None:
    x = random_rows(1, 4, 16, 0)
    q, scales, _ = activation_parts(quantise(library, x), x.shape[1])
    scales = np.repeat(scales, 8, axis=1)[..., None]
    error = np.abs(q * scales.astype(np.float64) - x.reshape(q.shape))
    assert (error <= 0.5001 * scales).all()


def test_the_largest_of_256_inputs_takes_the_whole_range(library: KernelLibrary) -> None:
    x = np.zeros((1, 288), np.float32)
    x[0, 5], x[0, 40], x[0, 255], x[0, 264] = 3.5, 1.0, -7.0, -0.01
    q, _, _ = activation_parts(quantise(library, x), 288)
    assert q[0, 0, 5] == 1016
    assert q[0, 7, 31] == -2032
    assert q[0, 8, 8] == -2032


def test_a_block_of_zeros_is_exact(library: KernelLibrary) -> None:
    q, scales, sums = activation_parts(quantise(library, np.zeros((1, 32), np.float32)), 32)
    assert not q.any()
    assert not scales.any()
    assert not sums.any()


@pytest.mark.parametrize("bad", [np.nan, -np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 15, 16, 255])
def test_a_value_that_is_not_finite_shows_in_its_scale_and_no_other(
    library: KernelLibrary, bad: float, place: int
) -> None:
    x = random_rows(2, 1, 20, 0)
    x[0, 256 + place] = bad
    _, scales, _ = activation_parts(quantise(library, x), 640)
    assert np.isfinite(scales[0]).tolist() == [True, False, True]


def test_tiers_agree_bit_for_bit(libraries: list[KernelLibrary]) -> None:
    x = random_rows(3, 5, 11, 0)
    first, *others = (quantise(library, x) for library in libraries)
    for other in others:
        np.testing.assert_array_equal(other, first)
