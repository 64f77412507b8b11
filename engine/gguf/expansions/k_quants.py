"""K-quants: blocks of 256 with integer scales for their parts."""

from __future__ import annotations

import numpy as np

from engine.gguf.expansions.parts import NIBBLE, ONE, Blocks, Bytes, Expansions, Floats, column, nibbles, pairs_of_bits
from engine.gguf.tensor_types import TensorType


def _q2_k(blocks: Blocks) -> Floats:
    """| 16 nibble pairs: scale, min | 2 x 32 bytes: four times two bits | d: f16 | dmin: f16 |

    Element 128 h + 32 k + i is bits 2 k, 2 k + 1 of byte 32 h + i. Sub-block j has 16 elements:
    x = (d scale[j]) q - dmin min[j]
    """
    n = len(blocks)
    q = pairs_of_bits(blocks["q"].reshape(n, 2, 32)).reshape(n, 16, 16).astype(np.float32)
    scale = column(blocks["d"]) * (blocks["scales"] & np.uint8(15)).astype(np.float32)  # (n, 16)
    minimum = column(blocks["dmin"]) * (blocks["scales"] >> NIBBLE).astype(np.float32)
    return (scale[:, :, None] * q - minimum[:, :, None]).reshape(n, 256)


def _q3_k(blocks: Blocks) -> Floats:
    """| 32 bytes: bit j is bit 2 of q[32 j + i] | 2 x 32 bytes: low bits as in Q2_K | 12 bytes: 16 scales | d: f16 |

    Scales have six bits: the low four of scale j and 8 + j are a nibble pair in byte j; the high two of scale 4 k + i
    are bits 2 k, 2 k + 1 of byte 8 + i. Sub-block j has 16 elements: x = (d (scale[j] - 32)) (q - 4)
    """
    n = len(blocks)
    high = blocks["high"][:, None, :] >> np.arange(8, dtype=np.uint8)[:, None] & ONE  # (n, 8, 32)
    low = pairs_of_bits(blocks["q"].reshape(n, 2, 32)).reshape(n, 8, 32)
    q = (low | high << np.uint8(2)).reshape(n, 16, 16).astype(np.float32) - np.float32(4)
    packed = blocks["scales"]
    integers = nibbles(packed[:, :8]) | pairs_of_bits(packed[:, 8:]).reshape(n, 16) << NIBBLE
    scale = column(blocks["d"]) * (integers.astype(np.float32) - np.float32(32))
    x: Floats = scale[:, :, None] * q
    return x.reshape(n, 256)


def _q4_k(blocks: Blocks) -> Floats:
    """| d: f16 | dmin: f16 | 12 bytes: 8 x (scale, min) of 6 bits | 4 x 32 nibble pairs |

    Pair i of group g holds q[64 g + i] and q[64 g + 32 + i]. Sub-block j has 32 elements:
    x = (d scale[j]) q - dmin min[j]
    """
    q = nibbles(blocks["q"].reshape(len(blocks), 4, 32)).reshape(len(blocks), 8, 32)
    return _scaled_with_min(blocks, q)


def _q5_k(blocks: Blocks) -> Floats:
    """| d: f16 | dmin: f16 | 12 bytes: 8 x (scale, min) of 6 bits | 32 bytes: bit j is bit 4 of q[32 j + i] | nibbles |

    The nibbles and the meaning are those of Q4_K.
    """
    low = nibbles(blocks["q"].reshape(len(blocks), 4, 32)).reshape(len(blocks), 8, 32)
    high = blocks["high"][:, None, :] >> np.arange(8, dtype=np.uint8)[:, None] & ONE
    return _scaled_with_min(blocks, low | high << NIBBLE)


def _q6_k(blocks: Blocks) -> Floats:
    """| 2 x 64 nibble pairs: low bits | 2 x 32 bytes: four times two high bits | 16 x int8 scale | d: f16 |

    Half h: element 128 h + 32 k + i has its low bits in byte 64 h + 32 (k % 2) + i, in the high nibble for k >= 2, and
    its two high bits in byte 32 h + i from bit 2 k on. Sub-block j has 16 elements: x = (d scale[j]) (q - 32)
    """
    n = len(blocks)
    low = nibbles(blocks["low"].reshape(n, 2, 64)).reshape(n, 2, 4, 32)
    high = pairs_of_bits(blocks["high"].reshape(n, 2, 32))
    q = (low | high << NIBBLE).reshape(n, 16, 16).astype(np.float32) - np.float32(32)
    scale = column(blocks["d"]) * blocks["scales"].astype(np.float32)  # (n, 16)
    return (scale[:, :, None] * q).reshape(n, 256)


def _scaled_with_min(blocks: Blocks, q: Bytes) -> Floats:
    """x = (d scale[j]) q - dmin min[j] with q (n, 8, 32) and the packed scales of Q4_K and Q5_K.

    Byte j (0 to 3) of `scales` has scale j in its low six bits, byte 4 + j has min j. Byte 8 + j has the low four bits
    of scale 4 + j and of min 4 + j; their two high bits are the high bits of bytes j and 4 + j.
    """
    first, second, third = (blocks["scales"][:, start : start + 4] for start in (0, 4, 8))
    scale = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=-1).astype(np.float32)  # (n, 8)
    minimum = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=-1).astype(np.float32)
    scale *= column(blocks["d"])
    minimum *= column(blocks["dmin"])
    x = scale[:, :, None] * q.astype(np.float32) - minimum[:, :, None]
    return x.reshape(len(blocks), 256)


K_QUANTS: Expansions = {
    TensorType.Q2_K: (_q2_k, np.dtype([("scales", "u1", 16), ("q", "u1", 64), ("d", "<f2"), ("dmin", "<f2")])),
    TensorType.Q3_K: (
        _q3_k,
        np.dtype([("high", "u1", 32), ("q", "u1", 64), ("scales", "u1", 12), ("d", "<f2")]),
    ),
    TensorType.Q4_K: (_q4_k, np.dtype([("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", 12), ("q", "u1", 128)])),
    TensorType.Q5_K: (
        _q5_k,
        np.dtype([("d", "<f2"), ("dmin", "<f2"), ("scales", "u1", 12), ("high", "u1", 32), ("q", "u1", 128)]),
    ),
    TensorType.Q6_K: (
        _q6_k,
        np.dtype([("low", "u1", 128), ("high", "u1", 64), ("scales", "i1", 16), ("d", "<f2")]),
    ),
}
