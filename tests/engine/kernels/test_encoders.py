"""Encoders give their references' bytes on every tier, and lose less than the errors that are recorded here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.convert.quantise import QUANTISABLE, quantise
from engine.gguf import TensorType, dequantise
from engine.kernels import encode_affine, encode_scaled, encode_tables
from engine.kernels.encode_floats import encode_bf16_reference, encode_f16_reference
from engine.kernels.encoder import ENCODE_REFERENCES, encode_reference
from engine.kernels.library import KernelLibrary

Array = np.ndarray[Any, Any]
EXAMPLES = settings(max_examples=25)

# Mean squared error relative to the weights' variance, of GGML's own encoders (ggml_quantize_chunk of llama.cpp
# 0.25.3, without and with an importance of exp(normal)), on 256 x 1024 normal numbers.
GGML_ERRORS = {
    "Q8_0": (2.850e-05, 2.849e-05),
    "Q4_0": (7.376e-03, 6.019e-03),
    "Q4_1": (6.112e-03, 4.056e-03),
    "Q5_0": (1.810e-03, 1.473e-03),
    "Q5_1": (1.430e-03, 9.525e-04),
    "Q6_K": (3.150e-04, 2.621e-04),
    "Q4_K": (5.085e-03, 4.197e-03),
    "Q5_K": (1.305e-03, 1.082e-03),
    "IQ4_NL": (5.791e-03, 4.940e-03),
    "IQ4_XS": (5.886e-03, 5.052e-03),
    "MXFP4": (1.304e-02, 1.300e-02),
}
NAMES = [type.name for type in QUANTISABLE]


def awkward_rows(rng: np.random.Generator, kind: str, n_rows: int, n: int, exponent: int) -> Array:
    """Rows with what real weights seldom have."""
    rows = rng.standard_normal((n_rows, n), np.float32) * np.float32(10.0**exponent)
    if kind == "zeros":
        rows[rng.random(rows.shape) < 0.9] = 0
        rows[0] = -0.0
    elif kind == "constant":
        rows[:] = rows[:, :1]
    elif kind == "outliers":
        rows[rng.random(rows.shape) < 0.01] *= 300
    elif kind == "one sign":
        rows = -np.abs(rows)
    elif kind == "ties":
        rows = np.rint(rows / np.float32(10.0**exponent) * 4) / 2
    return np.clip(rows, -65_504, 65_504).astype(np.float32)


def test_every_type_that_can_be_written_has_a_reference() -> None:
    assert all(module.register_encoder for module in (encode_affine, encode_scaled, encode_tables))  # which register
    assert set(NAMES) == set(ENCODE_REFERENCES) == set(GGML_ERRORS)


@pytest.mark.parametrize("name", NAMES)
@EXAMPLES
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["normal", "zeros", "constant", "outliers", "one sign", "ties"]),
    n_rows=st.integers(1, 35),
    n_blocks=st.integers(1, 3),
    exponent=st.integers(-12, 3),  # scales beyond the range of f16 become infinite, by rules of each tier
    weighted=st.booleans(),
)
def test_bytes_are_the_reference_s(
    library: KernelLibrary,
    name: str,
    seed: int,
    kind: str,
    n_rows: int,
    n_blocks: int,
    exponent: int,
    weighted: bool,
) -> None:
    rng, type = np.random.default_rng(seed), TensorType[name]
    n = type.block_size * n_blocks
    rows = awkward_rows(rng, kind, n_rows, n, exponent)
    weights = np.ones(n, np.float32)
    if weighted:
        weights = np.exp(rng.standard_normal(n)).astype(np.float32)
        weights = (weights.astype(np.float64) / weights.astype(np.float64).mean()).astype(np.float32)

    found = quantise(rows, type, weights if weighted else None, library)

    expected_weights = (weights.astype(np.float64) / weights.astype(np.float64).mean()).astype(np.float32)
    np.testing.assert_array_equal(found, encode_reference(rows, name, expected_weights))
    assert np.isfinite(dequantise(found, type, rows.shape)).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_no_larger_than_ggml_s(library: KernelLibrary, name: str, weighted: bool) -> None:
    rng, type = np.random.default_rng(1), TensorType[name]
    rows = rng.standard_normal((256, 1024), np.float32) * np.float32(0.02)
    importance = np.exp(rng.standard_normal(1024)).astype(np.float32) if weighted else np.ones(1024, np.float32)

    back = dequantise(quantise(rows, type, importance, library), type, rows.shape)

    squares = (back - rows).astype(np.float64) ** 2 * importance
    error = squares.mean() / (rows.astype(np.float64) ** 2 * importance).mean()
    assert error <= GGML_ERRORS[name][weighted] * 1.005  # the recorded weights were drawn alike, not the same


@EXAMPLES
@given(values=st.lists(st.floats(-65_504, 65_504, width=32), min_size=1, max_size=70))
def test_floats_are_rounded_as_numpy_rounds_them(library: KernelLibrary, values: list[float]) -> None:
    rows = np.array([values], np.float32)
    half, bfloat = (quantise(rows, type, None, library) for type in (TensorType.F16, TensorType.BF16))
    np.testing.assert_array_equal(half, encode_f16_reference(rows[0]).view(np.uint8))
    np.testing.assert_array_equal(bfloat, encode_bf16_reference(rows[0]).view(np.uint8))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["lowest and spread", "all lowest", "both ends", "near the top"])
def test_scales_stay_finite_at_the_end_of_half_precision(name: str, kind: str, library: KernelLibrary) -> None:
    rng, most = np.random.default_rng(4), np.float32(65_504)
    rows = rng.uniform(-most, most, (16, 512)).astype(np.float32)
    if kind == "lowest and spread":
        rows[:, 1::2] = -most
    elif kind == "all lowest":
        rows[:] = -most
    elif kind == "both ends":
        rows = np.sign(rows) * most
    else:
        rows = most - np.abs(rows) * np.float32(0.01)
    type = TensorType[name]
    found = quantise(rows, type, None, library)
    np.testing.assert_array_equal(found, encode_reference(rows, name, np.ones(512, np.float32)))
    assert np.isfinite(dequantise(found, type, rows.shape)).all()
