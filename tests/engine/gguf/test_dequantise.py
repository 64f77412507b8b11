"""The NumPy expansions equal those of the gguf package, bit for bit."""

from __future__ import annotations

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import UnsupportedModelError
from engine.gguf import TensorType, dequantise
from engine.gguf.expansions import EXPANSIONS
from tests.support.gguf_files import RANDOM_TYPES, random_tensor

TYPES = pytest.mark.parametrize("tensor_type", RANDOM_TYPES, ids=lambda tensor_type: tensor_type.name)


def reference(data: np.ndarray, tensor_type: TensorType) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        return gguf.quants.dequantize(
            data.reshape(-1, tensor_type.block_bytes), gguf.GGMLQuantizationType(int(tensor_type))
        ).reshape(-1)


def assert_same_bits(ours: np.ndarray, theirs: np.ndarray) -> None:
    """What sign and payload a NaN gets is the processor's choice; everything else is not."""
    numbers = ~np.isnan(theirs)
    assert np.array_equal(np.isnan(ours), ~numbers)
    assert np.array_equal(ours.view(np.uint32)[numbers], theirs.view(np.uint32)[numbers])


@TYPES
@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), n_blocks=st.integers(1, 40))
def test_random_bytes_expand_to_the_same_bits_as_in_the_gguf_package(
    tensor_type: TensorType, seed: int, n_blocks: int
) -> None:
    data = np.random.default_rng(seed).integers(0, 256, n_blocks * tensor_type.block_bytes, np.uint8)

    ours = dequantise(data, tensor_type, (n_blocks * tensor_type.block_size,))
    theirs = reference(data, tensor_type)

    assert_same_bits(ours, theirs)


@TYPES
def test_a_tensor_larger_than_a_chunk_expands_to_the_same_bits(tensor_type: TensorType) -> None:
    shape = (3, 5, 256 * 300)
    data = random_tensor(np.random.default_rng(5), tensor_type, shape)

    expanded = dequantise(data, tensor_type, shape)

    assert expanded.shape == shape
    assert np.array_equal(expanded.reshape(-1), reference(data, tensor_type))


@TYPES
def test_extreme_scales_expand_to_the_same_bits(tensor_type: TensorType) -> None:
    """Every two bytes of a block in turn hold what is extreme as a half: the scale is among them."""
    halves = np.array([0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00, 0x7E00], np.uint16)
    n_bytes = tensor_type.block_bytes
    blocks = np.random.default_rng(8).integers(0, 256, (n_bytes - 1, len(halves), n_bytes), np.uint8)
    for place in range(n_bytes - 1):
        blocks[place, :, place : place + 2] = halves.view(np.uint8).reshape(-1, 2)

    ours = dequantise(blocks.reshape(-1), tensor_type, (blocks.size // n_bytes * tensor_type.block_size,))

    assert_same_bits(ours, reference(blocks.reshape(-1), tensor_type))


def test_each_exponent_of_an_mxfp4_scale_expands_to_the_same_bits() -> None:
    blocks = np.random.default_rng(9).integers(0, 256, (256, 17), np.uint8)
    blocks[:, 0] = np.arange(256)

    ours = dequantise(blocks.reshape(-1), TensorType.MXFP4, (256 * 32,))

    assert_same_bits(ours, reference(blocks.reshape(-1), TensorType.MXFP4))


def test_an_unaligned_view_expands_like_an_aligned_one() -> None:
    data = random_tensor(np.random.default_rng(6), TensorType.Q4_K, (2, 256))
    shifted = np.concatenate([np.zeros(1, np.uint8), data])[1:]

    assert np.array_equal(dequantise(shifted, TensorType.Q4_K, (2, 256)), dequantise(data, TensorType.Q4_K, (2, 256)))


@pytest.mark.parametrize("tensor_type", [t for t in TensorType if t not in EXPANSIONS], ids=lambda t: t.name)
def test_a_type_without_expansion_is_refused_by_name(tensor_type: TensorType) -> None:
    data = np.zeros(tensor_type.block_bytes, np.uint8)

    with pytest.raises(UnsupportedModelError, match=rf"found {tensor_type.name}\."):
        dequantise(data, tensor_type, (tensor_type.block_size,))


def test_a_wrong_number_of_bytes_is_refused_with_both_numbers() -> None:
    with pytest.raises(
        ValueError, match=r"expected 68 bytes for Q8_0 of shape \(2, 32\), found uint8 of shape \(67,\)"
    ):
        dequantise(np.zeros(67, np.uint8), TensorType.Q8_0, (2, 32))


@TYPES
def test_random_tensors_have_the_deviation_asked_for_and_no_offset(tensor_type: TensorType) -> None:
    shape = (256, 4096)

    values = dequantise(random_tensor(np.random.default_rng(7), tensor_type, shape, std=0.02), tensor_type, shape)

    assert values.std() == pytest.approx(0.02, rel=0.03)
    assert abs(values.mean()) < 0.0004
