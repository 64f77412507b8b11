"""Four-bit types whose nibbles number the values of a table."""

from __future__ import annotations

import numpy as np

from engine.gguf.expansions.parts import NIBBLE, THREE, Blocks, Expansions, Floats, column, nibbles
from engine.gguf.tensor_types import TensorType

# found by GGML's authors for weights that are distributed normally
NONLINEAR = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
# E2M1 of the OCP Microscaling specification, doubled: one bit sign, two bits exponent, one bit mantissa
E2M1_DOUBLED = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)

_nonlinear, _e2m1_doubled = np.array(NONLINEAR, np.float32), np.array(E2M1_DOUBLED, np.float32)


def _iq4_nl(blocks: Blocks) -> Floats:
    """| d: f16 | 16 nibble pairs: q[i], q[i + 16] |   x = d table[q]"""
    return column(blocks["d"]) * _nonlinear[nibbles(blocks["q"])]


def _iq4_xs(blocks: Blocks) -> Floats:
    """| d: f16 | 16 bits: 8 x two high bits of a scale | 4 nibble pairs: low bits of scales 2 i, 2 i + 1 | 128 |

    Sub-block j has 32 elements, in nibble pairs as in IQ4_NL: x = (d (scale[j] - 32)) table[q]
    """
    n = len(blocks)
    low = np.stack([blocks["low"] & np.uint8(15), blocks["low"] >> NIBBLE], axis=-1).reshape(n, 8)
    high = (blocks["high"][:, None] >> np.arange(0, 16, 2, dtype=np.uint16)).astype(np.uint8) & THREE  # (n, 8)
    scale = column(blocks["d"]) * ((low | high << NIBBLE).astype(np.float32) - np.float32(32))
    x: Floats = scale[:, :, None] * _nonlinear[nibbles(blocks["q"])]
    return x.reshape(n, 256)


def _mxfp4(blocks: Blocks) -> Floats:
    """| e: u8 | 16 nibble pairs: q[i], q[i + 16] |   x = 2^(e - 128) table[q], with the doubled values in the table

    The scale is written down as the bits of a float32, which for e below 2 is not normalised.
    """
    e = blocks["e"].astype(np.uint32)
    bits = np.where(e < 2, np.uint32(0x00200000) << e, e - np.uint32(1) << np.uint32(23)).astype(np.uint32)
    return bits.view(np.float32)[:, None] * _e2m1_doubled[nibbles(blocks["q"])]


TABLES: Expansions = {
    TensorType.IQ4_NL: (_iq4_nl, np.dtype([("d", "<f2"), ("q", "u1", 16)])),
    TensorType.IQ4_XS: (_iq4_xs, np.dtype([("d", "<f2"), ("high", "<u2"), ("low", "u1", 4), ("q", "u1", (8, 16))])),
    TensorType.MXFP4: (_mxfp4, np.dtype([("e", "u1"), ("q", "u1", 16)])),
}
