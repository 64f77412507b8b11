"""Weights keep their meaning: embeddings read from the file's layout, matrices repacked for the dot products."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.layout import matmul_kernel
from engine.kernels.library import KernelLibrary
from tests.engine.kernels.operands import TYPES, Array, at, matmul, random_weights, repack, values_of

EACH_TYPE = pytest.mark.parametrize("type_name", TYPES)


def embed(library: KernelLibrary, type_name: str, table: Array, tokens: Array, n: int) -> Array:
    """Rows `tokens` int32 of a table in the file's layout -> (n_tokens, n) float32."""
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
    return out


@EACH_TYPE
def test_an_embedding_is_the_rows_exact_value(library: KernelLibrary, type_name: str) -> None:
    table = random_weights(np.random.default_rng(1), type_name, 9, 512)
    tokens = np.array([8, 0, 3, 3, 7], np.int32)

    out = embed(library, type_name, table, tokens, 512)

    np.testing.assert_array_equal(out, values_of(type_name, table, 512)[tokens])


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


def test_each_exponent_of_an_mxfp4_scale_is_exact(library: KernelLibrary) -> None:
    """Also those whose scales are no normal numbers; the largest, whose products are infinite, are left out."""
    exponents, n_inputs = np.arange(250, dtype=np.uint8), 32
    data = np.random.default_rng(3).integers(0, 256, (len(exponents), 17), np.uint8)
    data[:, 0] = exponents
    expected = values_of("MXFP4", data, n_inputs)

    packed = repack(library, "MXFP4", data, n_inputs)
    name = matmul_kernel("MXFP4", floats=True)
    weights = matmul(library, name, packed, np.eye(n_inputs, dtype=np.float32), n_inputs, unit=32).T
    rows = embed(library, "MXFP4", data, exponents.astype(np.int32), n_inputs)

    np.testing.assert_array_equal(weights[: len(data)], expected)
    np.testing.assert_array_equal(rows, expected)


@EACH_TYPE
def test_tiers_pack_the_same_bytes(libraries: list[KernelLibrary], type_name: str) -> None:
    data = random_weights(np.random.default_rng(2), type_name, 37, 768)
    first, *others = (repack(library, type_name, data, 768) for library in libraries)
    for other in others:
        np.testing.assert_array_equal(other, first)
