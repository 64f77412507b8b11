"""KV pages for tests: scattered in memory, filled with NaN where nothing was stored."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from engine.kernels.layout import PAGE, kv_head_bytes
from tests.engine.kernels.operands import Array, at


@dataclass
class Pages:
    """The pages of `n_sequences` sequences for one layer, which lies `layer_offset` bytes into each page."""

    n_kv_heads: int
    head_dim: int
    value_dim: int
    is_half: bool
    n_sequences: int = 1
    max_pages: int = 5
    layer_offset: int = 192
    table: Array = field(init=False)  # (n_sequences, max_pages) int64 addresses
    storage: Array = field(init=False)  # (n_sequences * max_pages, page bytes) uint8

    def __post_init__(self) -> None:
        n_pages = self.n_sequences * self.max_pages
        self.storage = np.full((n_pages, self.layer_offset + self.head_bytes * self.n_kv_heads), 0xFF, np.uint8)
        order = np.random.default_rng(0).permutation(n_pages)
        self.order = order.reshape(self.n_sequences, self.max_pages)
        self.table = at(self.storage) + self.order.astype(np.int64) * self.storage.shape[1]

    @property
    def dtype(self) -> type[np.floating]:
        return np.float16 if self.is_half else np.float32

    @property
    def head_bytes(self) -> int:
        return kv_head_bytes(self.head_dim, self.value_dim, self.dtype().itemsize)

    def head(self, sequence: int, page: int, head: int) -> tuple[Array, Array]:
        """Keys (PAGE, head_dim) and values (PAGE, value_dim) of a page: writable views."""
        start = self.layer_offset + self.head_bytes * head
        both = self.storage[self.order[sequence, page], start : start + self.head_bytes].view(self.dtype)
        keys = both[: PAGE * self.head_dim].reshape(PAGE // 16, self.head_dim, 16).transpose(0, 2, 1)
        return keys, both[PAGE * self.head_dim :].reshape(PAGE, self.value_dim)

    def store(self, sequence: int, position: int, keys: Array, values: Array) -> None:
        """Put one position's keys (n_kv_heads, head_dim) and values (n_kv_heads, value_dim) where they belong."""
        slot = position % PAGE
        for head in range(self.n_kv_heads):
            page_keys, page_values = self.head(sequence, position // PAGE, head)
            page_keys[slot // 16, slot % 16] = keys[head]
            page_values[slot] = values[head]

    def operands(self) -> dict[str, int]:
        return {
            "pages": at(self.table),
            "max_pages": self.max_pages,
            "layer_offset": self.layer_offset,
            "head_bytes": self.head_bytes,
            "is_half": int(self.is_half),
            "n_kv_heads": self.n_kv_heads,
            "head_dim": self.head_dim,
            "value_dim": self.value_dim,
        }
