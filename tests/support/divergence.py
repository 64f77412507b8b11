"""Kullback-Leibler divergence of an engine's logits from the starter model's float32 evaluation.

tests/data/starter_kl.npz holds, for two windows of text and 48 positions in each, the 256 most probable next tokens
of the float32 evaluation with their natural log-probabilities, and the log-probability of all other tokens together:

    window_ids    (n_windows, n_tokens) uint16   token ids, fed from position 0 without BOS
    positions     (n_windows, n_positions) int16 positions whose logits are compared
    top_ids       (n_windows, n_positions, 256) uint16, by falling probability
    top_logprob   (n_windows, n_positions, 256) float32
    rest_logprob  (n_windows, n_positions) float32

KL(P || Q) at a position = sum over the 256 tokens of p (log p - log q), plus the same term for "any other token" as
one class. Lumping the rest can only lower the figure, and by little: the rest is about 2 % of the probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

REFERENCE = Path(__file__).parents[1] / "data" / "starter_kl.npz"


@dataclass(frozen=True, slots=True)
class DivergenceReference:
    """The recorded distributions; arrays as the module's table says."""

    window_ids: np.ndarray
    positions: np.ndarray
    top_ids: np.ndarray
    top_logprob: np.ndarray
    rest_logprob: np.ndarray

    @classmethod
    def load(cls, path: Path = REFERENCE) -> DivergenceReference:
        with np.load(path) as arrays:
            return cls(**{name: arrays[name] for name in cls.__slots__})

    def window(self, index: int) -> list[int]:
        """Token ids of a window, as `engine.logits` takes them."""
        return [int(token) for token in self.window_ids[index]]

    def divergence(self, index: int, logits: np.ndarray) -> np.ndarray:
        """Return KL in nats at each recorded position, (n_positions,) float64.

        logits: (n_tokens, n_vocab) float32, the engine's logits at every position of window `index`.
        """
        q_log = log_softmax(logits[self.positions[index].astype(np.int64)])
        top_ids = self.top_ids[index].astype(np.int64)
        q_top = np.take_along_axis(q_log, top_ids, axis=1)
        np.put_along_axis(q_log, top_ids, -np.inf, axis=1)
        q_rest = np.log(np.exp(q_log).sum(axis=1))
        p_top = self.top_logprob[index].astype(np.float64)
        p_rest = self.rest_logprob[index].astype(np.float64)
        top_terms = (np.exp(p_top) * (p_top - q_top)).sum(axis=1)
        divergence: np.ndarray = top_terms + np.exp(p_rest) * (p_rest - q_rest)
        return divergence


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """Natural log-probabilities over the last axis, in float64."""
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    log_p: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return log_p
