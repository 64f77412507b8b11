"""Every tensor type of GGML is known by number, block size and bytes."""

from __future__ import annotations

import gguf
import pytest

from engine.gguf import TensorType
from engine.gguf.tensor_types import REMOVED_TYPES

# Q8_1 exists only while computing; the package still gives its two scales four bytes each, GGML two.
DIFFERENT = {"Q8_1"}


@pytest.mark.parametrize("theirs", list(gguf.GGMLQuantizationType), ids=lambda theirs: theirs.name)
def test_every_type_of_the_gguf_package_is_known_with_the_same_block(theirs: gguf.GGMLQuantizationType) -> None:
    ours = TensorType(int(theirs))

    assert ours.name == theirs.name
    if theirs.name not in DIFFERENT:
        assert (ours.block_size, ours.block_bytes) == gguf.GGML_QUANT_SIZES[theirs]


def test_removed_numbers_are_not_in_use_again() -> None:
    assert not set(REMOVED_TYPES) & set(TensorType)


def test_bytes_of_a_shape_count_whole_blocks() -> None:
    assert TensorType.Q4_K.n_bytes((8, 3, 512)) == 8 * 3 * 2 * 144
    assert TensorType.F32.n_bytes(()) == 4
    with pytest.raises(ValueError, match="Q4_K has blocks of 256 elements, which do not divide rows of 300"):
        TensorType.Q4_K.n_bytes((4, 300))
