"""Some vectors that are treated alike, as tuples: the sums of several activation rows or queries, held in registers."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.simd import F32, I64, define, f32x16, fused, load_unaligned, splatted, store_unaligned


def sums_type(n: int) -> Any:
    return types.UniTuple(f32x16, n)


def rows_type(n: int) -> Any:
    return types.UniTuple(types.int64, n)


def zero_sums(n: int) -> Any:
    """() -> `n` vectors of zeros."""
    return define(sums_type(n), (), lambda _b: ir.Constant(ir.ArrayType(f32x16.llvm, n), None))


def same_sums(n: int) -> Any:
    """(vector) -> `n` times the vector."""

    def body(b: ir.IRBuilder, vector: ir.Value) -> ir.Value:
        sums: ir.Value = ir.Constant(ir.ArrayType(f32x16.llvm, n), ir.Undefined)
        for j in range(n):
            sums = b.insert_value(sums, vector, j)
        return sums

    return define(sums_type(n), (f32x16,), body)


def rows_after(n: int) -> Any:
    """(address, stride) -> the addresses of `n` rows."""

    def body(b: ir.IRBuilder, address: ir.Value, stride: ir.Value) -> ir.Value:
        rows: ir.Value = ir.Constant(ir.ArrayType(I64, n), ir.Undefined)
        for j in range(n):
            rows = b.insert_value(rows, b.add(address, b.mul(stride, ir.Constant(I64, j))), j)
        return rows

    return define(rows_type(n), (types.int64, types.int64), body)


def add_products(n: int) -> Any:
    """(sums, vector, rows, offset) -> sums, to each of which the vector times its row's float at `offset` is added."""

    def body(b: ir.IRBuilder, sums: ir.Value, vector: ir.Value, rows: ir.Value, offset: ir.Value) -> ir.Value:
        for j in range(n):
            factor = splatted(b, load_unaligned(b, b.add(b.extract_value(rows, j), offset), F32))
            sums = b.insert_value(sums, fused(b, vector, factor, b.extract_value(sums, j)), j)
        return sums

    return define(sums_type(n), (sums_type(n), f32x16, rows_type(n), types.int64), body)


def plus(n: int) -> Any:
    """The sums of two tuples of vectors, one by one."""

    def body(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
        for j in range(n):
            x = b.insert_value(x, b.fadd(b.extract_value(x, j), b.extract_value(y, j)), j)
        return x

    return define(sums_type(n), (sums_type(n), sums_type(n)), body)


def load_sums(n: int) -> Any:
    """(rows, offset) -> sixteen floats of each row."""

    def body(b: ir.IRBuilder, rows: ir.Value, offset: ir.Value) -> ir.Value:
        sums: ir.Value = ir.Constant(ir.ArrayType(f32x16.llvm, n), ir.Undefined)
        for j in range(n):
            sums = b.insert_value(sums, load_unaligned(b, b.add(b.extract_value(rows, j), offset), f32x16.llvm), j)
        return sums

    return define(sums_type(n), (rows_type(n), types.int64), body)


def store_sums(n: int) -> Any:
    """(rows, offset, sums): the reverse."""

    def body(b: ir.IRBuilder, rows: ir.Value, offset: ir.Value, sums: ir.Value) -> None:
        for j in range(n):
            store_unaligned(b, b.add(b.extract_value(rows, j), offset), b.extract_value(sums, j))

    return define(types.void, (rows_type(n), types.int64, sums_type(n)), body)
