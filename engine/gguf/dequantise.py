"""What the bytes of a tensor mean: plain NumPy references that expand each tensor type to float32.

Each function takes blocks as a structured array (n_blocks,) whose fields stand in the order of the file, and gives
(n_blocks, block_size) float32. The arithmetic is done in float32 in the order of GGML's own expansion, so that results
are equal bit for bit. A nibble pair is a byte with one element in its low and another in its high four bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.errors import UnsupportedModelError
from engine.gguf.tensor_types import TensorType

Blocks = np.ndarray[Any, np.dtype[np.void]]
Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

_CHUNK_ELEMENTS = 1 << 20  # bounds the temporary arrays
_ONE, _NIBBLE = np.uint8(1), np.uint8(4)


def dequantise(data: npt.NDArray[np.uint8], type: TensorType, shape: tuple[int, ...]) -> Floats:
    """Expand a tensor to float32.

    data: (n_bytes,) uint8, exactly the tensor's bytes. shape: NumPy order, as in TensorInfo. Returns `shape` float32.
    Raises ValueError if data and shape disagree, UnsupportedModelError for a type that has no expansion here.
    """
    if type not in _EXPANSIONS:
        known = ", ".join(known_type.name for known_type in _EXPANSIONS)
        raise UnsupportedModelError(
            f"expected a tensor of a type that can be expanded ({known}), found {type.name}. "
            "Choose a file of this model in one of these types."
        )
    expected_bytes = type.n_bytes(shape)
    if data.dtype != np.uint8 or data.shape != (expected_bytes,):
        raise ValueError(
            f"expected {expected_bytes:,} bytes for {type.name} of shape {shape}, "
            f"found {data.dtype} of shape {data.shape}"
        )
    expand, layout = _EXPANSIONS[type]
    blocks = np.ascontiguousarray(data).view(layout)
    result = np.empty((len(blocks), type.block_size), np.float32)
    step = _CHUNK_ELEMENTS // type.block_size
    with np.errstate(invalid="ignore", over="ignore"):  # infinities in a damaged file are the caller's to notice
        for start in range(0, len(blocks), step):
            result[start : start + step] = expand(blocks[start : start + step])
    return result.reshape(shape)


def _f32(blocks: Blocks) -> Floats:
    """| 4 bytes: the element |"""
    return blocks["x"][:, None]


def _f16(blocks: Blocks) -> Floats:
    """| 2 bytes: the element, IEEE half |"""
    return blocks["x"].astype(np.float32)[:, None]


def _bf16(blocks: Blocks) -> Floats:
    """| 2 bytes: the upper half of a float32 |"""
    return (blocks["x"].astype(np.uint32) << 16).view(np.float32)[:, None]


def _q8_0(blocks: Blocks) -> Floats:
    """| d: f16 | 32 x int8 q |   x = d q"""
    return blocks["q"].astype(np.float32) * _column(blocks["d"])


def _q4_0(blocks: Blocks) -> Floats:
    """| d: f16 | 16 nibble pairs: q[i], q[i + 16] |   x = d (q - 8)"""
    return _column(blocks["d"]) * (_nibbles(blocks["q"]).astype(np.float32) - np.float32(8))


def _q4_1(blocks: Blocks) -> Floats:
    """| d: f16 | m: f16 | 16 nibble pairs: q[i], q[i + 16] |   x = d q + m"""
    return _column(blocks["d"]) * _nibbles(blocks["q"]).astype(np.float32) + _column(blocks["m"])


def _q5_0(blocks: Blocks) -> Floats:
    """| d: f16 | 32 bits: bit 4 of q[i] | 16 nibble pairs: bits 0 to 3 of q[i], q[i + 16] |   x = d (q - 16)"""
    return _column(blocks["d"]) * (_five_bits(blocks).astype(np.float32) - np.float32(16))


def _q5_1(blocks: Blocks) -> Floats:
    """| d: f16 | m: f16 | 32 bits: bit 4 of q[i] | 16 nibble pairs: bits 0 to 3 of q[i], q[i + 16] |   x = d q + m"""
    return _column(blocks["d"]) * _five_bits(blocks).astype(np.float32) + _column(blocks["m"])


def _q4_k(blocks: Blocks) -> Floats:
    """| d: f16 | dmin: f16 | 12 bytes: 8 x (scale, min) of 6 bits | 4 x 32 nibble pairs |

    Pair i of group g holds q[64 g + i] and q[64 g + 32 + i]. Sub-block j has 32 elements:
    x = (d scale[j]) q - dmin min[j]
    """
    q = _nibbles(blocks["q"].reshape(len(blocks), 4, 32)).reshape(len(blocks), 8, 32)
    return _scaled_with_min(blocks, q)


def _q5_k(blocks: Blocks) -> Floats:
    """| d: f16 | dmin: f16 | 12 bytes: 8 x (scale, min) of 6 bits | 32 bytes: bit j is bit 4 of q[32 j + i] | nibbles |

    The nibbles and the meaning are those of Q4_K.
    """
    low = _nibbles(blocks["q"].reshape(len(blocks), 4, 32)).reshape(len(blocks), 8, 32)
    high = blocks["high"][:, None, :] >> np.arange(8, dtype=np.uint8)[:, None] & _ONE
    return _scaled_with_min(blocks, low | high << _NIBBLE)


def _q6_k(blocks: Blocks) -> Floats:
    """| 2 x 64 nibble pairs: low bits | 2 x 32 bytes: four times two high bits | 16 x int8 scale | d: f16 |

    Half h: element 128 h + 32 k + i has its low bits in byte 64 h + 32 (k % 2) + i, in the high nibble for k >= 2, and
    its two high bits in byte 32 h + i from bit 2 k on. Sub-block j has 16 elements: x = (d scale[j]) (q - 32)
    """
    n = len(blocks)
    low = _nibbles(blocks["low"].reshape(n, 2, 64)).reshape(n, 2, 4, 32)
    high = blocks["high"].reshape(n, 2, 1, 32) >> np.arange(0, 8, 2, dtype=np.uint8)[:, None] & np.uint8(3)
    q = (low | high << _NIBBLE).reshape(n, 16, 16).astype(np.float32) - np.float32(32)
    scale = _column(blocks["d"]) * blocks["scales"].astype(np.float32)  # (n, 16)
    return (scale[:, :, None] * q).reshape(n, 256)


def _column(halves: npt.NDArray[np.float16]) -> Floats:
    return halves.astype(np.float32)[:, None]


def _nibbles(pairs: Bytes) -> Bytes:
    """(..., n) nibble pairs -> (..., 2 n): first all low nibbles, then all high ones."""
    return np.concatenate([pairs & np.uint8(15), pairs >> _NIBBLE], axis=-1)


def _five_bits(blocks: Blocks) -> Bytes:
    high = np.unpackbits(blocks["high"], axis=-1, bitorder="little")  # (n, 32)
    return _nibbles(blocks["q"]) | high << _NIBBLE


def _scaled_with_min(blocks: Blocks, q: Bytes) -> Floats:
    """x = (d scale[j]) q - dmin min[j] with q (n, 8, 32) and the packed scales of Q4_K and Q5_K.

    Byte j (0 to 3) of `scales` has scale j in its low six bits, byte 4 + j has min j. Byte 8 + j has the low four bits
    of scale 4 + j and of min 4 + j; their two high bits are the high bits of bytes j and 4 + j.
    """
    first, second, third = (blocks["scales"][:, start : start + 4] for start in (0, 4, 8))
    scale = np.concatenate([first & 63, third & 15 | first >> 6 << 4], axis=-1).astype(np.float32)  # (n, 8)
    minimum = np.concatenate([second & 63, third >> 4 | second >> 6 << 4], axis=-1).astype(np.float32)
    scale *= _column(blocks["d"])
    minimum *= _column(blocks["dmin"])
    x = scale[:, :, None] * q.astype(np.float32) - minimum[:, :, None]
    return x.reshape(len(blocks), 256)


# For each type: its expansion, and the fields of a block in the order of the file.
_EXPANSIONS: dict[TensorType, tuple[Callable[[Blocks], Floats], np.dtype[np.void]]] = {
    TensorType.F32: (_f32, np.dtype([("x", "<f4")])),
    TensorType.F16: (_f16, np.dtype([("x", "<f2")])),
    TensorType.BF16: (_bf16, np.dtype([("x", "<u2")])),
    TensorType.Q8_0: (_q8_0, np.dtype([("d", "<f2"), ("q", "i1", 32)])),
    TensorType.Q4_0: (_q4_0, np.dtype([("d", "<f2"), ("q", "u1", 16)])),
    TensorType.Q4_1: (_q4_1, np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)])),
    TensorType.Q5_0: (_q5_0, np.dtype([("d", "<f2"), ("high", "u1", 4), ("q", "u1", 16)])),
    TensorType.Q5_1: (_q5_1, np.dtype([("d", "<f2"), ("m", "<f2"), ("high", "u1", 4), ("q", "u1", 16)])),
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
