"""Scalar loads and stores by address, atomics, waiting and the cycle counter, for use inside kernels."""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types

from engine.kernels.simd import (
    F16,
    F32,
    F64,
    HAS_F16C,
    I8,
    I16,
    I32,
    I64,
    IS_X86,
    call_llvm,
    define,
    f32x16,
    float_to_half_bits,
    load_unaligned,
    pointer,
    store_unaligned,
)

_address = types.int64
IS_LINUX = platform.system() == "Linux"


def _half_bits_to_float(b: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    if HAS_F16C:
        return b.fpext(b.bitcast(bits, F16), F32)
    wide = b.zext(bits, I32)
    sign = b.shl(b.and_(wide, ir.Constant(I32, 0x8000)), ir.Constant(I32, 16))
    magnitude = b.shl(b.and_(wide, ir.Constant(I32, 0x7FFF)), ir.Constant(I32, 13))
    scaled = b.bitcast(b.fmul(b.bitcast(magnitude, F32), ir.Constant(F32, 2.0**112)), I32)
    special = b.or_(magnitude, ir.Constant(I32, 0x7F800000))
    is_special = b.icmp_unsigned(">=", magnitude, ir.Constant(I32, 0x7C00 << 13))
    return b.bitcast(b.or_(sign, b.select(is_special, special, scaled)), F32)


def _bfloat_bits_to_float(b: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    return b.bitcast(b.shl(b.zext(bits, I32), ir.Constant(I32, 16)), F32)


load_i64 = define(types.int64, (_address,), lambda b, p: load_unaligned(b, p, I64))
load_i32 = define(types.int32, (_address,), lambda b, p: load_unaligned(b, p, I32))
load_u8 = define(types.int64, (_address,), lambda b, p: b.zext(load_unaligned(b, p, I8), I64))
load_i8 = define(types.int64, (_address,), lambda b, p: b.sext(load_unaligned(b, p, I8), I64))
load_u16 = define(types.int64, (_address,), lambda b, p: b.zext(load_unaligned(b, p, I16), I64))
load_u32 = define(types.int64, (_address,), lambda b, p: b.zext(load_unaligned(b, p, I32), I64))
load_f32 = define(types.float32, (_address,), lambda b, p: load_unaligned(b, p, F32))
load_f64 = define(types.float64, (_address,), lambda b, p: load_unaligned(b, p, F64))
load_f16 = define(types.float32, (_address,), lambda b, p: _half_bits_to_float(b, load_unaligned(b, p, I16)))
load_bf16 = define(types.float32, (_address,), lambda b, p: _bfloat_bits_to_float(b, load_unaligned(b, p, I16)))
half_of_bits = define(types.float32, (types.int64,), lambda b, v: _half_bits_to_float(b, b.trunc(v, I16)))
float_of_bits = define(types.float32, (types.int64,), lambda b, v: b.bitcast(b.trunc(v, I32), F32))


def _store_truncated(element: ir.Type) -> Any:
    return define(types.void, (_address, types.int64), lambda b, p, v: store_unaligned(b, p, b.trunc(v, element)))


store_u8, store_u16, store_i32 = _store_truncated(I8), _store_truncated(I16), _store_truncated(I32)
store_i64 = define(types.void, (_address, types.int64), store_unaligned)
store_f32 = define(types.void, (_address, types.float32), store_unaligned)


def _store_f16(b: ir.IRBuilder, address: ir.Value, value: ir.Value) -> None:
    vector = b.insert_element(ir.Constant(f32x16.llvm, [0.0] * 16), value, ir.Constant(I32, 0))
    store_unaligned(b, address, b.extract_element(float_to_half_bits(b, vector), ir.Constant(I32, 0)))


store_f16 = define(types.void, (_address, types.float32), _store_f16)


def _zero(b: ir.IRBuilder, target: ir.Value, n_bytes: ir.Value) -> None:
    arguments = [pointer(b, target, I8), ir.Constant(I8, 0), n_bytes, ir.Constant(ir.IntType(1), 0)]
    call_llvm(b, "llvm.memset.p0.i64", ir.VoidType(), arguments)


def _prefetch(b: ir.IRBuilder, address: ir.Value, to_write: int = 0) -> None:
    use, keep, data = (ir.Constant(I32, n) for n in (to_write, 3, 1))
    call_llvm(b, "llvm.prefetch.p0", ir.VoidType(), [pointer(b, address, I8), use, keep, data])


zero_bytes = define(types.void, (_address, types.int64), _zero)


fetch_to_write = define(types.void, (_address,), lambda b, p: _prefetch(b, p, to_write=1))


def prefetch_lines(n_lines: int) -> Any:
    """Prefetches of `n_lines` cache lines, written out: a loop around them costs a third of a kernel's speed."""

    def body(b: ir.IRBuilder, address: ir.Value) -> None:
        for line in range(n_lines):
            _prefetch(b, b.add(address, ir.Constant(I64, 64 * line)))

    return define(types.void, (_address,), body)


# Atomics and waiting ------------------------------------------------------------------------------------------------


def _atomic_store(b: ir.IRBuilder, address: ir.Value, value: ir.Value) -> None:
    b.store_atomic(value, pointer(b, address, I64), "seq_cst", 8)


fetch_add = define(
    types.int64, (_address, types.int64), lambda b, p, n: b.atomic_rmw("add", pointer(b, p, I64), n, "seq_cst")
)
load_atomic = define(types.int64, (_address,), lambda b, p: b.load_atomic(pointer(b, p, I64), "seq_cst", 8))
store_atomic = define(types.void, (_address, types.int64), _atomic_store)


def _pause(b: ir.IRBuilder) -> None:
    if IS_X86:
        call_llvm(b, "llvm.x86.sse2.pause", ir.VoidType(), [])
    else:
        b.fence("seq_cst")


def _cycles(b: ir.IRBuilder) -> ir.Value:
    return call_llvm(b, "llvm.readcyclecounter", I64, [])


def _replace_if_equal(b: ir.IRBuilder, address: ir.Value, expected: ir.Value, value: ir.Value) -> ir.Value:
    swapped = b.cmpxchg(pointer(b, address, I64), expected, value, "seq_cst")
    return b.zext(b.extract_value(swapped, 1), I64)


# 1 if the cell at the address was `expected` and is now `value`, else 0 and nothing is changed
replace_if_equal = define(types.int64, (_address, types.int64, types.int64), _replace_if_equal)

pause = define(types.void, (), _pause)
cycle_counter = define(types.int64, (), _cycles)  # the time-stamp counter on x86: constant rate on any CPU since 2008

_SYS_FUTEX = {"x86_64": 202, "aarch64": 98}.get(platform.machine(), 0)
_FUTEX_WAIT_PRIVATE, _FUTEX_WAKE_PRIVATE = 128, 129
HAS_FUTEX = IS_LINUX and _SYS_FUTEX != 0


def _system_call(b: ir.IRBuilder, *arguments: ir.Value) -> None:
    call_llvm(b, "syscall", I64, [ir.Constant(I64, _SYS_FUTEX), *arguments])


def _futex_wait(b: ir.IRBuilder, address: ir.Value, expected: ir.Value) -> None:
    """Sleep while the 32-bit word at `address` is `expected` (man 2 futex); elsewhere than on Linux, yield."""
    if HAS_FUTEX:
        zero = ir.Constant(I64, 0)
        _system_call(b, address, ir.Constant(I64, _FUTEX_WAIT_PRIVATE), expected, zero, zero, zero)
    else:
        call_llvm(b, "sched_yield", I32, [])


def _futex_wake_all(b: ir.IRBuilder, address: ir.Value) -> None:
    if HAS_FUTEX:
        zero, everyone = ir.Constant(I64, 0), ir.Constant(I64, 2**31 - 1)
        _system_call(b, address, ir.Constant(I64, _FUTEX_WAKE_PRIVATE), everyone, zero, zero, zero)


futex_wait = define(types.void, (_address, types.int64), _futex_wait)
futex_wake_all = define(types.void, (_address,), _futex_wake_all)


def _call_entry(b: ir.IRBuilder, kernel: ir.Value, record: ir.Value, chunk: ir.Value, scratch: ir.Value) -> None:
    """Call a compiled kernel by address, in Numba's calling convention: pointers for result and error come first."""
    unused = ir.IntType(8).as_pointer()
    entry = ir.FunctionType(I32, [unused.as_pointer(), unused.as_pointer(), I64, I64, I64])
    with b.goto_entry_block():
        result, error = b.alloca(unused), b.alloca(unused)
    b.call(b.inttoptr(kernel, entry.as_pointer()), [result, error, record, chunk, scratch])


call_entry = define(types.void, (_address, _address, types.int64, _address), _call_entry)
