"""Dot products of packed floating-point weights with floating-point activations: (weights, row, n_inputs, start)."""

from __future__ import annotations

from typing import Any

from engine.kernels.memory import load_f32, prefetch_lines
from engine.kernels.registry import device
from engine.kernels.simd import (
    fma,
    load_bf16x16,
    load_f16x16,
    load_f32x16,
    load_pair,
    splat_f32,
    sum_pairs,
    zero_f32x16,
)
from engine.kernels.together import add_products, plus, rows_after, same_sums, store_sums, zero_sums

AHEAD = 4096  # bytes between a weight's prefetch and its use; found by trial: 2304 is 5 % slower, 6144 no faster


def make_dot(load: Any, element_bytes: int) -> Any:
    """Sixteen rows side by side, an input at a time, in four sums."""
    step = 16 * element_bytes
    fetch = prefetch_lines(step * 4 // 64)

    @device
    def dot(w, x, n_inputs, total):
        a, b, c, d = total, zero_f32x16(), zero_f32x16(), zero_f32x16()
        for _ in range(n_inputs // 4):
            fetch(w + AHEAD)
            a = fma(load(w), splat_f32(load_f32(x)), a)
            b = fma(load(w + step), splat_f32(load_f32(x + 4)), b)
            c = fma(load(w + 2 * step), splat_f32(load_f32(x + 8)), c)
            d = fma(load(w + 3 * step), splat_f32(load_f32(x + 12)), d)
            w, x = w + 4 * step, x + 16
        return (a + b) + (c + d)

    return dot


def make_dots_of_four(load: Any, element_bytes: int) -> Any:
    """(weights, row, stride, n_inputs, start, out, out_stride): the same for four rows, which share each load."""
    step, add, both, zeros, starts = 16 * element_bytes, add_products(4), plus(4), zero_sums(4), same_sums(4)
    rows_of, store = rows_after(4), store_sums(4)

    @device
    def dots(w, x, x_stride, n_inputs, start, out, out_stride):
        rows, a, b, c, d = rows_of(x, x_stride), starts(start), zeros(), zeros(), zeros()
        for i in range(0, 4 * n_inputs, 16):
            a = add(a, load(w), rows, i)
            b = add(b, load(w + step), rows, i + 4)
            c = add(c, load(w + 2 * step), rows, i + 8)
            d = add(d, load(w + 3 * step), rows, i + 12)
            w += 4 * step
        store(rows_of(out, out_stride), 0, both(both(a, b), both(c, d)))

    return dots


dot_f32, dot_f16, dot_bf16 = make_dot(load_f32x16, 4), make_dot(load_f16x16, 2), make_dot(load_bf16x16, 2)
dots_f32, dots_f16 = make_dots_of_four(load_f32x16, 4), make_dots_of_four(load_f16x16, 2)
dots_bf16 = make_dots_of_four(load_bf16x16, 2)


@device
def dot_f32x8(w, x, n_inputs, total):
    """Eight rows of two inputs each in a register."""
    a, b, c, d = zero_f32x16(), zero_f32x16(), zero_f32x16(), zero_f32x16()
    for _ in range(n_inputs // 8):
        a = fma(load_f32x16(w), load_pair(x), a)
        b = fma(load_f32x16(w + 64), load_pair(x + 8), b)
        c = fma(load_f32x16(w + 128), load_pair(x + 16), c)
        d = fma(load_f32x16(w + 192), load_pair(x + 24), d)
        w, x = w + 256, x + 32
    return total + sum_pairs((a + b) + (c + d))
