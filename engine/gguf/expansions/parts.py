"""What every expansion works with: blocks as structured arrays, and the packings that several types share.

A nibble pair is a byte with one element in its low and another in its high four bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.gguf.tensor_types import TensorType

Blocks = np.ndarray[Any, np.dtype[np.void]]
Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

# For each type: blocks (n,) -> (n, block_size) float32, and the fields of a block in the order of the file.
Expansions = dict[TensorType, tuple[Callable[[Blocks], Floats], np.dtype[np.void]]]

ONE, THREE, NIBBLE = np.uint8(1), np.uint8(3), np.uint8(4)


def column(halves: npt.NDArray[np.float16]) -> Floats:
    return halves.astype(np.float32)[:, None]


def nibbles(pairs: Bytes) -> Bytes:
    """(..., n) nibble pairs -> (..., 2 n): first all low nibbles, then all high ones."""
    return np.concatenate([pairs & np.uint8(15), pairs >> NIBBLE], axis=-1)


def pairs_of_bits(quads: Bytes) -> Bytes:
    """(..., n) bytes of four 2-bit values -> (..., 4, n): first all lowest pairs of bits, last all highest."""
    return quads[..., None, :] >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & THREE
