"""The table of what fewer experts cost, as metadata of the carved model's file."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

PREFIX = "colibri.carve."
_DEMONSTRATION = 0.1  # nats: beyond this mean divergence answers differ visibly
_COLUMNS = ("perplexity", "divergence", "feed_forward_share", "top_agreement")
_MOST_ROWS = 512


@dataclass(frozen=True, slots=True)
class Loss:
    """A carved model with `top_k` routed experts beside its dense source.

    feed_forward_share: of the neurons of the carved layers, those that work for a token.
    """

    top_k: int
    feed_forward_share: float
    perplexity: float
    source_perplexity: float
    divergence: float  # nats, mean
    top_agreement: float

    @property
    def is_demonstration(self) -> bool:
        """Whether so much is lost that it shows routing, and is no model to work with."""
        return self.divergence > _DEMONSTRATION


def loss_keys(losses: Sequence[Loss], chosen: int) -> dict[str, object]:
    """Metadata for the carved model's file: the table, and whether the number of experts in it is a demonstration."""
    mine = next((loss for loss in losses if loss.top_k == chosen), None)
    columns = {name: np.array([getattr(loss, name) for loss in losses], np.float32) for name in _COLUMNS}
    return {
        f"{PREFIX}top_k": [loss.top_k for loss in losses],
        **{PREFIX + name: column for name, column in columns.items()},
        f"{PREFIX}source_perplexity": float(losses[0].source_perplexity),
        f"{PREFIX}is_demonstration": mine is None or mine.is_demonstration,
    }


def losses_of(metadata: Mapping[str, Any]) -> tuple[Loss, ...]:
    """The table in a file's metadata; () where there is none, or its figures cannot be."""
    top_ks, perplexity = metadata.get(f"{PREFIX}top_k"), metadata.get(f"{PREFIX}source_perplexity")
    columns = [metadata.get(PREFIX + name) for name in _COLUMNS]
    arrays = [value for value in (top_ks, *columns) if isinstance(value, np.ndarray) and value.dtype.kind in "fiu"]
    if len(arrays) != 1 + len(_COLUMNS) or not isinstance(perplexity, float):
        return ()
    if len({len(array) for array in arrays}) > 1 or len(arrays[0]) > _MOST_ROWS:
        return ()
    rows = [tuple(map(float, row)) for row in zip(*arrays, strict=True)]
    if not all(math.isfinite(value) and value >= 0 for row in (*rows, (perplexity,)) for value in row):
        return ()
    return tuple(
        Loss(int(top_k), share, own, perplexity, divergence, agreement)
        for top_k, own, divergence, share, agreement in rows
    )
