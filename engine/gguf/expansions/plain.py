"""Floats, and integers whose blocks of 32 stand alone."""

from __future__ import annotations

import numpy as np

from engine.gguf.expansions.parts import NIBBLE, Blocks, Bytes, Expansions, Floats, column, nibbles
from engine.gguf.tensor_types import TensorType


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
    return blocks["q"].astype(np.float32) * column(blocks["d"])


def _q4_0(blocks: Blocks) -> Floats:
    """| d: f16 | 16 nibble pairs: q[i], q[i + 16] |   x = d (q - 8)"""
    return column(blocks["d"]) * (nibbles(blocks["q"]).astype(np.float32) - np.float32(8))


def _q4_1(blocks: Blocks) -> Floats:
    """| d: f16 | m: f16 | 16 nibble pairs: q[i], q[i + 16] |   x = d q + m"""
    return column(blocks["d"]) * nibbles(blocks["q"]).astype(np.float32) + column(blocks["m"])


def _q5_0(blocks: Blocks) -> Floats:
    """| d: f16 | 32 bits: bit 4 of q[i] | 16 nibble pairs: bits 0 to 3 of q[i], q[i + 16] |   x = d (q - 16)"""
    return column(blocks["d"]) * (_five_bits(blocks).astype(np.float32) - np.float32(16))


def _q5_1(blocks: Blocks) -> Floats:
    """| d: f16 | m: f16 | 32 bits: bit 4 of q[i] | 16 nibble pairs: bits 0 to 3 of q[i], q[i + 16] |   x = d q + m"""
    return column(blocks["d"]) * _five_bits(blocks).astype(np.float32) + column(blocks["m"])


def _five_bits(blocks: Blocks) -> Bytes:
    high = np.unpackbits(blocks["high"], axis=-1, bitorder="little")  # (n, 32)
    return nibbles(blocks["q"]) | high << NIBBLE


PLAIN: Expansions = {
    TensorType.F32: (_f32, np.dtype([("x", "<f4")])),
    TensorType.F16: (_f16, np.dtype([("x", "<f2")])),
    TensorType.BF16: (_bf16, np.dtype([("x", "<u2")])),
    TensorType.Q8_0: (_q8_0, np.dtype([("d", "<f2"), ("q", "i1", 32)])),
    TensorType.Q4_0: (_q4_0, np.dtype([("d", "<f2"), ("q", "u1", 16)])),
    TensorType.Q4_1: (_q4_1, np.dtype([("d", "<f2"), ("m", "<f2"), ("q", "u1", 16)])),
    TensorType.Q5_0: (_q5_0, np.dtype([("d", "<f2"), ("high", "u1", 4), ("q", "u1", 16)])),
    TensorType.Q5_1: (_q5_1, np.dtype([("d", "<f2"), ("m", "<f2"), ("high", "u1", 4), ("q", "u1", 16)])),
}
