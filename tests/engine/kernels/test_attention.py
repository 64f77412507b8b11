"""Attention over the pages of a sequence."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.attention import attention_reference
from engine.kernels.layout import PAGE, QUERY_BYTES, activation_row_bytes
from engine.kernels.library import KernelLibrary
from tests.engine.kernels.operands import Array, at, quantise
from tests.engine.kernels.pages import Pages

HEAD_DIM, VALUE_DIM, N_KV_HEADS = 32, 64, 2
N_POSITIONS = 4 * PAGE + 5


def filled_pages(is_half: bool, n_sequences: int = 1) -> tuple[Pages, Array, Array]:
    """Pages with N_POSITIONS positions in the last sequence; NaN wherever nothing is stored."""
    rng = np.random.default_rng(3)
    pages = Pages(N_KV_HEADS, HEAD_DIM, VALUE_DIM, is_half, n_sequences)
    k = rng.standard_normal((N_POSITIONS, N_KV_HEADS, HEAD_DIM), np.float32).astype(pages.dtype)
    v = rng.standard_normal((N_POSITIONS, N_KV_HEADS, VALUE_DIM), np.float32).astype(pages.dtype)
    for position in range(N_POSITIONS):
        pages.store(n_sequences - 1, position, k[position], v[position])
    return pages, k.astype(np.float32), v.astype(np.float32)


def attention(
    library: KernelLibrary,
    pages: Pages,
    q: Array,
    positions: list[int],
    scale: float,
    sequence: int = 0,
    unit: int = 1,
    window: int = 0,
    sinks: Array | None = None,
) -> tuple[Array, Array]:
    """q (n_tokens, n_heads, HEAD_DIM) -> the output (n_tokens, n_heads * VALUE_DIM) and its rounded rows."""
    n_tokens, n_heads, _ = q.shape
    out = np.full((n_tokens, n_heads * VALUE_DIM), np.nan, np.float32)
    rounded = np.zeros((n_tokens, activation_row_bytes(out.shape[1])), np.uint8)
    where, which = np.array(positions, np.int32), np.full(n_tokens, sequence, np.int32)
    scratch = np.full(unit * n_heads // N_KV_HEADS * (PAGE * pages.max_pages + QUERY_BYTES // 4), np.nan, np.float32)
    count, heads_done = np.array([n_tokens], np.int64), np.zeros(n_tokens, np.int64)
    for chunk in range(-(-n_tokens // unit) * N_KV_HEADS):
        library.run(
            "attention",
            chunk,
            at(scratch),
            q=at(q),
            q_stride=q.strides[0],
            out=at(out),
            out_stride=out.strides[0],
            rounded=at(rounded),
            rounded_stride=rounded.shape[1],
            heads_done=at(heads_done),
            n_heads=n_heads,
            n_tokens=at(count),
            unit=unit,
            positions=at(where),
            sequences=at(which),
            window=window,
            sinks=0 if sinks is None else at(sinks),
            scale=scale,
            **pages.operands(),
        )
    assert not heads_done.any()  # ready for the next layer
    return out, rounded


@pytest.mark.parametrize("is_half", [True, False], ids=["f16", "f32"])
@pytest.mark.parametrize("group", [1, 3])
def test_every_visible_position_counts_and_no_other(library: KernelLibrary, is_half: bool, group: int) -> None:
    pages, k, v = filled_pages(is_half, n_sequences=2)
    positions = [0, 1, 14, 15, 16, 17, 30, 31, 32, 33, 63, 64, 95, 96, N_POSITIONS - 1]
    n_heads = group * N_KV_HEADS
    q = np.random.default_rng(4).standard_normal((len(positions), n_heads, HEAD_DIM), np.float32)

    out, rounded = attention(library, pages, q, positions, 0.3, sequence=1)

    for token, last in enumerate(positions):
        expected = attention_reference(q[token], k[: last + 1], v[: last + 1], 0.3)
        np.testing.assert_allclose(out[token], expected.reshape(-1), rtol=2e-5, atol=2e-6)
    np.testing.assert_array_equal(rounded, quantise(library, out))


@pytest.mark.parametrize("is_half", [True, False], ids=["f16", "f32"])
@pytest.mark.parametrize("window", [1, 5, 32, 33, 100, 1000])
@pytest.mark.parametrize("unit", [1, 8])
def test_a_window_hides_what_is_before_it(library: KernelLibrary, is_half: bool, window: int, unit: int) -> None:
    pages, k, v = filled_pages(is_half)
    positions = [0, 1, 30, 31, 32, 33, 34, 35, 36, 63, 64, 95, 96, N_POSITIONS - 1]
    q = np.random.default_rng(4).standard_normal((len(positions), 2 * N_KV_HEADS, HEAD_DIM), np.float32)

    out, _ = attention(library, pages, q, positions, 0.3, window=window, unit=unit)

    for token, last in enumerate(positions):
        expected = attention_reference(q[token], k[: last + 1], v[: last + 1], 0.3, window)
        np.testing.assert_allclose(out[token], expected.reshape(-1), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("window", [0, 20])
def test_sinks_take_weight_and_give_nothing(library: KernelLibrary, window: int) -> None:
    pages, k, v = filled_pages(is_half=False)
    positions = [0, 3, 40, N_POSITIONS - 1]
    sinks = np.array([-3, 0.5, 2, 60], np.float32)
    q = np.random.default_rng(4).standard_normal((len(positions), 2 * N_KV_HEADS, HEAD_DIM), np.float32)

    out, _ = attention(library, pages, q, positions, 0.3, window=window, sinks=sinks)

    for token, last in enumerate(positions):
        expected = attention_reference(q[token], k[: last + 1], v[: last + 1], 0.3, window, sinks)
        np.testing.assert_allclose(out[token], expected.reshape(-1), rtol=2e-5, atol=2e-6)


def test_pages_before_the_window_are_not_looked_at(library: KernelLibrary) -> None:
    pages, _, _ = filled_pages(is_half=True)
    q = np.random.default_rng(5).standard_normal((1, N_KV_HEADS, HEAD_DIM), np.float32)
    expected, _ = attention(library, pages, q, [100], 0.3, window=40)
    for head in range(N_KV_HEADS):
        for part in pages.head(0, 0, head):
            part[:] = np.nan
    np.testing.assert_array_equal(attention(library, pages, q, [100], 0.3, window=40)[0], expected)


@pytest.mark.parametrize("unit", [2, 3, 8, 64])
@pytest.mark.parametrize("group", [1, 3, 4])
@pytest.mark.parametrize("window", [0, 37])
def test_tokens_together_give_the_bits_of_each_alone(
    library: KernelLibrary, unit: int, group: int, window: int
) -> None:
    pages, _, _ = filled_pages(is_half=True)
    positions = [*range(20, 45), 7, 8, 9, 60, *range(120, 134)]  # with gaps, over the borders of pages
    q = np.random.default_rng(8).standard_normal((len(positions), group * N_KV_HEADS, HEAD_DIM), np.float32)
    alone = attention(library, pages, q, positions, 0.3, window=window)
    together = attention(library, pages, q, positions, 0.3, unit=unit, window=window)
    np.testing.assert_array_equal(together[0], alone[0])
    np.testing.assert_array_equal(together[1], alone[1])


def test_large_scores_do_not_overflow(library: KernelLibrary) -> None:
    pages, k, v = filled_pages(is_half=False)
    q = np.full((1, N_KV_HEADS, HEAD_DIM), 40, np.float32)
    out, _ = attention(library, pages, q, [50], 10.0)
    expected = attention_reference(q[0].astype(np.float64), k[:51], v[:51], 10.0)
    np.testing.assert_allclose(out[0], expected.reshape(-1), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("what", ["query", "key", "value"])
@pytest.mark.parametrize("position", [0, 20, 40])
def test_a_nan_shows_in_the_head_that_sees_it(library: KernelLibrary, what: str, position: int) -> None:
    pages, _, _ = filled_pages(is_half=True)
    q = np.random.default_rng(5).standard_normal((2, N_KV_HEADS, HEAD_DIM), np.float32)
    if what == "query":
        q[1, 1, 7] = np.nan
    else:
        keys, values = pages.head(0, position // PAGE, 1)
        slot = position % PAGE
        (keys[slot // 16, slot % 16] if what == "key" else values[slot])[:] = np.nan
    out, _ = attention(library, pages, q, [position - 1 if position else 0, 40], 0.3)
    heads = out.reshape(2, N_KV_HEADS, VALUE_DIM)
    assert np.isnan(heads[1, 1]).all()
    assert np.isfinite(heads[1, 0]).all()
    sees = position == 0 and what != "query"
    assert np.isnan(heads[0, 1]).any() == sees


def test_tiers_agree_closely(libraries: list[KernelLibrary]) -> None:
    pages, _, _ = filled_pages(is_half=True)
    q = np.random.default_rng(6).standard_normal((1, 4, HEAD_DIM), np.float32)
    first, *others = (attention(library, pages, q, [N_POSITIONS - 1], 0.3)[0] for library in libraries)
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-5, atol=1e-6)
