"""Heads whose values do not fill whole registers."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.heads import close_heads_reference
from engine.kernels.library import KernelLibrary
from tests.engine.kernels.operands import at


@pytest.mark.parametrize(("n_heads", "n", "pitch"), [(3, 20, 32), (8, 4, 16), (1, 100, 112), (2, 16, 16)])
def test_the_values_of_heads_come_side_by_side_and_nothing_else_is_written(
    library: KernelLibrary, n_heads: int, n: int, pitch: int
) -> None:
    x = np.random.default_rng(n).standard_normal((3, n_heads, pitch)).astype(np.float32)
    out = np.full((3, n_heads * n + 5), np.nan, np.float32)

    strides = {"x": at(x), "x_stride": x.strides[0], "out": at(out), "out_stride": out.strides[0]}
    for row in range(len(x)):
        library.run("close_heads", row, **strides, n_heads=n_heads, pitch=pitch, n=n)

    assert np.array_equal(out[:, : n_heads * n], close_heads_reference(x, n))
    assert np.isnan(out[:, n_heads * n :]).all()
