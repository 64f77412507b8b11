"""Perplexity of a text, by windows: the definition that llama.cpp's llama-perplexity uses, so that figures compare."""

from __future__ import annotations

import numpy as np

from engine import Engine
from tests.support.divergence import log_softmax


def perplexity(engine: Engine, ids: list[int], window: int = 512) -> float:
    """exp of the mean surprise (nats) at the tokens in the second half of each whole window of `ids`.

    Each window is read from position 0, without the text before it. Tokens after the last whole window are left out.
    """
    surprises = []
    for first in range(0, len(ids) - window + 1, window):
        piece = ids[first : first + window]
        scored = slice(window // 2, window - 1)
        log_p = log_softmax(engine.logits(piece)[scored])
        surprises.append(-np.take_along_axis(log_p, np.array(piece[window // 2 + 1 :])[:, None], axis=1))
    return float(np.exp(np.mean(surprises)))
