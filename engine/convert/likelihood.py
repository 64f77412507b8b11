"""What logits say of a text: the logarithm of the probability of each token that came."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def log_probabilities(logits: Floats) -> Floats:
    """(n, n_vocab) float32 -> the same, each row's exponentials summing to 1."""
    shifted: Floats = logits - logits.max(-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(-1, dtype=np.float64, keepdims=True)).astype(np.float32)
    return shifted


def of_tokens(log_p: Floats, ids: Sequence[int]) -> npt.NDArray[np.float64]:
    """The entries of ids[1:] in log probabilities (n_tokens, n_vocab)."""
    return np.asarray(log_p[np.arange(len(ids) - 1), np.asarray(ids[1:], np.int64)], np.float64)
