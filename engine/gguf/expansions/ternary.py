"""Ternary types: -1, 0 or 1 times the scale of a block of 256."""

from __future__ import annotations

import numpy as np

from engine.gguf.expansions.parts import Blocks, Bytes, Expansions, Floats, column, pairs_of_bits
from engine.gguf.tensor_types import TensorType


def _tq1_0(blocks: Blocks) -> Floats:
    """| 32 bytes of five elements | 16 bytes of five elements | 4 bytes of four elements | d: f16 |   x = d (q - 1)

    A byte b is a fraction b / 256 in base 3: after k multiplications by 3 (dropping what overflows the byte) its digit
    is 3 b / 256. Digit k of byte i of a part of n bytes is element n k + i of the part.
    """
    parts = [_digits(blocks["five"], 5), _digits(blocks["five_more"], 5), _digits(blocks["four"], 4)]
    return column(blocks["d"]) * (np.concatenate(parts, axis=-1).astype(np.float32) - np.float32(1))


def _digits(fractions: Bytes, n_digits: int) -> Bytes:
    powers = np.array([3**k for k in range(n_digits)], np.uint8)
    shifted = fractions[:, None, :] * powers[:, None]  # (n, n_digits, n_bytes), modulo 256
    digits: Bytes = (shifted.astype(np.uint16) * np.uint16(3) >> np.uint16(8)).astype(np.uint8)
    return digits.reshape(len(fractions), -1)


def _tq2_0(blocks: Blocks) -> Floats:
    """| 2 x 32 bytes: four times two bits, as in Q2_K | d: f16 |   x = d (q - 1)"""
    q = pairs_of_bits(blocks["q"].reshape(-1, 2, 32)).reshape(len(blocks), 256)
    return column(blocks["d"]) * (q.astype(np.float32) - np.float32(1))


TERNARY: Expansions = {
    TensorType.TQ1_0: (
        _tq1_0,
        np.dtype([("five", "u1", 32), ("five_more", "u1", 16), ("four", "u1", 4), ("d", "<f2")]),
    ),
    TensorType.TQ2_0: (_tq2_0, np.dtype([("q", "u1", 64), ("d", "<f2")])),
}
