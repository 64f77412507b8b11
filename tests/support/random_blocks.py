"""Random blocks of the newer tensor types: every bit random, but scales that give the deviation asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from engine.gguf import TensorType, dequantise

Blocks = npt.NDArray[np.uint8]  # (n, bytes of a block)
MakeBlocks = Callable[[np.random.Generator, int, float], Blocks]

# The byte of a block at which its f16 scale begins.
SCALE_PLACE: dict[TensorType, int] = {
    TensorType.Q3_K: 108,
    TensorType.IQ4_NL: 0,
    TensorType.IQ4_XS: 0,
    TensorType.IQ2_XXS: 0,
    TensorType.IQ2_XS: 0,
    TensorType.IQ2_S: 0,
    TensorType.IQ3_XXS: 0,
    TensorType.IQ3_S: 0,
    TensorType.IQ1_S: 0,
    TensorType.TQ1_0: 52,
    TensorType.TQ2_0: 64,
}
_Q2_K_SCALE, _Q2_K_MINIMUM, _Q2_K_MIDDLE = 80, 82, 1.5
_MXFP4_ONE = 128  # the exponent of a scale of one


def set_iq1_m_scales(blocks: Blocks, halves: npt.NDArray[np.float16]) -> None:
    """Spread each block's f16 scale over the upper nibbles of its last four 16-bit words."""
    words = blocks[:, 48:].view(np.uint16)
    nibbles = halves.view(np.uint16)[:, None] >> np.arange(0, 16, 4, dtype=np.uint16) & np.uint16(15)
    words[:] = words & np.uint16(0x0FFF) | nibbles << np.uint16(12)


def set_scales(type: TensorType, blocks: Blocks, scales: npt.NDArray[np.float32]) -> None:
    """Give each block its f16 scale (n,); Q2_K a minimum too, which puts the middle of equal sub-blocks at zero."""
    halves = scales.astype(np.float16)
    if type == TensorType.IQ1_M:
        set_iq1_m_scales(blocks, halves)
        return
    place = _Q2_K_SCALE if type == TensorType.Q2_K else SCALE_PLACE[type]
    blocks[:, place : place + 2] = halves.view(np.uint8).reshape(-1, 2)
    if type == TensorType.Q2_K:
        minima = (scales * np.float32(_Q2_K_MIDDLE)).astype(np.float16)
        blocks[:, _Q2_K_MINIMUM : _Q2_K_MINIMUM + 2] = minima.view(np.uint8).reshape(-1, 2)


def _scaled(type: TensorType, rng: np.random.Generator, n: int, std: float) -> Blocks:
    """Blocks with scales of either sign and some spread around what gives the deviation `std`."""
    blocks = rng.integers(0, 256, (n, type.block_bytes), np.uint8)
    if type == TensorType.Q2_K:
        low = blocks[:, :16] & np.uint8(15)
        blocks[:, :16] = low | low << np.uint8(4)  # the minimum of a sub-block is its scale
    set_scales(type, blocks, np.ones(n, np.float32))
    ones = dequantise(blocks.reshape(-1), type, (n * type.block_size,))
    spread = rng.uniform(0.5, 1.5, n) * (rng.integers(0, 2, n) * 2 - 1)
    set_scales(type, blocks, (spread * (std / np.sqrt(np.mean(ones**2) * 13 / 12))).astype(np.float32))
    return blocks


def _mxfp4(rng: np.random.Generator, n: int, std: float) -> Blocks:
    """Scales are powers of two: some of the two next to what is wanted, so that the mean square is right."""
    blocks = rng.integers(0, 256, (n, TensorType.MXFP4.block_bytes), np.uint8)
    blocks[:, 0] = _MXFP4_ONE
    ones = dequantise(blocks.reshape(-1), TensorType.MXFP4, (n * 32,))
    wanted = std / np.sqrt(np.mean(ones**2))
    lower = int(np.floor(np.log2(wanted)))
    n_larger = round(n * ((wanted / 2.0**lower) ** 2 - 1) / 3)
    blocks[:, 0] = _MXFP4_ONE + lower + rng.permutation(np.arange(n) < n_larger)
    return blocks


RANDOM_BLOCKS: dict[TensorType, MakeBlocks] = {
    type: partial(_scaled, type) for type in (TensorType.Q2_K, TensorType.IQ1_M, *SCALE_PLACE)
} | {TensorType.MXFP4: _mxfp4}
