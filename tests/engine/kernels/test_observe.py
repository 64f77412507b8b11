"""Sums of squares of activations, for all rows or expert by expert, and copies of rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels.library import KernelLibrary
from engine.kernels.observe import square_sums_reference
from tests.engine.kernels.operands import Array, at

EXAMPLES = settings(max_examples=25)


def square_sums(library: KernelLibrary, x: Array, sums: Array, counts: Array, n: int, items: Array | None) -> None:
    extent = np.array([n], np.int64)
    for chunk in range(x.shape[1] // 16):
        library.run(
            "square_sums",
            chunk,
            x=at(x),
            x_stride=x.strides[0],
            sums=at(sums),
            sums_stride=sums.strides[0],
            counts=at(counts),
            extent=at(extent),
            items=0 if items is None else at(items),
        )


@EXAMPLES
@given(n_rows=st.integers(0, 20), lanes=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
def test_squares_of_all_rows_are_added(library: KernelLibrary, n_rows: int, lanes: int, seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((n_rows + 1, 16 * lanes), np.float32)  # one row too many
    sums, counts = np.full((1, 16 * lanes), 3, np.float32), np.array([10], np.int64)

    square_sums(library, x, sums, counts, n_rows, None)

    np.testing.assert_allclose(sums[0], 3 + square_sums_reference(x[:n_rows]), rtol=1e-5)
    assert counts[0] == 10 + n_rows


@EXAMPLES
@given(sizes=st.lists(st.integers(1, 6), max_size=5), seed=st.integers(0, 2**32 - 1))
def test_each_experts_rows_count_for_it_alone(library: KernelLibrary, sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((sum(sizes) + 1, 48), np.float32)
    firsts = np.cumsum([0, *sizes])
    owners = np.sort(rng.integers(0, 4, len(sizes)))  # an expert of many rows has several items
    items = np.array([[e, f, n, 0] for e, f, n in zip(owners, firsts, sizes, strict=False)], np.int64).reshape(-1, 4)
    sums, counts = np.zeros((4, 48), np.float32), np.zeros(4, np.int64)

    square_sums(library, x, sums, counts, len(items), items)

    owner_of_row = np.repeat(owners, sizes)
    for expert in range(4):
        mine = x[: sum(sizes)][owner_of_row == expert]
        np.testing.assert_allclose(sums[expert], square_sums_reference(mine), rtol=1e-5, atol=1e-6)
        assert counts[expert] == len(mine)


def test_rows_are_copied(library: KernelLibrary) -> None:
    x = np.random.default_rng(0).standard_normal((3, 48), np.float32)
    out = np.zeros((3, 48), np.float32)
    for row in range(2):
        library.run("keep_rows", row, x=at(x), out=at(out), stride=x.strides[0])
    np.testing.assert_array_equal(out, [x[0], x[1], np.zeros(48, np.float32)])
