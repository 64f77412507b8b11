"""Orders of rows and columns that GGUF has otherwise than the published checkpoints."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def rotary_pairs(n_heads: int, head_dim: int) -> npt.NDArray[np.int64]:
    """Rows of Q or K: published with the two halves of a head's rotation apart, in GGUF's llama side by side."""
    return np.arange(n_heads * head_dim).reshape(n_heads, 2, head_dim // 2).swapaxes(1, 2).reshape(-1)


def tiled_value_heads(n_key_heads: int, n_value_heads: int, head_dim: int) -> npt.NDArray[np.int64]:
    """Value heads of a gated delta net: published by key head; in GGUF first those that are each key head's first."""
    order = np.arange(n_value_heads * head_dim).reshape(n_key_heads, n_value_heads // n_key_heads, head_dim)
    return order.swapaxes(0, 1).reshape(-1)


def every_second(n_matrices: int, n_rows: int, first: int) -> npt.NDArray[np.int64]:
    """Rows `first`, `first` + 2, ... of each of `n_matrices` matrices of `n_rows`."""
    return np.arange(n_matrices * n_rows).reshape(n_matrices, n_rows)[:, first::2].reshape(-1)


def row_range(n_matrices: int, n_rows: int, first: int, last: int) -> npt.NDArray[np.int64]:
    """Rows `first` to `last` (not included) of each of `n_matrices` matrices of `n_rows`."""
    return np.arange(n_matrices * n_rows).reshape(n_matrices, n_rows)[:, first:last].reshape(-1)
