"""Rows become blocks that other programs read, and rows that would not fit are refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import gguf
import numpy as np
import pytest

from engine.convert.quantise import QUANTISABLE, quantise
from engine.gguf import TensorType, dequantise

NORMAL = np.random.default_rng(3).standard_normal((40, 512), np.float32)


@pytest.mark.parametrize("type", QUANTISABLE, ids=lambda type: type.name)
def test_the_gguf_package_reads_the_same_values(type: TensorType) -> None:
    data = quantise(NORMAL, type)
    theirs = gguf.quants.dequantize(data.reshape(len(NORMAL), -1), gguf.GGMLQuantizationType[type.name])
    np.testing.assert_allclose(dequantise(data, type, NORMAL.shape), theirs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("type", QUANTISABLE, ids=lambda type: type.name)
def test_what_matters_more_is_kept_better(type: TensorType) -> None:
    importance = np.where(np.arange(512) % 4 == 0, 50.0, 1.0).astype(np.float32)
    plain, weighted = (
        (dequantise(quantise(NORMAL, type, weights), type, NORMAL.shape) - NORMAL) ** 2
        for weights in (None, importance)
    )
    assert weighted[:, ::4].mean() < 0.97 * plain[:, ::4].mean()


def test_columns_that_were_never_active_still_get_sensible_values() -> None:
    importance = np.zeros(512, np.float32)
    importance[:10] = 1
    for weights in (importance, np.zeros(512, np.float32)):
        back = dequantise(quantise(NORMAL, TensorType.Q4_K, weights), TensorType.Q4_K, NORMAL.shape)
        assert np.abs(back - NORMAL).max() < 1.0


def test_threads_do_not_disturb_each_other() -> None:
    alone = [quantise(NORMAL * np.float32(1 + i), TensorType.Q4_K) for i in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda i: quantise(NORMAL * np.float32(1 + i), TensorType.Q4_K), range(8)))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    rows = NORMAL.copy()
    rows[3, 7] = bad
    for type in QUANTISABLE:
        with pytest.raises(ValueError, match="finite"):
            quantise(rows, type)


def test_values_beyond_half_precision_are_refused_where_scales_are_halves() -> None:
    rows = NORMAL.copy()
    rows[0, 0] = -70_000
    with pytest.raises(ValueError, match=r"65,504 for Q4_K, found 70,000"):
        quantise(rows, TensorType.Q4_K)
    rows[0, 1] = 3.395e38
    for type in (TensorType.BF16, TensorType.MXFP4):  # it would become infinite
        with pytest.raises(ValueError, match=rf"for {type.name}, found 3\.39"):
            quantise(rows, type)
    rows[0, 1] = 2.55e38
    for type in (TensorType.BF16, TensorType.MXFP4):
        assert np.isfinite(dequantise(quantise(rows, type), type, rows.shape)).all()
    rows[0, 1] = 0
    assert dequantise(quantise(rows, TensorType.MXFP4), TensorType.MXFP4, rows.shape)[0, 0] == -65_536


def test_importance_that_is_none_is_refused() -> None:
    for importance in (np.ones(100, np.float32), np.full(512, np.nan, np.float32), np.full(512, -1, np.float32)):
        with pytest.raises(ValueError, match="importance of 512 columns"):
            quantise(NORMAL, TensorType.Q8_0, importance)


def test_a_type_that_cannot_be_written_is_named() -> None:
    with pytest.raises(ValueError, match="found IQ2_XXS"):
        quantise(NORMAL, TensorType.IQ2_XXS)
    with pytest.raises(ValueError, match="do not divide rows of 500"):
        quantise(np.ascontiguousarray(NORMAL[:, :500]), TensorType.Q4_K)
