"""Matrix products: exact integers inside, bounded rounding outside, and rows that do not depend on their company."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.gguf import TensorType
from engine.kernels.layout import FLOAT_TYPES, ITEM_BYTES, MATMUL_SCRATCH_BYTES, N_TOTALS, ROWS_AT_ONCE, matmul_kernel
from engine.kernels.library import KernelLibrary
from tests.engine.kernels.operands import (
    QUANTISED,
    TYPES,
    Array,
    activation_parts,
    at,
    matmul,
    quantise,
    random_weights,
    repack,
    values_of,
)
from tests.support.random_blocks import RANDOM_BLOCKS, set_scales

EACH_TYPE = pytest.mark.parametrize("type_name", TYPES)
EACH_QUANTISED = pytest.mark.parametrize("type_name", QUANTISED)
EXAMPLES = settings(max_examples=12)


def kernel_input(library: KernelLibrary, type_name: str, x: Array) -> Array:
    return x if type_name in FLOAT_TYPES else quantise(library, x)


def product_and_reference(
    library: KernelLibrary, type_name: str, n_rows: int, n_inputs: int, n_tokens: int, seed: int = 0
) -> tuple[Array, Array, Array, Array]:
    """(packed, x float32, x as the kernel takes it, weights float32) of a random problem."""
    rng = np.random.default_rng(seed)
    data = random_weights(rng, type_name, n_rows, n_inputs)
    x = rng.standard_normal((n_tokens, n_inputs), np.float32)
    packed = repack(library, type_name, data, n_inputs)
    return packed, x, kernel_input(library, type_name, x), values_of(type_name, data, n_inputs)


@EACH_QUANTISED
@EXAMPLES
@given(n_rows=st.integers(1, 50), n_blocks=st.integers(1, 4), n_tokens=st.integers(1, 5), seed=st.integers(0, 999))
def test_the_only_error_is_the_rounding_of_the_activations(
    library: KernelLibrary, type_name: str, n_rows: int, n_blocks: int, n_tokens: int, seed: int
) -> None:
    n_inputs = 256 * n_blocks
    packed, x, rounded, weights = product_and_reference(library, type_name, n_rows, n_inputs, n_tokens, seed)
    _, scales, _ = activation_parts(rounded, n_inputs)
    magnitudes = np.abs(weights).astype(np.float64)
    half_steps = 0.5001 * np.repeat(scales, 256, axis=1)
    largest = np.repeat(np.abs(x).reshape(n_tokens, -1, 256).max(-1), 256, axis=1)
    # minima make the float parts larger than the weight itself: their rounding counts against scale * q and minimum
    float_slack = 1e-5 * largest @ np.maximum(magnitudes, magnitudes.max(-1, keepdims=True)).T

    out = matmul(library, matmul_kernel(type_name), packed, rounded, n_inputs, unit=n_tokens)[:, :n_rows]

    error = np.abs(out - x.astype(np.float64) @ weights.T.astype(np.float64))
    assert (error <= half_steps @ magnitudes.T + float_slack).all()


@EACH_TYPE
def test_float_activations_are_multiplied_to_five_digits(library: KernelLibrary, type_name: str) -> None:
    n_rows, n_inputs = 70, 512
    packed, x, _, weights = product_and_reference(library, type_name, n_rows, n_inputs, 6)
    name = matmul_kernel(type_name, floats=True)

    out = matmul(library, name, packed, x, n_inputs, unit=4)[:, :n_rows]

    error = np.abs(out - x.astype(np.float64) @ weights.T.astype(np.float64))
    assert (error <= 1e-5 * (np.abs(x) @ np.abs(weights).T)).all()


@EACH_TYPE
@pytest.mark.parametrize(("n_rows", "row_chunks"), [(5, 1), (50, 3), (64, 2)])
def test_a_row_is_the_same_bits_alone_and_among_others(
    library: KernelLibrary, type_name: str, n_rows: int, row_chunks: int
) -> None:
    packed, _, x, _ = product_and_reference(library, type_name, n_rows, 512, 7)
    name = matmul_kernel(type_name)

    alone = matmul(library, name, packed, x, 512, unit=1)

    for unit in (2, 3, 7):
        together = matmul(library, name, packed, x, 512, unit=unit, row_chunks=row_chunks)
        np.testing.assert_array_equal(together, alone)


@EACH_QUANTISED
def test_integer_parts_are_exact(library: KernelLibrary, type_name: str) -> None:
    """Scales of one and activations of whole sixteenths: every partial sum is a float32 without rounding."""
    rng = np.random.default_rng(4)
    n_rows, n_inputs = 32, 256
    data = random_weights(rng, type_name, n_rows, n_inputs)
    weights_are_whole(type_name, data)
    x = rng.integers(-126, 127, (3, n_inputs)).astype(np.float32)
    x[:, 0] = 127  # the scale is 127 / 2032: one sixteenth
    packed, rounded = repack(library, type_name, data, n_inputs), quantise(library, x)
    expected = x.astype(np.float64) @ values_of(type_name, data, n_inputs).astype(np.float64).T

    for unit in (1, 3):
        out = matmul(library, matmul_kernel(type_name), packed, rounded, n_inputs, unit=unit)
        np.testing.assert_array_equal(out, expected)


def weights_are_whole(type_name: str, data: Array) -> None:
    """Set the scales of random weights to one and their minima to whole numbers, so small that sums stay exact."""
    kind = TensorType[type_name]
    blocks = data.reshape(-1, kind.block_bytes)
    one, minus_three = np.float16(1).tobytes(), np.float16(-3).tobytes()
    if kind == TensorType.MXFP4:
        blocks[:, 0] = 128
    elif kind in RANDOM_BLOCKS:
        set_scales(kind, blocks, np.full(len(blocks), 2 if kind == TensorType.Q2_K else 1, np.float32))
        if kind == TensorType.IQ4_XS:
            blocks[:, 2:4] = 0xAA  # scales of 0 to 15
        return
    blocks[:, 208:210] = np.frombuffer(one, np.uint8) if type_name == "Q6_K" else blocks[:, 208:210]
    if type_name not in ("Q6_K", "MXFP4"):
        blocks[:, 0:2] = np.frombuffer(one, np.uint8)
    if type_name in ("Q4_1", "Q5_1"):
        blocks[:, 2:4] = np.frombuffer(minus_three, np.uint8)
    if type_name in ("Q4_K", "Q5_K"):
        blocks[:, 2:4] = np.frombuffer(one, np.uint8)


@EACH_TYPE
def test_a_bias_is_added(library: KernelLibrary, type_name: str) -> None:
    packed, _, x, _ = product_and_reference(library, type_name, 40, 256, 21)
    bias = np.random.default_rng(5).standard_normal(48).astype(np.float32)
    name = matmul_kernel(type_name)

    plain = matmul(library, name, packed, x, 256, unit=1)
    biased = matmul(library, name, packed, x, 256, unit=21, bias=bias)

    np.testing.assert_allclose(biased, plain + bias, rtol=1e-5, atol=1e-6 * np.abs(plain).max())
    np.testing.assert_array_equal(matmul(library, name, packed, x, 256, unit=1, bias=bias), biased)


@EACH_TYPE
@pytest.mark.parametrize("n_tokens", [18, 40, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 3])
def test_rows_are_the_same_bits_where_more_groups_share_them_than_fit_at_once(
    library: KernelLibrary, type_name: str, n_tokens: int
) -> None:
    n_groups = N_TOTALS // min(n_tokens, ROWS_AT_ONCE) + 2
    packed, _, x, _ = product_and_reference(library, type_name, 16 * n_groups, 512, n_tokens)
    name = matmul_kernel(type_name)

    together = matmul(library, name, packed, x, 512, unit=n_tokens)

    np.testing.assert_array_equal(together, matmul(library, name, packed, x, 512, unit=1))


@EACH_TYPE
def test_expert_items_use_the_matrix_and_the_rows_that_they_name(library: KernelLibrary, type_name: str) -> None:
    n_experts, n_rows, n_inputs, offset = 4, 40, 256, 128
    rng = np.random.default_rng(6)
    slots, matrices = np.zeros(n_experts, np.int64), []
    for expert in range(n_experts):
        packed = repack(library, type_name, random_weights(rng, type_name, n_rows, n_inputs), n_inputs)
        slab = np.concatenate([np.zeros(offset, np.uint8), packed.reshape(-1)])
        slots[expert] = at(slab)
        matrices.append((packed, slab))
    x = kernel_input(library, type_name, rng.standard_normal((6, n_inputs), np.float32))
    # expert 1 has pairs 0..3, expert 3 pairs 4..5
    items = np.array([[1, 0, 3, 0], [1, 3, 1, 0], [3, 4, 2, 0]], np.int64)
    assert items.strides[0] == ITEM_BYTES
    n_groups, row_chunks = -(-n_rows // 16), 2
    out = np.full((6, 16 * n_groups), np.nan, np.float32)
    extent, scratch = np.array([len(items)], np.int64), np.zeros(MATMUL_SCRATCH_BYTES, np.uint8)

    for chunk in range(len(items) * row_chunks):
        library.run(
            matmul_kernel(type_name),
            chunk,
            at(scratch),
            weights=at(slots),
            matrix_offset=offset,
            group_bytes=matrices[0][0].shape[1],
            n_groups=n_groups,
            groups_per_chunk=2,
            row_chunks=row_chunks,
            n_inputs=n_inputs,
            x=at(x),
            x_stride=x.strides[0],
            out=at(out),
            out_stride=out.strides[0],
            bias=0,
            extent=at(extent),
            unit=1,
            items=at(items),
        )

    for pair, expert in enumerate([1, 1, 1, 1, 3, 3]):
        expected = matmul(library, matmul_kernel(type_name), matrices[expert][0], x, n_inputs)[pair]
        np.testing.assert_array_equal(out[pair], expected)


@EACH_TYPE
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_activation_spoils_its_row_and_no_other(library: KernelLibrary, type_name: str, bad: float) -> None:
    rng = np.random.default_rng(7)
    packed = repack(library, type_name, random_weights(rng, type_name, 32, 256), 256)
    x = rng.standard_normal((3, 256), np.float32)
    x[1, 77] = bad
    for unit in (1, 3):
        out = matmul(library, matmul_kernel(type_name), packed, kernel_input(library, type_name, x), 256, unit=unit)
        assert np.isfinite(out[[0, 2]]).all()
        assert not np.isfinite(out[1]).any()


@EACH_TYPE
@pytest.mark.parametrize("floats", [False, True])
def test_tiers_agree_closely(libraries: list[KernelLibrary], type_name: str, floats: bool) -> None:
    name = matmul_kernel(type_name, floats=floats)
    rng = np.random.default_rng(8)
    data = random_weights(rng, type_name, 64, 1024)
    x = rng.standard_normal((4, 1024), np.float32)
    results = []
    for library in libraries:
        given_x = x if floats else kernel_input(library, type_name, x)
        packed = repack(library, type_name, data, 1024)
        results.append(matmul(library, name, packed, given_x, 1024, unit=4))
    for other in results[1:]:
        assert np.abs(other - results[0]).max() <= 1e-5 * np.abs(results[0]).max()


@pytest.mark.parametrize("n_rows", [1, 5, 8])
@pytest.mark.parametrize("n_inputs", [8, 40, 4096])
def test_few_rows_of_floats_lie_in_half_the_space(library: KernelLibrary, n_rows: int, n_inputs: int) -> None:
    rng = np.random.default_rng(9)
    weights = rng.standard_normal((n_rows, n_inputs), np.float32)
    x = rng.standard_normal((3, n_inputs), np.float32)
    bias = rng.standard_normal(16).astype(np.float32)
    packed = repack(library, "F32x8", weights.view(np.uint8), n_inputs)
    assert packed.nbytes == 32 * n_inputs

    out = matmul(library, "matmul_F32x8", packed, x, n_inputs, bias=bias)

    expected = np.tile(bias, (3, 1)).astype(np.float64)
    expected[:, :n_rows] += x.astype(np.float64) @ weights.T
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5 * np.sqrt(n_inputs))
