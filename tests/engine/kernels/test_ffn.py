"""The gated activation, and through it the accuracy of the exponential."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.ffn import clamped_swiglu_reference, swiglu_reference
from engine.kernels.layout import activation_row_bytes
from engine.kernels.library import KernelLibrary
from tests.engine.kernels.operands import Array, at, quantise


def swiglu(library: KernelLibrary, gate: Array, up: Array, columns_per_chunk: int) -> tuple[Array, Array]:
    """The result (n_rows, n) and the same rounded."""
    n_rows, n = gate.shape
    out, rounded = gate.copy(), np.zeros((n_rows, activation_row_bytes(n)), np.uint8)
    row_chunks = -(-n // columns_per_chunk)
    for chunk in range(n_rows * row_chunks):
        library.run(
            "swiglu",
            chunk,
            gate=at(out),
            up=at(up),
            stride=out.strides[0],
            rounded=at(rounded),
            rounded_stride=rounded.shape[1],
            n_columns=n,
            columns_per_chunk=columns_per_chunk,
            row_chunks=row_chunks,
        )
    return out, rounded


@pytest.mark.parametrize("columns_per_chunk", [256, 512, 768])
def test_columns_in_pieces_equal_the_reference(library: KernelLibrary, columns_per_chunk: int) -> None:
    rng = np.random.default_rng(1)
    gate, up = 4 * rng.standard_normal((2, 3, 800), np.float32)

    out, rounded = swiglu(library, gate, up, columns_per_chunk)

    np.testing.assert_allclose(out, swiglu_reference(gate, up), rtol=2e-6, atol=1e-30)
    np.testing.assert_array_equal(rounded, quantise(library, out))


def test_the_exponential_is_good_to_the_last_digits(library: KernelLibrary) -> None:
    """For gates far below zero silu(x) is x * exp(x) to within float32: its relative error is the exponential's."""
    gate = np.linspace(-87, 20, 1 << 16, dtype=np.float32).reshape(16, -1)
    out, _ = swiglu(library, gate, np.ones_like(gate), gate.shape[1])
    exact = gate.astype(np.float64) / (1 + np.exp(-gate.astype(np.float64)))
    error = np.abs(out - exact)
    assert (error <= 4 * 2.0**-24 * np.abs(exact) + 1e-38).all()


def test_gates_beyond_the_range_saturate(library: KernelLibrary) -> None:
    gate = np.full((1, 32), -1000, np.float32)
    gate[0, 16:] = 1000
    out, _ = swiglu(library, gate, np.ones_like(gate), 32)
    np.testing.assert_allclose(out[0, :16], 0, atol=1e-34)
    np.testing.assert_array_equal(out[0, 16:], np.float32(1000))


@pytest.mark.parametrize("operand", ["gate", "up"])
def test_a_nan_stays_where_it_is(library: KernelLibrary, operand: str) -> None:
    gate, up = np.ones((2, 1, 64), np.float32)
    (gate if operand == "gate" else up)[0, 40] = np.nan
    out, rounded = swiglu(library, gate, up, 64)
    assert np.isnan(out[0, 40])
    assert np.isfinite(np.delete(out[0], 40)).all()
    np.testing.assert_array_equal(rounded, quantise(library, out))


def test_tiers_agree_closely(libraries: list[KernelLibrary]) -> None:
    gate, up = 4 * np.random.default_rng(2).standard_normal((2, 2, 128), np.float32)
    first, *others = (swiglu(library, gate, up, 128)[0] for library in libraries)
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-6)


@pytest.mark.parametrize("is_silu", [False, True])
def test_a_gate_opens_element_by_element(library: KernelLibrary, is_silu: bool) -> None:
    rng = np.random.default_rng(7)
    x, gate = rng.standard_normal((2, 3, 48), np.float32)
    gate[1, :4] = [80, -80, 0, -3]
    expected, opening = x.copy(), gate[1].astype(np.float64)
    expected[1] = x[1] / (1 + np.exp(-opening)) * (opening if is_silu else 1)
    operands = {"gate": at(gate), "gate_stride": 192, "n": 48, "is_silu": int(is_silu)}
    library.run("open_gate", 1, x=at(x), x_stride=192, **operands)
    np.testing.assert_allclose(x, expected, rtol=2e-6, atol=1e-30)


@pytest.mark.parametrize("n", [48, 800])
def test_clamped_experts_add_their_biases_first(library: KernelLibrary, n: int) -> None:
    rng = np.random.default_rng(8)
    n_rows, n_experts, per_chunk = 7, 3, 256
    gate, up = rng.standard_normal((2, n_rows, n), np.float32) * np.float32(6)
    gate[2, :2], up[4, :2] = [200, -200], [200, -200]
    biases = rng.standard_normal((2, n_experts, n), np.float32)
    items = np.array([[2, 0, 3, 0], [0, 3, 4, 0]], np.int64)
    of_rows = np.array([2, 2, 2, 0, 0, 0, 0])
    expected = clamped_swiglu_reference(
        gate.astype(np.float64) + biases[0, of_rows], up.astype(np.float64) + biases[1, of_rows], 7.0, 1.702
    )
    rounded = np.zeros((n_rows, activation_row_bytes(n)), np.uint8) if n % 32 == 0 else None
    row_chunks = -(-n // per_chunk)
    for chunk in range(len(items) * row_chunks):
        library.run(
            "swiglu_clamped",
            chunk,
            gate=at(gate),
            up=at(up),
            stride=gate.strides[0],
            rounded=0 if rounded is None else at(rounded),
            rounded_stride=activation_row_bytes(n),
            n_columns=n,
            columns_per_chunk=per_chunk,
            row_chunks=row_chunks,
            items=at(items),
            gate_bias=at(biases[0]),
            up_bias=at(biases[1]),
            limit=7.0,
            slope=1.702,
        )
    np.testing.assert_allclose(gate, expected, rtol=2e-5, atol=1e-5)
    if rounded is not None:
        np.testing.assert_array_equal(rounded, quantise(library, gate))
