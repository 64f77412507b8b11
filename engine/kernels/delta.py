"""Linear attention by the gated delta rule: each head's state maps keys to values, and every token corrects it.

Yang et al. 2024 (Gated Delta Networks). Tokens of a sequence come one after the other, so its result is the same in
whatever pieces it is read; heads, and columns of a head's values, are independent of each other.
"""

from __future__ import annotations

import math

import numpy as np

from engine.kernels.layout import DELTA_COLUMNS
from engine.kernels.memory import load_f32, load_i32, load_i64, store_f32
from engine.kernels.registry import device, kernel
from engine.kernels.simd import fma, load_f32x16, splat_f32, store_f32x16, zero_f32x16

_LINEAR_FROM = 20.0  # where log(1 + exp(x)) is x in float32


def delta_rule_reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, decay: np.ndarray, beta: np.ndarray, state: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """One head: q, k (n_tokens, dk), v (n_tokens, dv), decay, beta (n_tokens) -> out (n_tokens, dv), state (dk, dv)."""
    out = np.empty_like(v)
    for t in range(len(v)):
        state = state * decay[t]
        state = state + np.outer(k[t], (v[t] - k[t] @ state) * beta[t])
        out[t] = q[t] @ state
    return out, state


def delta_gates_reference(
    alpha: np.ndarray, beta: np.ndarray, rate: np.ndarray, bias: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Decay exp(rate * log(1 + exp(alpha + bias))) and strength sigmoid(beta); all (..., n_heads), rate not above 0."""
    return np.exp(rate * np.logaddexp(0, alpha + bias)), 1 / (1 + np.exp(-beta))


@kernel
def delta_gates(
    chunk,
    scratch,
    alpha: int,
    alpha_stride: int,
    beta: int,
    beta_stride: int,
    n_heads: int,
    n_group: int,
    rate: int,
    bias: int,
    gates: int,
    gates_stride: int,
):
    """gates[chunk] = the decays of all heads, then their strengths: see delta_gates_reference.

    n_group: 0 if head h's alpha and beta are the h-th; else both lie in the same rows, which hold for each group of so
    many heads their betas, then their alphas.
    """
    row = gates + gates_stride * chunk
    for head in range(n_heads):
        a, b = head, head
        if n_group != 0:
            b = head // n_group * 2 * n_group + head % n_group
            a = b + n_group
        x = float(load_f32(alpha + alpha_stride * chunk + 4 * a) + load_f32(bias + 4 * head))
        softplus = x if x > _LINEAR_FROM else math.log(1.0 + math.exp(x))
        store_f32(row + 4 * head, np.float32(math.exp(float(load_f32(rate + 4 * head)) * softplus)))
        strength = 1.0 / (1.0 + math.exp(-float(load_f32(beta + beta_stride * chunk + 4 * b))))
        store_f32(row + 4 * (n_heads + head), np.float32(strength))


@device
def copy_columns(source, source_stride, target, target_stride, dk):
    """Thirty-two columns of a state; apart from the others they stay in the first-level cache."""
    for i in range(dk):
        row, place = source + source_stride * i, target + target_stride * i
        store_f32x16(place, load_f32x16(row)), store_f32x16(place + 64, load_f32x16(row + 64))


@device
def correct_columns(state, q, k, stride, v, out, out_stride, gates, gates_stride, n_heads, dk, n):
    """Columns (dk, 32) of one head's state through the `n` tokens of a sequence; even and odd rows sum apart."""
    zero = zero_f32x16()
    for _ in range(n):
        decay, strength = splat_f32(load_f32(gates)), splat_f32(load_f32(gates + 4 * n_heads))
        a0, a1, b0, b1 = zero, zero, zero, zero
        for i in range(0, dk, 2):
            even, odd = state + 128 * i, state + 128 * (i + 1)
            k0, k1 = splat_f32(load_f32(k + 4 * i)), splat_f32(load_f32(k + 4 * i + 4))
            a0, b0 = fma(load_f32x16(even) * decay, k0, a0), fma(load_f32x16(odd) * decay, k1, b0)
            a1, b1 = fma(load_f32x16(even + 64) * decay, k0, a1), fma(load_f32x16(odd + 64) * decay, k1, b1)
        c0, c1 = (load_f32x16(v) - (a0 + b0)) * strength, (load_f32x16(v + 64) - (a1 + b1)) * strength
        a0, a1, b0, b1 = zero, zero, zero, zero
        for i in range(0, dk, 2):
            even, odd = state + 128 * i, state + 128 * (i + 1)
            k0, k1 = splat_f32(load_f32(k + 4 * i)), splat_f32(load_f32(k + 4 * i + 4))
            q0, q1 = splat_f32(load_f32(q + 4 * i)), splat_f32(load_f32(q + 4 * i + 4))
            r0, r1 = fma(k0, c0, load_f32x16(even) * decay), fma(k0, c1, load_f32x16(even + 64) * decay)
            s0, s1 = fma(k1, c0, load_f32x16(odd) * decay), fma(k1, c1, load_f32x16(odd + 64) * decay)
            store_f32x16(even, r0), store_f32x16(even + 64, r1), store_f32x16(odd, s0), store_f32x16(odd + 64, s1)
            a0, a1, b0, b1 = fma(r0, q0, a0), fma(r1, q0, a1), fma(s0, q1, b0), fma(s1, q1, b1)
        store_f32x16(out, a0 + b0), store_f32x16(out + 64, a1 + b1)
        q, k, v, out, gates = q + stride, k + stride, v + stride, out + out_stride, gates + gates_stride


@kernel
def delta_rule(
    chunk,
    scratch,
    mixed: int,
    mixed_stride: int,
    gates: int,
    gates_stride: int,
    out: int,
    out_stride: int,
    n_key_heads: int,
    n_value_heads: int,
    dk: int,
    dv: int,
    is_tiled: int,
    row_chunks: int,
    n_tokens: int,
    sequences: int,
    old_states: int,
    new_states: int,
    state_offset: int,
):
    """DELTA_COLUMNS columns of one value head, for all sequences of the step; states are (n_value_heads, dk, dv).

    mixed: rows of queries (n_key_heads, dk), keys (n_key_heads, dk) and values (n_value_heads, dv). A key head serves
    neighbouring value heads, or with `is_tiled` every n_key_heads-th. Scratch: 32 * dk float32.
    """
    n_parts = row_chunks // n_value_heads
    head, first = chunk // n_parts, chunk % n_parts * DELTA_COLUMNS
    key_head = head % n_key_heads if is_tiled else head // (n_value_heads // n_key_heads)
    q = 4 * dk * key_head
    k, v = q + 4 * dk * n_key_heads, 8 * dk * n_key_heads + 4 * dv * head
    place, token, end = state_offset + 4 * dk * dv * head, 0, load_i64(n_tokens)
    while token < end:
        slot, n = load_i32(sequences + 4 * token), 1
        while token + n < end and load_i32(sequences + 4 * (token + n)) == slot:
            n += 1
        old, new = load_i64(old_states + 8 * slot) + place, load_i64(new_states + 8 * slot) + place
        row, result = mixed + mixed_stride * token, out + out_stride * token + 4 * dv * head
        head_gates = gates + gates_stride * token + 4 * head
        for column in range(4 * first, 4 * min(first + DELTA_COLUMNS, dv), 128):
            copy_columns(old + column, 4 * dv, scratch, 128, dk)
            correct_columns(
                scratch,
                row + q,
                row + k,
                mixed_stride,
                row + v + column,
                result + column,
                out_stride,
                head_gates,
                gates_stride,
                n_value_heads,
                dk,
                n,
            )
            copy_columns(scratch, 128, new + column, 4 * dv, dk)
        token += n
