"""Short causal convolutions with a state."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.conv import causal_conv_reference
from engine.kernels.library import KernelLibrary
from tests.engine.kernels.operands import Array, at

N, OFFSET = 48, 64


def convolve(
    library: KernelLibrary, x: Array, weight: Array, sequences: list[int], states: Array, *, silu: bool = False
) -> tuple[Array, Array]:
    """x (n_tokens, N), states (n_slots, n_taps - 1, N) -> the output and the new states, NaN where none was left."""
    n_slots, n_before, _ = states.shape
    old, new = (np.full((n_slots, OFFSET + 4 * n_before * N), 0xFF, np.uint8) for _ in range(2))
    old[:, OFFSET:] = states.astype(np.float32).view(np.uint8).reshape(n_slots, -1)
    old_table, new_table = (np.array([at(row) for row in rows], np.int64) for rows in (old, new))
    slots, count, out = np.array(sequences, np.int32), np.array([len(x)], np.int64), np.full_like(x, np.nan)
    for token in np.random.default_rng(0).permutation(len(x)):
        library.run(
            "causal_conv",
            int(token),
            x=at(x),
            x_stride=x.strides[0],
            out=at(out),
            out_stride=out.strides[0],
            weight=at(weight),
            n=N,
            n_taps=len(weight),
            silu_after=int(silu),
            n_tokens=at(count),
            sequences=at(slots),
            old_states=at(old_table),
            new_states=at(new_table),
            state_offset=OFFSET,
        )
    return out, new[:, OFFSET:].copy().view(np.float32).reshape(states.shape)


def inputs(n_tokens: int, n_taps: int, n_slots: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(n_tokens)
    x, weight = rng.standard_normal((n_tokens, N), np.float32), rng.standard_normal((n_taps, N), np.float32)
    return x, weight, rng.standard_normal((n_slots, n_taps - 1, N), np.float32)


@pytest.mark.parametrize("silu", [False, True])
@pytest.mark.parametrize("n_taps", [2, 3, 4])
def test_each_sequence_is_filtered_after_its_own_past(library: KernelLibrary, n_taps: int, silu: bool) -> None:
    sequences = [2] * 7 + [0] + [1] * 2
    x, weight, states = inputs(len(sequences), n_taps, 3)

    out, new_states = convolve(library, x, weight, sequences, states, silu=silu)

    for slot in range(3):
        mine = np.array(sequences) == slot
        expected = causal_conv_reference(x[mine], weight, states[slot], silu)
        np.testing.assert_allclose(out[mine], expected, rtol=2e-5, atol=2e-6)
        np.testing.assert_array_equal(new_states[slot], np.concatenate([states[slot], x[mine]])[-(n_taps - 1) :])


@pytest.mark.parametrize("cuts", [[1], [2, 3], [1, 2, 3, 4, 5, 6, 7, 8], [5]])
def test_pieces_give_the_bits_of_the_whole(library: KernelLibrary, cuts: list[int]) -> None:
    x, weight, states = inputs(9, 4, 1)
    whole, last = convolve(library, x, weight, [0] * 9, states)
    pieces = []
    for piece in np.split(x, cuts):
        out, states = convolve(library, np.ascontiguousarray(piece), weight, [0] * len(piece), states)
        pieces.append(out)
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    np.testing.assert_array_equal(states, last)
