"""Attention over compressed keys and values."""

from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.latent import latent_attention_reference
from engine.kernels.layout import LATENT_HEADS_TOGETHER, PAGE
from engine.kernels.library import KernelLibrary
from engine.kernels.rope import rope_reference
from tests.engine.kernels.operands import Array, at

N_LATENT, N_ROPE, N_PLAIN, MAX_PAGES, LAYER_OFFSET = 64, 16, 32, 5, 192
WIDTH = N_LATENT + N_ROPE
N_POSITIONS = 4 * PAGE + 5


class LatentPages:
    """The pages of some sequences, scattered in memory, NaN where nothing was stored."""

    def __init__(self, is_half: bool, n_sequences: int = 1) -> None:
        self.dtype = np.float16 if is_half else np.float32
        n_pages = n_sequences * MAX_PAGES
        page_bytes = LAYER_OFFSET + PAGE * WIDTH * self.dtype().itemsize
        self.storage = np.full((n_pages, page_bytes), 0xFF, np.uint8)
        self.order = np.random.default_rng(0).permutation(n_pages).reshape(n_sequences, MAX_PAGES)
        self.table = at(self.storage) + self.order.astype(np.int64) * page_bytes

    def page(self, sequence: int, page: int) -> Array:
        """(PAGE, WIDTH): a writable view."""
        return self.storage[self.order[sequence, page], LAYER_OFFSET:].view(self.dtype).reshape(PAGE, WIDTH)

    def fill(self, sequence: int, rows: Array) -> None:
        for position, row in enumerate(rows):
            self.page(sequence, position // PAGE)[position % PAGE] = row

    def operands(self) -> dict[str, int]:
        return {
            "pages": at(self.table),
            "max_pages": MAX_PAGES,
            "layer_offset": LAYER_OFFSET,
            "is_half": int(self.dtype is np.float16),
            "n_latent": N_LATENT,
        }


def attend(
    library: KernelLibrary,
    pages: LatentPages,
    q: Array,
    positions: list[int],
    sequence: int = 0,
    heads_per_chunk: int = LATENT_HEADS_TOGETHER,
) -> Array:
    """q (n_tokens, n_heads, WIDTH) -> (n_tokens, n_heads, N_LATENT)."""
    n_tokens, n_heads, _ = q.shape
    out = np.full((n_tokens, n_heads, N_LATENT), np.nan, np.float32)
    where, which = np.array(positions, np.int32), np.full(n_tokens, sequence, np.int32)
    scratch = np.full(heads_per_chunk * PAGE * MAX_PAGES, np.nan, np.float32)
    row_chunks = -(-n_heads // heads_per_chunk)
    for chunk in range(n_tokens * row_chunks):
        library.run(
            "latent_attention",
            chunk,
            at(scratch),
            queries=at(q),
            queries_stride=q.strides[0],
            out=at(out),
            out_stride=out.strides[0],
            n_heads=n_heads,
            n_rope=N_ROPE,
            heads_per_chunk=heads_per_chunk,
            row_chunks=row_chunks,
            positions=at(where),
            sequences=at(which),
            scale=0.2,
            **pages.operands(),
        )
    return out


def filled(is_half: bool, n_sequences: int = 1) -> tuple[LatentPages, Array]:
    pages = LatentPages(is_half, n_sequences)
    rows = np.random.default_rng(1).standard_normal((N_POSITIONS, WIDTH), np.float32).astype(pages.dtype)
    pages.fill(n_sequences - 1, rows)
    return pages, rows.astype(np.float32)


@pytest.mark.parametrize("is_half", [True, False], ids=["f16", "f32"])
@pytest.mark.parametrize("n_heads", [1, 4, 6, 16])
def test_every_visible_position_counts_and_no_other(library: KernelLibrary, is_half: bool, n_heads: int) -> None:
    pages, rows = filled(is_half, n_sequences=2)
    positions = [0, 1, 15, 16, 31, 32, 33, 64, 95, N_POSITIONS - 1]
    q = np.random.default_rng(2).standard_normal((len(positions), n_heads, WIDTH), np.float32)

    out = attend(library, pages, q, positions, sequence=1)

    for token, last in enumerate(positions):
        expected = latent_attention_reference(q[token], rows[: last + 1], N_LATENT, 0.2)
        np.testing.assert_allclose(out[token], expected, rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("heads_per_chunk", [1, 3, 8, 16])
def test_heads_together_give_the_bits_of_fours(library: KernelLibrary, heads_per_chunk: int) -> None:
    pages, _ = filled(is_half=True)
    q = np.random.default_rng(2).standard_normal((3, 14, WIDTH), np.float32)
    positions = [0, 40, N_POSITIONS - 1]
    expected = attend(library, pages, q, positions)
    np.testing.assert_array_equal(attend(library, pages, q, positions, heads_per_chunk=heads_per_chunk), expected)


def test_a_nan_shows_in_the_tokens_that_see_it(library: KernelLibrary) -> None:
    pages, _ = filled(is_half=True)
    pages.page(0, 1)[3, 5] = np.nan
    q = np.random.default_rng(2).standard_normal((2, 4, WIDTH), np.float32)
    out = attend(library, pages, q, [PAGE + 2, PAGE + 3])
    assert np.isfinite(out[0]).all()
    assert np.isnan(out[1]).all()


@pytest.mark.parametrize("is_half", [True, False], ids=["f16", "f32"])
def test_rotated_parts_go_behind_the_latents_and_rows_into_the_pages(library: KernelLibrary, is_half: bool) -> None:
    rng = np.random.default_rng(3)
    n_heads, positions, sequences = 3, np.array([0, 31, 70, 32], np.int32), np.array([0, 0, 0, 1], np.int32)
    rope_rows, n_tokens = np.array([0, 31, 70, 79], np.int32), 4
    angles = rng.uniform(-3, 3, (80, N_ROPE // 2)).astype(np.float32)
    table = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    pages, expected_pages = LatentPages(is_half, 2), LatentPages(is_half, 2)
    q = rng.standard_normal((n_tokens, n_heads, N_PLAIN + N_ROPE), np.float32)
    queries = rng.standard_normal((n_tokens, n_heads, WIDTH), np.float32)
    kv = rng.standard_normal((n_tokens, WIDTH), np.float32)
    expected, expected_kv = queries.copy(), kv.copy()
    for token in range(n_tokens):
        cos, sin = np.cos(angles[rope_rows[token]]), np.sin(angles[rope_rows[token]])
        expected[token, :, N_LATENT:] = rope_reference(q[token, :, N_PLAIN:], cos, sin, neox=False)
        expected_kv[token, N_LATENT:] = rope_reference(kv[token, None, N_LATENT:], cos, sin, neox=False)[0]
        page = expected_pages.page(sequences[token], positions[token] // PAGE)
        page[positions[token] % PAGE] = expected_kv[token]

    for token in range(n_tokens):
        library.run(
            "latent_store",
            token,
            q=at(q),
            q_stride=q.strides[0],
            queries=at(queries),
            queries_stride=queries.strides[0],
            kv=at(kv),
            kv_stride=kv.strides[0],
            n_heads=n_heads,
            n_plain=N_PLAIN,
            n_pairs=N_ROPE // 2,
            neox=0,
            table=at(table),
            rope_rows=at(rope_rows),
            positions=at(positions),
            sequences=at(sequences),
            **pages.operands(),
        )

    np.testing.assert_array_equal(queries, expected)
    np.testing.assert_array_equal(pages.storage, expected_pages.storage)


def test_tiers_agree_closely(libraries: list[KernelLibrary]) -> None:
    pages, _ = filled(is_half=True)
    q = np.random.default_rng(6).standard_normal((1, 6, WIDTH), np.float32)
    first, *others = (attend(library, pages, q, [N_POSITIONS - 1]) for library in libraries)
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-5, atol=1e-6)
