"""The codebooks' points and signs are those of the format."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from engine.gguf.codebooks import CODEBOOKS, even_signs, points

SIZES = {"IQ2_XXS": (256, 8), "IQ2_XS": (512, 8), "IQ2_S": (1024, 8), "IQ3_XXS": (256, 4), "IQ3_S": (512, 4)}


@pytest.mark.parametrize("name", CODEBOOKS)
def test_points_are_those_of_the_gguf_package(name: str) -> None:
    theirs = getattr(gguf.quants, name)
    theirs.init_grid()

    assert np.array_equal(points(name), theirs.grid.reshape(theirs.grid_shape))
    assert points(name).shape == SIZES.get(name, (2048, 8))


def test_signs_are_all_sets_of_even_size_by_their_first_seven() -> None:
    bits = np.unpackbits(even_signs()[:, None], axis=1, bitorder="little")

    assert not (bits.sum(axis=1) % 2).any()
    assert np.array_equal(even_signs() & 127, np.arange(128))
