"""Linear attention by the gated delta rule."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from engine.kernels.delta import delta_gates_reference, delta_rule_reference
from engine.kernels.layout import DELTA_COLUMNS
from engine.kernels.library import KernelLibrary
from tests.engine.kernels.operands import Array, at

N_KEY, N_VALUE, OFFSET = 2, 4, 128


class Inputs:
    """Random queries, keys, values, gates of `n_tokens`, in the rows that the kernel takes."""

    def __init__(self, n_tokens: int, dk: int, dv: int) -> None:
        rng = np.random.default_rng(n_tokens + dk)
        self.dk, self.dv = dk, dv
        self.mixed = rng.standard_normal((n_tokens, 2 * N_KEY * dk + N_VALUE * dv), np.float32) / np.float32(dk**0.5)
        self.gates = rng.uniform(0.3, 1, (n_tokens, 2 * N_VALUE)).astype(np.float32)

    def of_head(self, head: int, is_tiled: bool, tokens: Array) -> tuple[Array, Array, Array, Array, Array]:
        key_head = head % N_KEY if is_tiled else head // (N_VALUE // N_KEY)
        q, k, v = np.split(self.mixed[tokens], [N_KEY * self.dk, 2 * N_KEY * self.dk], axis=1)
        keys = slice(key_head * self.dk, (key_head + 1) * self.dk)
        values = v[:, head * self.dv : (head + 1) * self.dv]
        gates = self.gates[tokens]
        return q[:, keys], k[:, keys], values, gates[:, head], gates[:, N_VALUE + head]


def run(
    library: KernelLibrary, data: Inputs, tokens: slice, sequences: list[int], states: Array, *, is_tiled: bool = False
) -> tuple[Array, Array]:
    """states (n_slots, N_VALUE, dk, dv) -> output (n_tokens, N_VALUE * dv), new states (NaN where none was left)."""
    mixed, gates = np.ascontiguousarray(data.mixed[tokens]), np.ascontiguousarray(data.gates[tokens])
    old, new = (np.full((len(states), OFFSET + 4 * states[0].size), 0xFF, np.uint8) for _ in range(2))
    old[:, OFFSET:] = states.astype(np.float32).view(np.uint8).reshape(len(states), -1)
    old_table, new_table = (np.array([at(row) for row in rows], np.int64) for rows in (old, new))
    slots, count = np.array(sequences, np.int32), np.array([len(mixed)], np.int64)
    out = np.full((len(mixed), N_VALUE * data.dv), np.nan, np.float32)
    row_chunks = N_VALUE * -(-data.dv // DELTA_COLUMNS)
    scratch = np.full((data.dk, 32), np.nan, np.float32)
    for chunk in range(row_chunks):
        library.run(
            "delta_rule",
            chunk,
            at(scratch),
            mixed=at(mixed),
            mixed_stride=mixed.strides[0],
            gates=at(gates),
            gates_stride=gates.strides[0],
            out=at(out),
            out_stride=out.strides[0],
            n_key_heads=N_KEY,
            n_value_heads=N_VALUE,
            dk=data.dk,
            dv=data.dv,
            is_tiled=int(is_tiled),
            row_chunks=row_chunks,
            n_tokens=at(count),
            sequences=at(slots),
            old_states=at(old_table),
            new_states=at(new_table),
            state_offset=OFFSET,
        )
    return out, new[:, OFFSET:].copy().view(np.float32).reshape(states.shape)


@pytest.mark.parametrize("is_tiled", [False, True])
@pytest.mark.parametrize(("dk", "dv"), [(32, 32), (16, 96), (128, 128)])
def test_each_sequence_corrects_its_own_state(library: KernelLibrary, dk: int, dv: int, is_tiled: bool) -> None:
    sequences = [1] * 9 + [0] + [2] * 3
    data = Inputs(len(sequences), dk, dv)
    states = np.random.default_rng(1).standard_normal((3, N_VALUE, dk, dv), np.float32)

    out, new_states = run(library, data, slice(None), sequences, states, is_tiled=is_tiled)

    for slot in range(3):
        mine = np.array(sequences) == slot
        for head in range(N_VALUE):
            parts = [part.astype(np.float64) for part in data.of_head(head, is_tiled, mine)]
            expected, state = delta_rule_reference(*parts, states[slot, head].astype(np.float64))
            np.testing.assert_allclose(out[mine, head * dv : (head + 1) * dv], expected, rtol=1e-4, atol=2e-5)
            np.testing.assert_allclose(new_states[slot, head], state, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("cuts", [[1], [4, 5], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]])
def test_pieces_give_the_bits_of_the_whole(library: KernelLibrary, cuts: list[int]) -> None:
    data = Inputs(11, 32, 64)
    states = np.zeros((1, N_VALUE, 32, 64), np.float32)
    whole, last = run(library, data, slice(None), [0] * 11, states)
    pieces, borders = [], [0, *cuts, 11]
    for first, end in pairwise(borders):
        out, states = run(library, data, slice(first, end), [0] * (end - first), states)
        pieces.append(out)
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    np.testing.assert_array_equal(states, last)


@pytest.mark.parametrize("n_group", [0, 2])
def test_gates_follow_from_alpha_and_beta(library: KernelLibrary, n_group: int) -> None:
    rng = np.random.default_rng(3)
    alpha, beta = rng.standard_normal((2, 3, N_VALUE), np.float32) * np.float32(4)
    alpha[1, :2], beta[1, :2] = [60, -60], [60, -60]
    rate, bias = -rng.uniform(0.01, 3, N_VALUE).astype(np.float32), rng.standard_normal(N_VALUE, np.float32)
    rows_a, rows_b = alpha, beta
    if n_group:
        grouped = [part.reshape(3, -1, n_group) for part in (beta, alpha)]
        rows_a = rows_b = np.ascontiguousarray(np.concatenate(grouped, axis=2).reshape(3, -1))
    gates = np.full((3, 2 * N_VALUE), np.nan, np.float32)
    for token in range(3):
        library.run(
            "delta_gates",
            token,
            alpha=at(rows_a),
            alpha_stride=rows_a.strides[0],
            beta=at(rows_b),
            beta_stride=rows_b.strides[0],
            n_heads=N_VALUE,
            n_group=n_group,
            rate=at(rate),
            bias=at(bias),
            gates=at(gates),
            gates_stride=gates.strides[0],
        )
    decay, strength = delta_gates_reference(*(part.astype(np.float64) for part in (alpha, beta, rate, bias)))
    np.testing.assert_allclose(gates[:, :N_VALUE], decay, rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(gates[:, N_VALUE:], strength, rtol=1e-6, atol=1e-30)
