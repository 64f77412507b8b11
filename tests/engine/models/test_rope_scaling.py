"""Frequencies of scaled rotary positions, against those that transformers 5.24.0 computes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from engine.errors import ModelFormatError, UnsupportedModelError
from engine.models.keys import Keys
from engine.models.rope_scaling import RopeScaling

# (scaling, rope_dim, base, every n-th frequency, factor on cosines and sines)
YARN = [
    (
        RopeScaling("yarn", 32.0, 4096, rounds_range=False),
        64,
        150000.0,
        [1.0, 0.225418, 0.0508132726, 0.00679495931, 0.000456483918, 1.8188337e-05, 4.09997847e-06, 9.24208962e-07],
        1.3465735902799727,
    ),
    (
        RopeScaling("yarn", 40.0, 4096, attention_factor=1.0),
        16,
        10000.0,
        [1.0, 0.316227764, 0.1, 0.0239147246, 0.005125, 0.000849862176, 2.5e-05, 7.90569447e-06],
        1.0,
    ),
    (
        RopeScaling("yarn", 4.0, 32768),
        128,
        1e6,
        [1.0, 0.177827939, 0.0316227786, 0.00537532149, 0.000602941145, 4.4456985e-05, 7.90569356e-06, 1.40585337e-06],
        1.138629436111989,
    ),
]


@pytest.mark.parametrize(("scaling", "rope_dim", "base", "expected", "scale"), YARN)
def test_yarn_stretches_slow_pairs_only(
    scaling: RopeScaling, rope_dim: int, base: float, expected: list[float], scale: float
) -> None:
    found = scaling.frequencies(rope_dim, base)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found[:: rope_dim // 16], expected, rtol=2e-6)
    assert scaling.scale == pytest.approx(scale)


def test_linear_scaling_divides_all_and_factors_divide_each() -> None:
    plain = RopeScaling().frequencies(8, 10000.0)
    np.testing.assert_allclose(plain, [1, 0.1, 0.01, 0.001], rtol=1e-6)
    np.testing.assert_allclose(RopeScaling("linear", 4.0).frequencies(8, 10000.0), plain / 4, rtol=1e-6)
    factors = np.array([1, 2, 3, 4], np.float32)
    np.testing.assert_allclose(RopeScaling().frequencies(8, 10000.0, factors), plain / factors, rtol=1e-6)


def read(**changes: Any) -> RopeScaling:
    keys = {f"rope.scaling.{key}": value for key, value in changes.items()}
    metadata = {"general.architecture": "a", **{f"a.{key}": value for key, value in keys.items()}}
    return RopeScaling.read(Keys(metadata), 2048)


def test_keys_are_read_with_their_defaults() -> None:
    assert read() == RopeScaling(original_context=2048)
    assert read(type="yarn", factor=8.0, original_context_length=64, yarn_beta_fast=16.0) == RopeScaling(
        "yarn", 8.0, 64, beta_fast=16.0
    )
    assert read(attn_factor=1.25).scale == 1.25
    assert read(type="yarn", factor=8.0, yarn_attn_factor=1.5).scale == 1.5
    assert not read(type="yarn", factor=8.0, yarn_truncate=False).rounds_range


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"type": "dynamic"}, UnsupportedModelError, "'dynamic'; known are none, linear, yarn, longrope and llama3"),
        ({"type": "yarn", "factor": 0.0}, ModelFormatError, "factor must be positive"),
        ({"type": "linear", "factor": math.nan}, ModelFormatError, "factor"),
        ({"type": "yarn", "factor": 2.0, "yarn_beta_fast": 0.0}, ModelFormatError, "yarn_beta_fast"),
        ({"type": "yarn", "factor": 2.0, "yarn_beta_slow": -1.0}, ModelFormatError, "yarn_beta_slow"),
        ({"type": "yarn", "factor": 2.0, "original_context_length": 0}, ModelFormatError, "original_context_length"),
    ],
)
def test_senseless_scaling_is_refused_by_name(changes: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        read(**changes)


def test_yarn_needs_frequencies_that_fall() -> None:
    with pytest.raises(ModelFormatError, match="freq_base"):
        RopeScaling("yarn", 4.0, 2048).frequencies(64, 1.0)
