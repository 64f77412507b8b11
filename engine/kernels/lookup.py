"""Tables of sixteen bytes in a register, looked up by byte shuffles; constants that kernels load from memory."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.simd import (
    HAS_AVX2,
    HAS_VNNI512,
    I8,
    I32,
    I64,
    call_llvm,
    define,
    i32x16,
    load_unaligned,
)

ENTRIES = 16
_N_BYTES = 64  # of a register
_BYTES, _TABLE = ir.VectorType(I8, _N_BYTES), ir.VectorType(I8, ENTRIES)


def _picked(b: ir.IRBuilder, vector: ir.Value, places: Sequence[int]) -> ir.Value:
    mask = ir.Constant(ir.VectorType(I32, len(places)), list(places))
    return b.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)


def _look_up(b: ir.IRBuilder, table: ir.Value, indices: ir.Value) -> ir.Value:
    t, i = (b.bitcast(v, _BYTES) for v in (table, indices))
    if HAS_VNNI512:
        found = call_llvm(b, "llvm.x86.avx512.pshuf.b.512", _BYTES, [t, i])
    elif HAS_AVX2:
        half = ir.VectorType(I8, _N_BYTES // 2)
        low, high = range(_N_BYTES // 2), range(_N_BYTES // 2, _N_BYTES)
        parts = [call_llvm(b, "llvm.x86.avx2.pshuf.b", half, [_picked(b, v, p) for v in (t, i)]) for p in (low, high)]
        found = b.shuffle_vector(*parts, ir.Constant(ir.VectorType(I32, _N_BYTES), list(range(_N_BYTES))))
    else:
        found = _chosen_by_bits(b, t, i)
    return b.bitcast(found, i32x16.llvm)


def _chosen_by_bits(b: ir.IRBuilder, table: ir.Value, indices: ir.Value) -> ir.Value:
    """The same for tiers without a byte shuffle: of 16 entries the lowest bit of an index leaves 8, the next 4, ..."""
    left = [_picked(b, table, [entry] * _N_BYTES) for entry in range(ENTRIES)]
    bit = 1
    while len(left) > 1:
        masked = b.and_(indices, ir.Constant(_BYTES, [bit] * _N_BYTES))
        is_set = b.icmp_unsigned("!=", masked, ir.Constant(_BYTES, [0] * _N_BYTES))
        left = [b.select(is_set, odd, even) for even, odd in zip(left[::2], left[1::2], strict=True)]
        bit *= 2
    return left[0]


def _repeated(b: ir.IRBuilder, table: ir.Value) -> ir.Value:
    return b.bitcast(_picked(b, table, list(range(ENTRIES)) * (_N_BYTES // ENTRIES)), i32x16.llvm)


# (table, indices below 16 in each byte) -> the table's byte for each; a table is 16 bytes, four times over
look_up = define(i32x16, (i32x16, i32x16), _look_up)
load_table = define(i32x16, (types.int64,), lambda b, address: _repeated(b, load_unaligned(b, address, _TABLE)))


def constant_table(entries: Sequence[int]) -> Any:
    """() -> a table of 16 constant unsigned bytes."""
    return define(i32x16, (), lambda b: b.bitcast(ir.Constant(_BYTES, list(entries) * 4), i32x16.llvm))


def constant_address(data: bytes) -> Any:
    """() -> the address of `data`, which becomes part of the kernel's object."""
    name = f"colibri.constant.{hashlib.sha256(data).hexdigest()}"

    def body(b: ir.IRBuilder) -> ir.Value:
        constant = b.module.globals.get(name)
        if constant is None:
            constant = ir.GlobalVariable(b.module, ir.ArrayType(I8, len(data)), name)
            constant.linkage, constant.global_constant, constant.align = "internal", True, _N_BYTES
            constant.initializer = ir.Constant(constant.type.pointee, bytearray(data))
        return b.ptrtoint(constant, I64)

    return define(types.int64, (), body)
