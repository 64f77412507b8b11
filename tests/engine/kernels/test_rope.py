"""Rotary embedding, and where keys and values go in the pages."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.library import KernelLibrary
from engine.kernels.rope import rope_reference
from tests.engine.kernels.operands import at
from tests.engine.kernels.pages import Pages

HEAD_DIM, VALUE_DIM, N_HEADS, N_KV_HEADS = 32, 48, 6, 2


@pytest.mark.parametrize("is_half", [True, False], ids=["f16", "f32"])
@pytest.mark.parametrize("neox", [True, False], ids=["neox", "adjacent"])
@pytest.mark.parametrize("n_pairs", [16, 5, 0], ids=["whole", "partial", "none"])
def test_queries_are_rotated_and_keys_and_values_stored(
    library: KernelLibrary, is_half: bool, neox: bool, n_pairs: int
) -> None:
    rng = np.random.default_rng(1)
    pages = Pages(N_KV_HEADS, HEAD_DIM, VALUE_DIM, is_half, n_sequences=2)
    positions = np.array([0, 15, 16, 31, 32, 70, 32], np.int32)
    sequences = np.array([0, 0, 0, 0, 0, 0, 1], np.int32)
    rope_rows = np.array([0, 15, 16, 31, 32, 70, 79], np.int32)
    n_tokens = len(positions)
    angles = rng.uniform(-3, 3, (80, n_pairs)).astype(np.float32)
    table = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    q = rng.standard_normal((n_tokens, N_HEADS, HEAD_DIM), np.float32)
    k = rng.standard_normal((n_tokens, N_KV_HEADS, HEAD_DIM), np.float32)
    v = rng.standard_normal((n_tokens, N_KV_HEADS, VALUE_DIM), np.float32)
    original_q, original_k = q.copy(), k.copy()
    untouched = Pages(N_KV_HEADS, HEAD_DIM, VALUE_DIM, is_half, n_sequences=2)

    for token in range(n_tokens):
        library.run(
            "rope_store",
            token,
            q=at(q),
            k=at(k),
            v=at(v),
            q_stride=q.strides[0],
            k_stride=k.strides[0],
            v_stride=v.strides[0],
            n_heads=N_HEADS,
            n_pairs=n_pairs,
            neox=int(neox),
            table=at(table),
            rope_rows=at(rope_rows),
            positions=at(positions),
            sequences=at(sequences),
            **pages.operands(),
        )

    for token, (sequence, position) in enumerate(zip(sequences, positions, strict=True)):
        cos, sin = table[rope_rows[token], :n_pairs], table[rope_rows[token], n_pairs:]
        np.testing.assert_array_equal(q[token], rope_reference(original_q[token], cos, sin, neox))
        keys = rope_reference(original_k[token], cos, sin, neox)
        untouched.store(sequence, position, keys, v[token])  # rounds to half as the pages do
    np.testing.assert_array_equal(pages.storage, untouched.storage)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e6, 65504.0, 65519.0, 65520.0, 6e-8, 2.9e-8, -1e-5, -0.0])
def test_halves_are_rounded_to_nearest(library: KernelLibrary, value: float) -> None:
    pages = Pages(1, 16, 16, is_half=True)
    zeros, ones = np.zeros((1, 16), np.float32), np.ones(16, np.float32)
    v = np.full((1, 16), value, np.float32)
    table = np.concatenate([ones[:8], np.zeros(8, np.float32)])
    cell = np.zeros(1, np.int32)
    q, k = zeros.copy(), zeros.copy()
    library.run(
        "rope_store",
        0,
        q=at(q),
        k=at(k),
        v=at(v),
        q_stride=64,
        k_stride=64,
        v_stride=64,
        n_heads=1,
        n_pairs=8,
        neox=1,
        table=at(table),
        rope_rows=at(cell),
        positions=at(cell),
        sequences=at(cell),
        **pages.operands(),
    )
    with np.errstate(over="ignore"):
        expected = v[0].astype(np.float16)
    stored = pages.head(0, 0, 0)[1][0]
    np.testing.assert_array_equal(stored, expected)
    assert np.signbit(stored).all() == np.signbit(expected).all()


@pytest.mark.parametrize("neox", [True, False], ids=["neox", "adjacent"])
@pytest.mark.parametrize("n_pairs", [16, 5], ids=["whole", "partial"])
def test_all_heads_of_a_row_are_rotated_in_place(library: KernelLibrary, neox: bool, n_pairs: int) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, N_HEADS, HEAD_DIM), np.float32)
    angles = rng.uniform(-3, 3, (9, n_pairs)).astype(np.float32)
    table, rope_rows = np.concatenate([np.cos(angles), np.sin(angles)], axis=1), np.array([4, 0, 8], np.int32)
    expected = x.copy()
    expected[2] = rope_reference(x[2], np.cos(angles[8]), np.sin(angles[8]), neox)
    operands = {"n_heads": N_HEADS, "head_dim": HEAD_DIM, "n_pairs": n_pairs, "neox": int(neox)}
    library.run("rope", 2, x=at(x), stride=x.strides[0], table=at(table), rope_rows=at(rope_rows), **operands)
    np.testing.assert_array_equal(x, expected)
