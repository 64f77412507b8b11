"""Short causal convolutions over the tokens of a sequence, each channel with a filter of its own.

A sequence's state holds the newest inputs before its first token of this step, (n_taps - 1, n) float32, oldest first.
"""

from __future__ import annotations

import numpy as np

from engine.kernels.ffn import silu
from engine.kernels.memory import load_i32, load_i64
from engine.kernels.registry import device, kernel
from engine.kernels.simd import fma, load_f32x16, store_f32x16, zero_f32x16


def causal_conv_reference(x: np.ndarray, weight: np.ndarray, state: np.ndarray, silu: bool) -> np.ndarray:
    """x (n_tokens, n), weight (n_taps, n) oldest tap first, state (n_taps - 1, n) -> (n_tokens, n)."""
    inputs = np.concatenate([state, x])
    out = sum(weight[tap] * inputs[tap : tap + len(x)] for tap in range(len(weight)))
    return out / (1 + np.exp(-out)) if silu else out


@device
def n_before(sequences, token, most):
    """How many tokens of this step, up to `most`, precede a token in its sequence."""
    n = 0
    while n < most and token - n > 0 and load_i32(sequences + 4 * (token - n - 1)) == load_i32(sequences + 4 * token):
        n += 1
    return n


@device
def input_before(row, x_stride, old, n, n_taps, n_here, back):
    """Address of the input `back` tokens before the one at `row`, of which `n_here` are of this step."""
    return row - x_stride * back if back <= n_here else old + 4 * n * (n_taps - 1 + n_here - back)


@kernel
def causal_conv(
    chunk,
    scratch,
    x: int,
    x_stride: int,
    out: int,
    out_stride: int,
    weight: int,
    n: int,
    n_taps: int,
    silu_after: int,
    n_tokens: int,
    sequences: int,
    old_states: int,
    new_states: int,
    state_offset: int,
):
    """out[chunk] = the filtered inputs up to token chunk; the last token of a sequence leaves its state.

    `weight` is (n_taps, n). `x` and `out` are different rows: other tokens still need x.
    """
    slot, row = load_i32(sequences + 4 * chunk), x + x_stride * chunk
    old = load_i64(old_states + 8 * slot) + state_offset
    n_here = n_before(sequences, chunk, n_taps - 1)
    for i in range(0, 4 * n, 64):
        total = zero_f32x16()
        for tap in range(n_taps):
            value = load_f32x16(input_before(row, x_stride, old, n, n_taps, n_here, n_taps - 1 - tap) + i)
            total = fma(value, load_f32x16(weight + 4 * n * tap + i), total)
        store_f32x16(out + out_stride * chunk + i, silu(total) if silu_after else total)
    if chunk + 1 == load_i64(n_tokens) or load_i32(sequences + 4 * (chunk + 1)) != slot:
        new = load_i64(new_states + 8 * slot) + state_offset
        for place in range(n_taps - 1):
            source = input_before(row, x_stride, old, n, n_taps, n_here, n_taps - 2 - place)
            for i in range(0, 4 * n, 64):
                store_f32x16(new + 4 * n * place + i, load_f32x16(source + i))
