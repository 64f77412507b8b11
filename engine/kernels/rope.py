"""Rotary position embedding of queries and keys, and the storing of keys and values in the KV pages.

A page holds PAGE positions of all layers. In it, each layer has for each KV head a block of keys and one of values:

    keys     (PAGE / 16, head_dim, 16): sixteen positions side by side, for sixteen scores at once
    values   (PAGE, value_dim)
"""

from __future__ import annotations

import numpy as np

from engine.kernels.layout import PAGE
from engine.kernels.memory import load_f32, load_i32, load_i64, store_f16, store_f32
from engine.kernels.registry import device, kernel


def rope_reference(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, neox: bool) -> np.ndarray:
    """x (n, head_dim) at one position; cos, sin (n_pairs). Su et al. 2021; `neox` pairs element i with i + n_pairs."""
    n_pairs = cos.shape[0]
    if neox:
        first, second = slice(0, n_pairs), slice(n_pairs, 2 * n_pairs)
    else:
        first, second = slice(0, 2 * n_pairs, 2), slice(1, 2 * n_pairs, 2)
    out = x.copy()
    out[:, first] = x[:, first] * cos - x[:, second] * sin
    out[:, second] = x[:, second] * cos + x[:, first] * sin
    return out


@device
def rotate(x, table, n_pairs, neox):
    """Rotate one head at `x` in place; `table` has n_pairs cosines, then n_pairs sines."""
    for i in range(n_pairs):
        cos, sin = load_f32(table + 4 * i), load_f32(table + 4 * (n_pairs + i))
        first = x + (4 * i if neox else 8 * i)
        second = first + (4 * n_pairs if neox else 4)
        a, b = load_f32(first), load_f32(second)
        store_f32(first, a * cos - b * sin)
        store_f32(second, b * cos + a * sin)


@device
def page_of(pages, sequences, positions, token, max_pages):
    """Address of the page that holds a token's position."""
    row = load_i32(sequences + 4 * token) * max_pages + load_i32(positions + 4 * token) // PAGE
    return load_i64(pages + 8 * row)


@device
def store_kv(target, index, value, is_half):
    if is_half:
        store_f16(target + 2 * index, value)
    else:
        store_f32(target + 4 * index, value)


@kernel
def rope(
    chunk,
    scratch,
    x: int,
    stride: int,
    n_heads: int,
    head_dim: int,
    n_pairs: int,
    neox: int,
    table: int,
    rope_rows: int,
):
    """Rotate all heads of row `chunk` of x in place."""
    row = table + 8 * n_pairs * load_i32(rope_rows + 4 * chunk)
    for head in range(n_heads):
        rotate(x + stride * chunk + 4 * head_dim * head, row, n_pairs, neox)


@kernel
def rope_store(
    chunk,
    scratch,
    q: int,
    k: int,
    v: int,
    q_stride: int,
    k_stride: int,
    v_stride: int,
    n_heads: int,
    n_kv_heads: int,
    head_dim: int,
    value_dim: int,
    n_pairs: int,
    neox: int,
    table: int,
    rope_rows: int,
    positions: int,
    sequences: int,
    pages: int,
    max_pages: int,
    layer_offset: int,
    head_bytes: int,
    is_half: int,
):
    """For token chunk: rotate its queries in place, rotate its keys, and store keys and values in its page."""
    position = load_i32(positions + 4 * chunk)
    row = table + 8 * n_pairs * load_i32(rope_rows + 4 * chunk)
    for head in range(n_heads):
        rotate(q + q_stride * chunk + 4 * head_dim * head, row, n_pairs, neox)
    page = page_of(pages, sequences, positions, chunk, max_pages) + layer_offset
    slot = position % PAGE
    size = 2 if is_half else 4
    for head in range(n_kv_heads):
        key = k + k_stride * chunk + 4 * head_dim * head
        rotate(key, row, n_pairs, neox)
        keys = page + head_bytes * head
        first = slot // 16 * 16 * head_dim + slot % 16
        for i in range(head_dim):
            store_kv(keys, first + 16 * i, load_f32(key + 4 * i), is_half)
        values = keys + size * PAGE * head_dim
        value = v + v_stride * chunk + 4 * value_dim * head
        for i in range(value_dim):
            store_kv(values, slot * value_dim + i, load_f32(value + 4 * i), is_half)
