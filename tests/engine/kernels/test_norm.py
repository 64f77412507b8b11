"""Normalisation, residual sums, scaling and row gathers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.library import KernelLibrary
from engine.kernels.norm import layer_norm_reference, rms_norm_reference
from tests.engine.kernels.operands import Array, at

EXAMPLES = settings(max_examples=40)


def rms_norm(library: KernelLibrary, x: Array, weight: Array, n_parts: int = 1, eps: float = 1e-6) -> Array:
    out = np.full_like(x, np.nan)
    for row in range(len(x)):
        library.run(
            "rms_norm",
            row,
            x=at(x),
            weight=at(weight),
            out=at(out),
            n=len(weight),
            n_parts=n_parts,
            stride=x.strides[0],
            eps=eps,
        )
    return out


@EXAMPLES
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 3),
    lanes=st.integers(1, 40),
    n_parts=st.integers(1, 3),
    exponent=st.integers(-6, 6),
)
def test_rows_and_heads_are_normalised(
    library: KernelLibrary, seed: int, n_rows: int, lanes: int, n_parts: int, exponent: int
) -> None:
    n, rng = 16 * lanes, np.random.default_rng(seed)
    x = rng.standard_normal((n_rows, n_parts * n), np.float32) * np.float32(10.0**exponent)
    weight = rng.standard_normal(n, np.float32)

    out = rms_norm(library, x, weight, n_parts)

    expected = rms_norm_reference(x.reshape(n_rows, n_parts, n), weight, 1e-6).reshape(x.shape)
    np.testing.assert_allclose(out, expected, rtol=3e-6, atol=0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_value_spoils_its_row_and_no_other(library: KernelLibrary, bad: float) -> None:
    x = np.random.default_rng(1).standard_normal((3, 64), np.float32)
    x[1, 20] = bad
    out = rms_norm(library, x, np.ones(64, np.float32))
    assert np.isfinite(out[[0, 2]]).all()
    assert np.isnan(out[1, 20])


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1), lanes=st.integers(1, 40), exponent=st.integers(-4, 6), shift=st.floats(-9, 9))
def test_rows_are_centred_and_normalised(
    library: KernelLibrary, seed: int, lanes: int, exponent: int, shift: float
) -> None:
    n, rng = 16 * lanes, np.random.default_rng(seed)
    x = (rng.standard_normal((2, n), np.float32) + np.float32(shift)) * np.float32(10.0**exponent)
    weight, bias = rng.standard_normal((2, n), np.float32)
    out = layer_norm(library, x, weight, bias)
    expected = layer_norm_reference(x.astype(np.float64), weight, bias, 1e-5)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


def layer_norm(library: KernelLibrary, x: Array, weight: Array, bias: Array, eps: float = 1e-5) -> Array:
    out, operands = np.full_like(x, np.nan), {"weight": at(weight), "bias": at(bias), "eps": eps}
    for row in range(len(x)):
        library.run("layer_norm", row, x=at(x), out=at(out), n=x.shape[1], stride=x.strides[0], **operands)
    return out


def test_a_bad_value_spoils_its_layer_normalised_row_and_no_other(library: KernelLibrary) -> None:
    x = np.random.default_rng(1).standard_normal((3, 64), np.float32)
    x[1, 20] = np.nan
    out = layer_norm(library, x, np.ones(64, np.float32), np.zeros(64, np.float32))
    assert np.isfinite(out[[0, 2]]).all()
    assert np.isnan(out[1]).all()


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_rows_are_added_in_place(library: KernelLibrary, scale: float) -> None:
    x, y = np.random.default_rng(2).standard_normal((2, 3, 48), np.float32)
    expected = x.copy()
    expected[1] += np.float32(scale) * y[1]
    library.run("add", 1, x=at(x), y=at(y), stride=x.strides[0], n=48, scale=scale)
    np.testing.assert_array_equal(x, expected)


def test_rows_are_scaled_in_place(library: KernelLibrary) -> None:
    x = np.random.default_rng(2).standard_normal((3, 48), np.float32)
    expected = x.copy()
    expected[2] *= np.float32(0.3)
    library.run("scale_rows", 2, x=at(x), stride=x.strides[0], n=48, scale=0.3)
    np.testing.assert_array_equal(x, expected)


def test_rows_are_clamped_in_place_and_nan_stays(library: KernelLibrary) -> None:
    x = np.random.default_rng(2).standard_normal((3, 48), np.float32)
    x[2, 5] = np.nan
    expected = x.copy()
    expected[2] = np.clip(x[2], -0.5, 0.5)
    library.run("clamp_rows", 2, x=at(x), stride=x.strides[0], n=48, limit=0.5)
    np.testing.assert_array_equal(x, expected)


def test_rows_are_multiplied_in_place(library: KernelLibrary) -> None:
    x, y = np.random.default_rng(2).standard_normal((2, 3, 48), np.float32)
    expected = x.copy()
    expected[1] *= y[1]
    library.run("multiply", 1, x=at(x), x_stride=x.strides[0], y=at(y), y_stride=y.strides[0], n=48)
    np.testing.assert_array_equal(x, expected)


def test_wanted_rows_are_gathered(library: KernelLibrary) -> None:
    x = np.random.default_rng(3).standard_normal((5, 32), np.float32)
    rows, out = np.array([4, 0, 4], np.int32), np.zeros((3, 32), np.float32)
    for chunk in range(3):
        library.run("gather_rows", chunk, x=at(x), rows=at(rows), out=at(out), stride=x.strides[0])
    np.testing.assert_array_equal(out, x[rows])
