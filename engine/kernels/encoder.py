"""What all encoders share: sixteen rows side by side, one in each lane, so that nothing is summed across lanes.

An encoder reads a tile (elements of a block, rows) of float32 and another of what a squared error in each element
matters, works out every byte of the sixteen blocks as a vector of one number for each row, and writes the bytes to the
rows. Each lane's arithmetic is plain float32 in one order, with
no fused operations: every tier gives the same bytes, and so does NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from engine.kernels.encoder_layout import BY_SIZE, BYTES, LANES, TILE, VECTOR_BYTES, VECTORS, WEIGHTS, inverse_sizes
from engine.kernels.memory import load_f32, load_u8, store_f32, store_u8
from engine.kernels.registry import device, kernel
from engine.kernels.simd import (
    F16,
    F32,
    HAS_F16C,
    I16,
    I32,
    absolute,
    call_llvm,
    define,
    f32x16,
    float_to_half_bits,
    i32x16,
    load_f32x16,
    maximum,
    minimum,
    select_less,
    shift_right,
    splat_f32,
    store_f32x16,
    store_i8x16,
    zero_f32x16,
)

_I, _F = i32x16.llvm, f32x16.llvm
_MAGIC = 12582912.0  # 1.5 * 2^23: adding it drops the fraction, ties to even
_INFINITY = np.float32(np.inf)
_LARGEST_HALF = np.float32(65_504)  # a fit by least squares may wish for more

# In NumPy ------------------------------------------------------------------------------------------------------------

EncodeReference = Callable[[np.ndarray, np.ndarray], np.ndarray]
ENCODE_REFERENCES: dict[str, tuple[int, EncodeReference]] = {}


def encode_reference(rows: np.ndarray, type_name: str, weights: np.ndarray) -> np.ndarray:
    """rows (n_rows, n_inputs) float32, weights (n_inputs,) float32 -> the bytes of the type, (n_bytes,) uint8."""
    block_size, encode = ENCODE_REFERENCES[type_name]
    blocks = rows.reshape(-1, block_size)
    of_elements = np.broadcast_to(weights, rows.shape)
    if type_name in BY_SIZE:
        relative = rows * inverse_sizes(rows)[:, None]
        of_elements = of_elements * np.sqrt(np.float32(1) + relative * relative)
    return encode(blocks, of_elements.reshape(-1, block_size)).reshape(-1)


def total_reference(terms: np.ndarray) -> np.ndarray:
    """The sum over the last axis, one after another, float32."""
    return np.float32(0) + np.add.accumulate(terms, axis=-1, dtype=np.float32)[..., -1]


def rounded_reference(values: np.ndarray, lowest: float, highest: float) -> np.ndarray:
    """The nearest whole numbers (ties to even) within the limits, as float32."""
    return np.rint(np.minimum(np.maximum(values, np.float32(lowest)), np.float32(highest))) + np.float32(0)


def reciprocal_reference(values: np.ndarray) -> np.ndarray:
    """1 / values where that is finite, else 0."""
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.float32(1) / values
    return np.where(np.abs(inverse) < _INFINITY, inverse, np.float32(0))


def quotient_reference(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """numerator / denominator, 0 where the denominator is not above 0."""
    divisor = np.where(denominator > 0, denominator, np.float32(1))
    return np.where(denominator > 0, numerator / divisor, np.float32(0))


def half_reference(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`values` (n,) rounded to half precision, at most its largest number: as float32, and as bytes (n, 2)."""
    halves = np.minimum(np.maximum(values, -_LARGEST_HALF), _LARGEST_HALF).astype("<f2")
    return halves.astype(np.float32), halves[:, None].view(np.uint8)


def nibbles_reference(codes: np.ndarray) -> np.ndarray:
    """Codes (..., 2 n) below 16 -> (..., n) bytes: the first half in the low four bits, the second in the high ones."""
    low, high = np.split(codes.astype(np.uint8), 2, axis=-1)
    return low | high << np.uint8(4)


# On vectors ----------------------------------------------------------------------------------------------------------


def _constant(value: float) -> ir.Constant:
    return ir.Constant(_F, [value] * LANES)


def _from_half(b: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    if HAS_F16C:
        return b.fpext(b.bitcast(b.trunc(bits, ir.VectorType(I16, LANES)), ir.VectorType(F16, LANES)), _F)
    integers = [ir.Constant(_I, [value] * LANES) for value in (0x8000, 16, 0x7FFF, 13)]
    sign = b.shl(b.and_(bits, integers[0]), integers[1])
    magnitude = b.shl(b.and_(bits, integers[2]), integers[3])
    scaled = b.fmul(b.bitcast(magnitude, _F), _constant(2.0**112))  # exact, denormals too; no infinities come here
    return b.bitcast(b.or_(sign, b.bitcast(scaled, _I)), _F)


def _load_splat(b: ir.IRBuilder, address: ir.Value) -> ir.Value:
    scalar = b.load(b.inttoptr(address, F32.as_pointer()))
    scalar.align = 1
    undefined = ir.Constant(_F, ir.Undefined)
    one = b.insert_element(undefined, scalar, ir.Constant(I32, 0))
    return b.shuffle_vector(one, undefined, ir.Constant(_I, [0] * LANES))


nearest_whole = define(
    f32x16, (f32x16,), lambda b, v: b.fsub(b.fadd(v, _constant(_MAGIC)), _constant(_MAGIC))
)  # of magnitudes below 2^22
_half_bits = define(i32x16, (f32x16,), lambda b, v: b.zext(float_to_half_bits(b, v), _I))
from_half = define(f32x16, (i32x16,), _from_half)
whole_to_i32 = define(i32x16, (f32x16,), lambda b, v: b.fptosi(v, _I))
shift_left_four = define(i32x16, (i32x16,), lambda b, v: b.shl(v, ir.Constant(_I, [4] * LANES)))
square_root = define(f32x16, (f32x16,), lambda b, v: call_llvm(b, "llvm.sqrt.v16f32", _F, [v]))
load_splat = define(f32x16, (types.int64,), _load_splat)


@device
def rounded(values, lowest, highest):
    return nearest_whole(minimum(maximum(values, lowest), highest))


@device
def to_half(values):
    """The bits of the nearest numbers of half precision, none of which is infinite."""
    return _half_bits(minimum(maximum(values, splat_f32(-_LARGEST_HALF)), splat_f32(_LARGEST_HALF)))


@device
def reciprocal(values):
    inverse = splat_f32(np.float32(1.0)) / values
    return select_less(absolute(inverse), splat_f32(_INFINITY), inverse, zero_f32x16())


@device
def quotient(numerator, denominator):
    zero = zero_f32x16()
    return select_less(zero, denominator, numerator / denominator, zero)


@device
def store_half_bits(address, bits):
    """The two bytes of sixteen half-precision numbers."""
    store_i8x16(address, bits)
    store_i8x16(address + LANES, shift_right(bits, 8))


@device
def store_pair(address, low, high):
    """A byte with `low` in its low and `high` in its high four bits."""
    store_i8x16(address, low + shift_left_four(high))


@device
def read_tile(x, stride, n_valid, n, tile):
    """Elements (n, 16 rows) from `n` elements of each of `n_valid` rows; lanes without a row repeat the last one."""
    for lane in range(LANES):
        row = x + stride * min(lane, n_valid - 1)
        for i in range(n):
            store_f32(tile + VECTOR_BYTES * i + 4 * lane, load_f32(row + 4 * i))


@device
def weigh_tile(weights, n, tile):
    """The weights of `n` columns, the same in all rows."""
    for i in range(n):
        store_f32x16(tile + VECTOR_BYTES * i, load_splat(weights + 4 * i))


@device
def weigh_by_size(values, inverse_sizes, n_valid, n, tile):
    """Multiply the weights of `n` columns with sqrt(1 + (value / the row's size)^2)."""
    for lane in range(LANES):
        store_f32(tile + VECTOR_BYTES * n + 4 * lane, load_f32(inverse_sizes + 4 * min(lane, n_valid - 1)))
    inverse, one = load_f32x16(tile + VECTOR_BYTES * n), splat_f32(np.float32(1))
    for i in range(n):
        place, relative = tile + VECTOR_BYTES * i, load_f32x16(values + VECTOR_BYTES * i) * inverse
        store_f32x16(place, load_f32x16(place) * square_root(one + relative * relative))


@device
def write_blocks(data, n_bytes, n_valid, out, stride):
    """Bytes (n_bytes, 16 rows) to the rows."""
    for lane in range(n_valid):
        for i in range(n_bytes):
            store_u8(out + stride * lane + i, load_u8(data + LANES * i + lane))


def register_encoder(
    type_name: str, block_size: int, block_bytes: int, encode_block: Any, reference: EncodeReference
) -> None:
    """Register `encode_TYPE`: the rows 16 chunk to 16 chunk + 15 of x as blocks of the type.

    encode_block(tile, weights, data, vectors): see the layout of scratch memory in encoder_layout. `inverse_sizes` is
    read where the type is in BY_SIZE.
    """
    by_size = type_name in BY_SIZE

    def encode(
        chunk,
        scratch,
        x: int,
        stride: int,
        n_rows: int,
        n_inputs: int,
        weights: int,
        inverse_sizes: int,
        out: int,
        out_stride: int,
    ):
        first = LANES * chunk
        n_valid = min(LANES, n_rows - first)
        for block in range(n_inputs // block_size):
            read_tile(x + stride * first + 4 * block_size * block, stride, n_valid, block_size, scratch + TILE)
            weigh_tile(weights + 4 * block_size * block, block_size, scratch + WEIGHTS)
            if by_size:
                weigh_by_size(scratch + TILE, inverse_sizes + 4 * first, n_valid, block_size, scratch + WEIGHTS)
            encode_block(scratch + TILE, scratch + WEIGHTS, scratch + BYTES, scratch + VECTORS)
            write_blocks(
                scratch + BYTES, block_bytes, n_valid, out + out_stride * first + block_bytes * block, out_stride
            )

    encode.__module__ = reference.__module__  # the family that it is compiled with
    kernel(encode, f"encode_{type_name}")
    ENCODE_REFERENCES[type_name] = block_size, reference
