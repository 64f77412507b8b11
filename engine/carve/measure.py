"""What choosing fewer experts costs, measured on a text: the user should know before choosing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from engine.convert.calibrate.collect import reading_config
from engine.convert.proof import compare_engines
from engine.engine import Engine

PREFIX = "colibri.carve."
_DEMONSTRATION = 0.1  # nats: beyond this mean divergence answers differ visibly


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


def measure(
    source: str | os.PathLike[str],
    carved: str | os.PathLike[str],
    texts: Mapping[str, str],
    top_ks: Iterable[int],
    *,
    n_shared: int,
    n_most: int = 3,
    progress: Callable[[int], None] | None = None,
) -> list[Loss]:
    """The loss for each of `top_ks`, on at most `n_most` passages of `texts`. progress(measured so far) may raise."""
    losses = list[Loss]()
    with Engine.open(source, reading_config()) as dense:
        for top_k in top_ks:
            with Engine.open(carved, reading_config(top_k=top_k)) as engine:
                n_experts = engine.info.n_experts + n_shared
                proof = compare_engines(dense, engine, texts, n_most=n_most)
            share = (top_k + n_shared) / n_experts
            losses.append(
                Loss(
                    top_k,
                    share,
                    proof.perplexity,
                    proof.source_perplexity,
                    proof.divergence,
                    proof.top_agreement,
                )
            )
            if progress:
                progress(len(losses))
    return losses


def loss_keys(losses: list[Loss], chosen: int) -> dict[str, object]:
    """Metadata for the carved model's file: the table, and whether the number of experts in it is a demonstration."""
    mine = next((loss for loss in losses if loss.top_k == chosen), None)
    return {
        f"{PREFIX}top_k": [loss.top_k for loss in losses],
        f"{PREFIX}perplexity": np.array([loss.perplexity for loss in losses], np.float32),
        f"{PREFIX}divergence": np.array([loss.divergence for loss in losses], np.float32),
        f"{PREFIX}source_perplexity": float(losses[0].source_perplexity),
        f"{PREFIX}is_demonstration": mine is None or mine.is_demonstration,
    }
