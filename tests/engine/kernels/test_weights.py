"""Weights keep their meaning: embeddings read from the file's layout, matrices repacked for the dot products."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.layout import matmul_kernel
from engine.kernels.library import KernelLibrary
from tests.engine.kernels.operands import TYPES, at, matmul, random_weights, repack, values_of

EACH_TYPE = pytest.mark.parametrize("type_name", TYPES)


@EACH_TYPE
def test_an_embedding_is_the_rows_exact_value(library: KernelLibrary, type_name: str) -> None:
    n = 512
    table = random_weights(np.random.default_rng(1), type_name, 9, n)
    tokens = np.array([8, 0, 3, 3, 7], np.int32)
    out = np.zeros((len(tokens), n), np.float32)

    for token in range(len(tokens)):
        library.run(
            f"embed_{type_name}",
            token,
            table=at(table),
            row_bytes=table.shape[1],
            n=n,
            tokens=at(tokens),
            out=at(out),
            stride=out.strides[0],
        )

    np.testing.assert_array_equal(out, values_of(type_name, table, n)[tokens])


@EACH_TYPE
@pytest.mark.parametrize("n_rows", [1, 16, 43])
def test_a_packed_matrix_holds_the_files_exact_values(library: KernelLibrary, type_name: str, n_rows: int) -> None:
    """Products with unit vectors give back each weight unrounded; lanes beyond the last row are zero."""
    n_inputs = 256
    data = random_weights(np.random.default_rng(n_rows), type_name, n_rows, n_inputs)
    packed = repack(library, type_name, data, n_inputs, groups_per_chunk=2)
    name = matmul_kernel(type_name, floats=True)

    weights = matmul(library, name, packed, np.eye(n_inputs, dtype=np.float32), n_inputs, unit=64).T

    np.testing.assert_array_equal(weights[:n_rows], values_of(type_name, data, n_inputs))
    assert not weights[n_rows:].any()


@EACH_TYPE
def test_tiers_pack_the_same_bytes(libraries: list[KernelLibrary], type_name: str) -> None:
    data = random_weights(np.random.default_rng(2), type_name, 37, 768)
    first, *others = (repack(library, type_name, data, 768) for library in libraries)
    for other in others:
        np.testing.assert_array_equal(other, first)
