"""Types of one to three bits whose numbers name points of a codebook, eight or four elements at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engine.gguf.codebooks import even_signs, points
from engine.gguf.expansions.parts import NIBBLE, THREE, Blocks, Bytes, Expansions, Floats, column
from engine.gguf.tensor_types import TensorType

_HALF, _QUARTER = np.float32(0.5), np.float32(0.25)
_DELTA = np.float32(0.125)  # what the one-bit types move a point by
_SEVEN_BITS = np.arange(0, 28, 7, dtype=np.uint32)


def _iq2_xxs(blocks: Blocks) -> Floats:
    """| d: f16 | 8 x [4 bytes: points | 4 x 7 bits: signs, 4 bits: scale] |   x = (d (scale + 1/2) / 4) point sign"""
    q, words = blocks["parts"]["q"], blocks["parts"]["signs"]  # (n, 8, 4), (n, 8)
    scale = column(blocks["d"]) * (_HALF + (words >> np.uint32(28)).astype(np.float32)) * _QUARTER
    return _signed(scale, points("IQ2_XXS")[q], _seven_signs(words))


def _iq2_xs(blocks: Blocks) -> Floats:
    """| d: f16 | 32 x [9 bits: point, 7 bits: signs] | 8 nibble pairs: scales of 16 elements each |   as IQ2_XXS"""
    q = blocks["q"]  # (n, 32)
    scale = column(blocks["d"]) * (_HALF + _in_pairs(blocks["scales"]).astype(np.float32)) * _QUARTER
    return _signed(scale, points("IQ2_XS")[q & np.uint16(511)], _EVEN_SIGNS[q >> np.uint16(9)])


def _iq2_s(blocks: Blocks) -> Floats:
    """| d: f16 | 32 bytes: points, low bits | 32 bytes: signs | 8 x four times two high bits | scales as IQ2_XS |"""
    high = blocks["high"][:, :, None] >> np.arange(0, 8, 2, dtype=np.uint8) & THREE  # (n, 8, 4)
    scale = column(blocks["d"]) * (_HALF + _in_pairs(blocks["scales"]).astype(np.float32)) * _QUARTER
    return _signed(scale, points("IQ2_S")[_joined(blocks["q"], high)], blocks["signs"])


def _iq3_xxs(blocks: Blocks) -> Floats:
    """| d: f16 | 64 bytes: points of four | 8 x [4 x 7 bits: signs, 4 bits: scale] |

    x = (d (scale + 1/2) / 2) point sign
    """
    words = blocks["signs"]  # (n, 8)
    scale = column(blocks["d"]) * (_HALF + (words >> np.uint32(28)).astype(np.float32)) * _HALF
    return _signed(scale, points("IQ3_XXS")[blocks["q"]], _seven_signs(words))


def _iq3_s(blocks: Blocks) -> Floats:
    """| d: f16 | 64 bytes: points of four | 8 bytes: ninth bits | 32 bytes: signs | 4 nibble pairs: scales |

    x = (d (2 scale + 1)) point sign, a scale for 32 elements.
    """
    high = np.unpackbits(blocks["high"], axis=-1, bitorder="little")  # (n, 64)
    scale = column(blocks["d"]) * (2 * _in_pairs(blocks["scales"]) + 1).astype(np.float32)
    return _signed(scale, points("IQ3_S")[_joined(blocks["q"], high)], blocks["signs"])


def _iq1_s(blocks: Blocks) -> Floats:
    """| d: f16 | 32 bytes: points, low bits | 8 x [4 x 3 high bits, 3 bits: scale, a bit: minus] |

    x = (d (2 scale + 1)) (point + delta), delta 1/8 or with the bit -1/8.
    """
    words = blocks["high"]  # (n, 8)
    high = words[:, :, None] >> np.arange(0, 12, 3, dtype=np.uint16) & np.uint16(7)  # (n, 8, 4)
    delta = np.where(words >> np.uint16(15) == 0, _DELTA, -_DELTA)
    scale = column(blocks["d"]) * (2 * (words >> np.uint16(12) & np.uint16(7)) + 1).astype(np.float32)
    point = points("IQ1_S")[_joined(blocks["q"], high)].reshape(len(blocks), 8, 32)
    return (scale[:, :, None] * (point + delta[:, :, None])).reshape(len(blocks), 256)


def _iq1_m(blocks: Blocks) -> Floats:
    """| 32 bytes: points, low bits | 16 bytes: twice [3 high bits, a bit: minus] | 4 x [4 x 3 bits: scale, 4 of d] |

    x = (d (2 scale + 1)) (point + delta): a scale for 16 elements, a delta for 8. The f16 d is cut into nibbles.
    """
    n, words = len(blocks), blocks["scales"]  # (n, 4)
    d = np.bitwise_or.reduce(words >> np.uint16(12) << np.arange(0, 16, 4, dtype=np.uint16), axis=-1)
    integers = (words[:, :, None] >> np.arange(0, 12, 3, dtype=np.uint16) & np.uint16(7)).reshape(n, 16)
    scale = column(d.view(np.float16)) * (2 * integers + 1).astype(np.float32)
    high = _in_pairs(blocks["high"])  # (n, 32)
    delta = np.where(high & np.uint8(8) == 0, _DELTA, -_DELTA)
    point = points("IQ1_S")[_joined(blocks["q"], high & np.uint8(7))]  # (n, 32, 8)
    moved = (point + delta[:, :, None]).reshape(n, 16, 16)
    return (scale[:, :, None] * moved).reshape(n, 256)


def _in_pairs(pairs: Bytes) -> Bytes:
    """(n, k) nibble pairs -> (n, 2 k): the low and the high nibble of each after one another."""
    return np.stack([pairs & np.uint8(15), pairs >> NIBBLE], axis=-1).reshape(len(pairs), -1)


def _joined(low: Bytes, high: npt.NDArray[np.unsignedinteger]) -> npt.NDArray[np.uint16]:
    """The numbers of points from their low eight bits (n, k) and the bits above, in the same order."""
    return low | high.reshape(low.shape).astype(np.uint16) << np.uint16(8)


def _seven_signs(words: npt.NDArray[np.uint32]) -> Bytes:
    """(n, 8) words of four times seven bits -> (n, 32) bytes of eight signs."""
    sevens = words[:, :, None] >> _SEVEN_BITS & np.uint32(127)
    signs: Bytes = _EVEN_SIGNS[sevens].reshape(len(words), 32)
    return signs


def _signed(scale: Floats, point: Floats, signs: Bytes) -> Floats:
    """Points (n, k, 4 or 8) times scales (n, 8 or 16) of equal parts and signs (n, 32), a bit for each element."""
    n = len(scale)
    minus = np.unpackbits(signs, axis=-1, bitorder="little").reshape(n, 256)
    x = (scale[:, :, None] * point.reshape(n, scale.shape[1], -1)).reshape(n, 256)
    return x * np.where(minus == 0, np.float32(1), np.float32(-1))


_EVEN_SIGNS = even_signs()

CODEBOOK_TYPES: Expansions = {
    TensorType.IQ2_XXS: (
        _iq2_xxs,
        np.dtype([("d", "<f2"), ("parts", np.dtype([("q", "u1", 4), ("signs", "<u4")]), 8)]),
    ),
    TensorType.IQ2_XS: (_iq2_xs, np.dtype([("d", "<f2"), ("q", "<u2", 32), ("scales", "u1", 8)])),
    TensorType.IQ2_S: (
        _iq2_s,
        np.dtype([("d", "<f2"), ("q", "u1", 32), ("signs", "u1", 32), ("high", "u1", 8), ("scales", "u1", 8)]),
    ),
    TensorType.IQ3_XXS: (_iq3_xxs, np.dtype([("d", "<f2"), ("q", "u1", 64), ("signs", "<u4", 8)])),
    TensorType.IQ3_S: (
        _iq3_s,
        np.dtype([("d", "<f2"), ("q", "u1", 64), ("high", "u1", 8), ("signs", "u1", 32), ("scales", "u1", 4)]),
    ),
    TensorType.IQ1_S: (_iq1_s, np.dtype([("d", "<f2"), ("q", "u1", 32), ("high", "<u2", 8)])),
    TensorType.IQ1_M: (_iq1_m, np.dtype([("q", "u1", 32), ("high", "u1", 16), ("scales", "<u2", 4)])),
}
