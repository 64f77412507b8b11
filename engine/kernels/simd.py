"""LLVM vector types as Numba values, with the few operations that the kernels are written in.

A kernel reads like arithmetic (`total = fma(to_f32(dot), scale, total)`) and its vectors stay in registers.
Every operation is plain LLVM, which the compiler lowers to whatever the tier has: one zmm register, two ymm or
four xmm; only `dot_u8i8`, the half-precision loads and `fma` differ by tier, and they say so.

This module is imported only where kernels are compiled or tested: it needs Numba.
"""

from __future__ import annotations

import operator
import os
import platform
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

# Numba generates code for a function, which prepares its module's addresses, before it links that module into callers.
# With addresses that are integers this preparation may take an index for the base pointer, and an index of zero would
# then count as a null pointer, whose accesses are dropped. As plain sums they stay what they are.
llvm.set_option("colibri", "-addr-sink-using-gep=false")

TIER = os.environ.get("COLIBRI_BUILD_TIER", "generic")
HAS_F16C = TIER in ("amx", "avx512", "avx2")
HAS_FMA = TIER in ("amx", "avx512", "avx2")
HAS_AVX2 = TIER in ("amx", "avx512", "avx2")
HAS_VNNI512 = TIER in ("amx", "avx512")
HAS_AMX = TIER == "amx"
IS_X86 = platform.machine() in ("x86_64", "AMD64")

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
LANES = 16


class Vector(types.Type):
    """A SIMD register of `lanes` elements."""

    def __init__(self, name: str, element: ir.Type, lanes: int) -> None:
        self.llvm = ir.VectorType(element, lanes)
        super().__init__(name=name)


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Vector) -> None:
        super().__init__(dmm, fe_type, fe_type.llvm)


i32x16 = Vector("i32x16", I32, LANES)
f32x16 = Vector("f32x16", F32, LANES)
_I, _F = i32x16.llvm, f32x16.llvm


def define(result: types.Type, arguments: Sequence[types.Type], body: Callable[..., Any]) -> Any:
    """Make a Numba intrinsic of the given signature from `body(builder, *llvm_values)`."""
    names = ", ".join(f"a{i}" for i in range(len(arguments)))

    def typer(*_given: Any) -> Any:
        def codegen(context: Any, builder: ir.IRBuilder, _signature: Any, values: Sequence[ir.Value]) -> Any:
            out = body(builder, *values)
            return context.get_dummy_value() if result is types.void else out

        return result(*arguments), codegen

    scope = {"typer": typer}
    exec(f"def operation(context{', ' + names if names else ''}): return typer({names})", scope)
    return intrinsic(scope["operation"])


def call_llvm(builder: ir.IRBuilder, name: str, result: ir.Type, arguments: Sequence[ir.Value]) -> ir.Value:
    """Call the LLVM intrinsic (or C symbol) `name`, declared from the types of its arguments."""
    signature_type = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, signature_type, name), arguments)


def pointer(builder: ir.IRBuilder, address: ir.Value, pointee: ir.Type) -> ir.Value:
    return builder.inttoptr(address, pointee.as_pointer())


def load_unaligned(builder: ir.IRBuilder, address: ir.Value, llvm_type: ir.Type) -> ir.Value:
    value = builder.load(pointer(builder, address, llvm_type))
    value.align = 1
    return value


def store_unaligned(builder: ir.IRBuilder, address: ir.Value, value: ir.Value) -> None:
    builder.store(value, pointer(builder, address, value.type)).align = 1


def _constant(vector: ir.VectorType, value: float) -> ir.Constant:
    return ir.Constant(vector, [value] * vector.count)


def _splat(builder: ir.IRBuilder, scalar: ir.Value, vector: ir.VectorType) -> ir.Value:
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(I32, 0))
    return builder.shuffle_vector(one, undefined, _constant(ir.VectorType(I32, vector.count), 0))


def splatted(builder: ir.IRBuilder, scalar: ir.Value) -> ir.Value:
    """A float in all lanes."""
    return _splat(builder, scalar, _F)


def splatted_i32(builder: ir.IRBuilder, scalar: ir.Value) -> ir.Value:
    return _splat(builder, scalar, _I)


def splatted_words(builder: ir.IRBuilder, scalar: ir.Value) -> ir.Value:
    """The lower 16 bits of a scalar in all 32 halves of a register."""
    return _splat(builder, builder.trunc(scalar, I16), ir.VectorType(I16, 2 * LANES))


# Arithmetic operators on the two vector types -----------------------------------------------------------------------

_OPERATORS = {
    operator.add: ("add", "fadd"),
    operator.sub: ("sub", "fsub"),
    operator.mul: ("mul", "fmul"),
    operator.truediv: (None, "fdiv"),
    operator.and_: ("and_", None),
    operator.or_: ("or_", None),
    operator.xor: ("xor", None),
}


def _register_operator(symbol: Any, vector: Vector, method: str) -> None:
    @lower_builtin(symbol, vector, vector)
    def lower(_context: Any, builder: ir.IRBuilder, _signature: Any, values: Sequence[ir.Value]) -> ir.Value:
        return getattr(builder, method)(*values)


def _register_typing(symbol: Any, vectors: tuple[Vector, ...]) -> None:
    @infer_global(symbol)
    class _VectorOperator(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            if len(args) == 2 and args[0] == args[1] and args[0] in vectors:
                return signature(args[0], *args)
            return None


for _symbol, (_integer, _float) in _OPERATORS.items():
    _pairs = [(v, m) for v, m in ((i32x16, _integer), (f32x16, _float)) if m]
    for _vector, _method in _pairs:
        _register_operator(_symbol, _vector, _method)
    _register_typing(_symbol, tuple(v for v, _ in _pairs))


# Loads, stores, splats ----------------------------------------------------------------------------------------------


def _half_to_float(b: ir.IRBuilder, bits: ir.Value, vector: ir.VectorType) -> ir.Value:
    """Half to float. Without F16C by integer arithmetic: shift into place, multiply by 2^112 (exact, denormals too)."""
    if HAS_F16C:
        return b.fpext(b.bitcast(bits, ir.VectorType(F16, vector.count)), vector)
    wide_type = ir.VectorType(I32, vector.count)
    wide = b.zext(bits, wide_type)
    sign = b.shl(b.and_(wide, _constant(wide_type, 0x8000)), _constant(wide_type, 16))
    magnitude = b.shl(b.and_(wide, _constant(wide_type, 0x7FFF)), _constant(wide_type, 13))
    scaled = b.fmul(b.bitcast(magnitude, vector), _constant(vector, 2.0**112))
    is_special = b.icmp_unsigned(">=", magnitude, _constant(wide_type, 0x7C00 << 13))
    special = b.or_(magnitude, _constant(wide_type, 0x7F800000))
    return b.bitcast(b.or_(sign, b.select(is_special, special, b.bitcast(scaled, wide_type))), vector)


def float_to_half_bits(b: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Float to half, nearest even. Without F16C: the classic magic-number rounding in integer arithmetic."""
    if HAS_F16C:
        return b.bitcast(b.fptrunc(value, ir.VectorType(F16, LANES)), ir.VectorType(I16, LANES))
    bits = b.bitcast(value, _I)
    sign = b.and_(b.lshr(bits, _constant(_I, 16)), _constant(_I, 0x8000))
    magnitude = b.and_(bits, _constant(_I, 0x7FFFFFFF))
    odd = b.and_(b.lshr(magnitude, _constant(_I, 13)), _constant(_I, 1))
    normal = b.lshr(b.add(b.add(magnitude, _constant(_I, 0xFFF - (112 << 23))), odd), _constant(_I, 13))
    # adding 0.5 aligns a small value's last half-precision bit with the last bit of the sum
    small = b.sub(b.bitcast(b.fadd(b.bitcast(magnitude, _F), _constant(_F, 0.5)), _I), _constant(_I, 0x3F000000))
    result = b.select(b.icmp_unsigned("<", magnitude, _constant(_I, 113 << 23)), small, normal)
    result = b.select(b.icmp_unsigned(">=", magnitude, _constant(_I, 143 << 23)), _constant(_I, 0x7C00), result)
    result = b.select(b.icmp_unsigned(">", magnitude, _constant(_I, 0x7F800000)), _constant(_I, 0x7E00), result)
    return b.trunc(b.or_(sign, result), ir.VectorType(I16, LANES))


def _bfloat_to_float(b: ir.IRBuilder, bits: ir.Value) -> ir.Value:
    return b.bitcast(b.shl(b.zext(bits, _I), _constant(_I, 16)), _F)


def _load_pair(b: ir.IRBuilder, address: ir.Value) -> ir.Value:
    eight = ir.VectorType(F64, LANES // 2)
    return b.bitcast(_splat(b, load_unaligned(b, address, F64), eight), _F)


_halves = ir.VectorType(I16, LANES)
_bytes = ir.VectorType(I8, LANES)
_address = types.int64

load_i32x16 = define(i32x16, (_address,), lambda b, p: load_unaligned(b, p, _I))
load_f32x16 = define(f32x16, (_address,), lambda b, p: load_unaligned(b, p, _F))
load_f16x16 = define(f32x16, (_address,), lambda b, p: _half_to_float(b, load_unaligned(b, p, _halves), _F))
load_bf16x16 = define(f32x16, (_address,), lambda b, p: _bfloat_to_float(b, load_unaligned(b, p, _halves)))
load_u8x16 = define(i32x16, (_address,), lambda b, p: b.zext(load_unaligned(b, p, _bytes), _I))
load_i8x16 = define(i32x16, (_address,), lambda b, p: b.sext(load_unaligned(b, p, _bytes), _I))
load_pair = define(f32x16, (_address,), _load_pair)  # two floats, eight times over
store_i32x16 = define(types.void, (_address, i32x16), store_unaligned)
store_f32x16 = define(types.void, (_address, f32x16), store_unaligned)
store_i8x16 = define(types.void, (_address, i32x16), lambda b, p, v: store_unaligned(b, p, b.trunc(v, _bytes)))

splat_i32 = define(i32x16, (types.int32,), lambda b, x: _splat(b, x, _I))
splat_f32 = define(f32x16, (types.float32,), lambda b, x: _splat(b, x, _F))
zero_i32x16 = define(i32x16, (), lambda b: _constant(_I, 0))
zero_f32x16 = define(f32x16, (), lambda b: _constant(_F, 0.0))

# Conversions and bit operations -------------------------------------------------------------------------------------

to_f32 = define(f32x16, (i32x16,), lambda b, v: b.sitofp(v, _F))
as_i32 = define(i32x16, (f32x16,), lambda b, v: b.bitcast(v, _I))
as_f32 = define(f32x16, (i32x16,), lambda b, v: b.bitcast(v, _F))


def _shift(method: str) -> Any:
    return define(i32x16, (i32x16, types.int32), lambda b, v, n: getattr(b, method)(v, _splat(b, n, _I)))


shift_left, shift_right, shift_right_signed = _shift("shl"), _shift("lshr"), _shift("ashr")
low_nibbles = define(i32x16, (i32x16,), lambda b, v: b.and_(v, _constant(_I, 0x0F0F0F0F)))
high_nibbles = define(i32x16, (i32x16,), lambda b, v: b.and_(b.lshr(v, _constant(_I, 4)), _constant(_I, 0x0F0F0F0F)))


def _subtract_bytes(b: ir.IRBuilder, v: ir.Value, n: ir.Value) -> ir.Value:
    bytes_of = ir.VectorType(I8, 4 * LANES)
    return b.bitcast(b.sub(b.bitcast(v, bytes_of), _splat(b, b.trunc(n, I8), bytes_of)), _I)


subtract_bytes = define(i32x16, (i32x16, types.int64), _subtract_bytes)  # the same number from each byte

# Floating-point operations ------------------------------------------------------------------------------------------


def fused(b: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    """x * y + z, rounded once where the tier has FMA, twice elsewhere (a software fma would be far slower)."""
    return call_llvm(b, "llvm.fma.v16f32", _F, [x, y, z]) if HAS_FMA else b.fadd(b.fmul(x, y), z)


def _reduction(name: str, start: float | None = None) -> Any:
    def body(b: ir.IRBuilder, v: ir.Value) -> ir.Value:
        return call_llvm(b, name, F32, ([ir.Constant(F32, start)] if start is not None else []) + [v])

    return define(types.float32, (f32x16,), body)


def _tree_sum(b: ir.IRBuilder, v: ir.Value) -> ir.Value:
    """The sum of the lanes, folded in halves: a fixed order, the same on every tier."""
    width = LANES
    while width > 1:
        width //= 2
        undefined = ir.Constant(v.type, ir.Undefined)
        low = b.shuffle_vector(v, undefined, ir.Constant(ir.VectorType(I32, width), list(range(width))))
        high = b.shuffle_vector(v, undefined, ir.Constant(ir.VectorType(I32, width), list(range(width, 2 * width))))
        v = b.fadd(low, high)
    return b.extract_element(v, ir.Constant(I32, 0))


def _sum_pairs(b: ir.IRBuilder, v: ir.Value) -> ir.Value:
    """Lane i = lane 2i + lane 2i + 1, for eight lanes; the others are zero."""
    indices = ir.VectorType(I32, LANES)

    def every_second(first: int) -> ir.Value:
        mask = [2 * i + first for i in range(LANES // 2)] + [LANES] * (LANES // 2)
        return b.shuffle_vector(v, _constant(_F, 0.0), ir.Constant(indices, mask))

    return b.fadd(every_second(0), every_second(1))


sum_pairs = define(f32x16, (f32x16,), _sum_pairs)
fma = define(f32x16, (f32x16, f32x16, f32x16), fused)
maximum = define(f32x16, (f32x16, f32x16), lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y))
minimum = define(f32x16, (f32x16, f32x16), lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), x, y))
absolute = define(f32x16, (f32x16,), lambda b, v: call_llvm(b, "llvm.fabs.v16f32", _F, [v]))
reduce_max = _reduction("llvm.vector.reduce.fmax.v16f32")
reduce_sum = define(types.float32, (f32x16,), _tree_sum)
reduce_sum_i32 = define(types.int32, (i32x16,), lambda b, v: call_llvm(b, "llvm.vector.reduce.add.v16i32", I32, [v]))
maximum_i32 = define(i32x16, (i32x16, i32x16), lambda b, x, y: b.select(b.icmp_signed(">", x, y), x, y))


def _reduce_max_i32_as_f32(b: ir.IRBuilder, v: ir.Value) -> ir.Value:
    return b.bitcast(call_llvm(b, "llvm.vector.reduce.smax.v16i32", I32, [v]), F32)


# the largest of magnitudes, compared as integers: the order is the same, and a NaN is larger than any number
reduce_max_i32_as_f32 = define(types.float32, (i32x16,), _reduce_max_i32_as_f32)
select_less = define(
    f32x16,
    (f32x16, f32x16, f32x16, f32x16),
    lambda b, i, j, x, y: b.select(b.fcmp_ordered("<", i, j), x, y),
)

_ROUNDING_MAGIC = 12582912.0  # 1.5 * 2^23: adding it leaves the nearest integer (ties to even) in the low bits
round_to_i32 = define(
    i32x16,
    (f32x16,),
    lambda b, v: b.sub(b.bitcast(b.fadd(v, _constant(_F, _ROUNDING_MAGIC)), _I), _constant(_I, 0x4B400000)),
)


# Integer dot products -----------------------------------------------------------------------------------------------


def _slice(b: ir.IRBuilder, v: ir.Value, first: int, count: int) -> ir.Value:
    lanes = ir.Constant(ir.VectorType(I32, count), list(range(first, first + count)))
    return b.shuffle_vector(v, ir.Constant(v.type, ir.Undefined), lanes)


def join(b: ir.IRBuilder, parts: list[ir.Value]) -> ir.Value:
    while len(parts) > 1:
        count = 2 * parts[0].type.count
        lanes = ir.Constant(ir.VectorType(I32, count), list(range(count)))
        parts = [b.shuffle_vector(low, high, lanes) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _multiply_pairs(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """32 products of 16-bit integers, added in neighbouring pairs: 16 sums of 32 bits, by pmaddwd."""
    name, width = ("llvm.x86.avx2.pmadd.wd", 16) if HAS_AVX2 else ("llvm.x86.sse2.pmadd.wd", 8)
    result = ir.VectorType(I32, width // 2)
    starts = range(0, 2 * LANES, width)
    return join(b, [call_llvm(b, name, result, [_slice(b, x, i, width), _slice(b, y, i, width)]) for i in starts])


def add_dot_u8i12(b: ir.IRBuilder, total: ir.Value, unsigned: ir.Value, high: ir.Value, low: ir.Value) -> ir.Value:
    """total + the sums, over a lane's four bytes, of unsigned * (16 * high + low): exact, for tiers without vpdpbusd.

    On x86 the even and the odd bytes are widened in place to 16 bits (pmaddubsw, on the bytes themselves, saturates).
    """
    if IS_X86:
        words = ir.VectorType(I16, 2 * LANES)
        u, h, low = (b.bitcast(v, words) for v in (unsigned, high, low))
        four, eight, byte = _constant(words, 4), _constant(words, 8), _constant(words, 0xFF)
        even = b.add(b.ashr(b.shl(h, eight), four), b.ashr(b.shl(low, eight), eight))
        odd = b.add(b.shl(b.ashr(h, eight), four), b.ashr(low, eight))
        products = b.add(_multiply_pairs(b, b.and_(u, byte), even), _multiply_pairs(b, b.lshr(u, eight), odd))
        return b.add(total, products)

    def byte_of(v: ir.Value, i: int) -> ir.Value:
        return b.ashr(b.shl(v, _constant(_I, 24 - 8 * i)), _constant(_I, 24))

    for i in range(4):
        u = b.and_(b.lshr(unsigned, _constant(_I, 8 * i)), _constant(_I, 0xFF))
        s = b.add(b.shl(byte_of(high, i), _constant(_I, 4)), byte_of(low, i))
        total = b.add(total, b.mul(u, s))
    return total


def add_dot_u8i8(b: ir.IRBuilder, total: ir.Value, unsigned: ir.Value, signed: ir.Value) -> ir.Value:
    """total + the sums of four byte products a lane, by one vpdpbusd: only for tiers that have it."""
    u, s = (b.bitcast(v, ir.VectorType(I8, 4 * LANES)) for v in (unsigned, signed))
    return call_llvm(b, "llvm.x86.avx512.vpdpbusd.512", _I, [total, u, s])


def _multiply_words(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    def word(v: ir.Value, i: int) -> ir.Value:
        return b.ashr(b.shl(v, _constant(_I, 16 - 16 * i)), _constant(_I, 16))

    return b.add(b.mul(word(x, 0), word(y, 0)), b.mul(word(x, 1), word(y, 1)))


def add_dot_pairs(b: ir.IRBuilder, total: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    """total + the sum of two products of 16-bit integers a lane, exact."""
    words = ir.VectorType(I16, 2 * LANES)
    if HAS_VNNI512:
        return call_llvm(b, "llvm.x86.avx512.vpdpwssd.512", _I, [total, b.bitcast(x, words), b.bitcast(y, words)])
    if IS_X86:
        return b.add(total, _multiply_pairs(b, b.bitcast(x, words), b.bitcast(y, words)))
    return b.add(total, _multiply_words(b, x, y))


add_pairs = define(i32x16, (i32x16, i32x16, i32x16), add_dot_pairs)
