"""Kernel operands from NumPy arrays: activations, weights and matrix products in a line each."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.gguf import TensorType, dequantise
from engine.kernels.layout import (
    BLOCK,
    FLOAT_TYPES,
    GROUP,
    LINE_BYTES,
    MATMUL_SCRATCH_BYTES,
    PACKED_BLOCKS,
    PAIRS,
    SCALED_BLOCKS,
    SCALES,
    SUMS,
    TILE_ROWS,
    activation_row_bytes,
    packed_group_bytes,
)
from engine.kernels.library import KernelLibrary
from tests.support.random_blocks import RANDOM_BLOCKS, set_scales

Array = np.ndarray[Any, Any]
TYPES = [name for name in PACKED_BLOCKS if name in TensorType.__members__]
QUANTISED = [name for name in TYPES if name not in FLOAT_TYPES]
BLOCK_SIZES = {name: max(4, PACKED_BLOCKS[name][0]) for name in TYPES}  # n_inputs is a multiple of this


def at(array: Array) -> int:
    """Address of an array's first byte."""
    return int(array.ctypes.data)


def quantise(library: KernelLibrary, x: Array) -> Array:
    """x (n_rows, n_inputs) float32 -> activation rows (n_rows, row bytes) uint8; room behind for a tile's reads."""
    n_rows, n_inputs = x.shape
    out = np.zeros((n_rows + TILE_ROWS, activation_row_bytes(n_inputs)), np.uint8)[:n_rows]
    for row in range(n_rows):
        library.run(
            "quantise", row, x=at(x), x_stride=x.strides[0], out=at(out), out_stride=out.shape[1], n_inputs=n_inputs
        )
    return out


def activation_parts(rows: Array, n_inputs: int) -> tuple[Array, Array, Array]:
    """Activation rows -> q (n_rows, n_blocks, 32) int32, scales (n_rows, n_blocks / 8, rounded up), sums (.., .., 3).

    The sums are those of a block, a float32, and of its halves, as they stand in the row.
    """
    n_rows, n_blocks = len(rows), n_inputs // BLOCK
    lines = rows[:, : n_blocks * LINE_BYTES].view(np.int8).reshape(n_rows, n_blocks, 2, BLOCK).astype(np.int32)
    pairs = np.ascontiguousarray(rows[:, n_blocks * PAIRS : n_blocks * SUMS]).view(np.int16).astype(np.float32)
    sums = np.ascontiguousarray(rows[:, n_blocks * SUMS : n_blocks * SCALES]).view(np.float32)
    end = n_blocks * SCALES + 4 * -(-n_blocks // SCALED_BLOCKS)
    scales = np.ascontiguousarray(rows[:, n_blocks * SCALES : end]).view(np.float32)
    sums = np.concatenate([sums[..., None], pairs.reshape(n_rows, n_blocks, 2)], axis=2)
    return 16 * lines[:, :, 0] + lines[:, :, 1], scales, sums


_HALF_FIELDS = {"Q4_1": (0, 2), "Q5_1": (0, 2), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}  # others: (0,)


def random_weights(rng: np.random.Generator, type_name: str, n_rows: int, n_inputs: int) -> Array:
    """Bytes (n_rows, row bytes) uint8 of a weight matrix: every bit random, but scales and minima small and finite."""
    kind = TensorType[type_name]
    if type_name in FLOAT_TYPES:
        values = rng.standard_normal((n_rows, n_inputs), np.float32)
        if type_name == "BF16":
            return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        return values.astype(np.float16 if type_name == "F16" else np.float32).view(np.uint8)
    blocks = rng.integers(0, 256, (n_rows * n_inputs // kind.block_size, kind.block_bytes), np.uint8)
    if kind == TensorType.MXFP4:
        blocks[:, 0] = rng.integers(119, 125, len(blocks))  # powers of two around 0.01
    elif kind in RANDOM_BLOCKS:
        set_scales(kind, blocks, rng.standard_normal(len(blocks)).astype(np.float32) * 0.01)
    else:
        for field in _HALF_FIELDS.get(type_name, (0,)):
            halves = (rng.standard_normal(len(blocks)) * 0.01).astype(np.float16)
            blocks[:, field : field + 2] = halves.view(np.uint8).reshape(-1, 2)
    return blocks.reshape(n_rows, -1)


def values_of(type_name: str, data: Array, n_inputs: int) -> Array:
    """What the rows in the file's layout mean: (n_rows, n_inputs) float32."""
    return dequantise(data.reshape(-1), TensorType[type_name], (len(data), n_inputs))


def repack(library: KernelLibrary, type_name: str, data: Array, n_inputs: int, groups_per_chunk: int = 3) -> Array:
    """Rows in the file's layout -> packed groups (n_groups, group bytes)."""
    n_groups = -(-len(data) // GROUP)
    packed = np.full((n_groups, packed_group_bytes(type_name, n_inputs)), 0xA5, np.uint8)
    for chunk in range(-(-n_groups // groups_per_chunk)):
        library.run(
            f"repack_{type_name}",
            chunk,
            source=at(data),
            row_bytes=data.shape[1],
            n_rows=len(data),
            n_inputs=n_inputs,
            target=at(packed),
            groups_per_chunk=groups_per_chunk,
        )
    return packed


def matmul(
    library: KernelLibrary,
    name: str,
    packed: Array,
    x: Array,
    n_inputs: int,
    *,
    unit: int = 1,
    row_chunks: int = 1,
    bias: Array | None = None,
) -> Array:
    """All chunks of kernel `name`: x rows (in the kernel's own form) times packed groups -> (n_rows, 16 n_groups)."""
    n_groups, n_rows = len(packed), len(x)
    out = np.full((n_rows, GROUP * n_groups), np.nan, np.float32)
    extent, scratch = np.array([n_rows], np.int64), np.zeros(MATMUL_SCRATCH_BYTES, np.uint8)
    for chunk in range(-(-n_rows // unit) * row_chunks):
        library.run(
            name,
            chunk,
            at(scratch),
            weights=at(packed),
            matrix_offset=0,
            group_bytes=packed.shape[1],
            n_groups=n_groups,
            groups_per_chunk=-(-n_groups // row_chunks),
            row_chunks=row_chunks,
            n_inputs=n_inputs,
            x=at(x),
            x_stride=x.strides[0],
            out=at(out),
            out_stride=out.strides[0],
            bias=0 if bias is None else at(bias),
            extent=at(extent),
            unit=unit,
            items=0,
        )
    return out
