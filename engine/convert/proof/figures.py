"""What two models' distributions of the next token and their routes come to, gathered as they are computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.convert.likelihood import of_tokens
from engine.convert.proof.record import Proof

Array = npt.NDArray[Any]


class Figures:
    """Of a model beside its source on the same passages."""

    def __init__(self) -> None:
        self._divergences, self._agreements = list[Array](), list[Array]()
        self._routes = list[Array]()
        self._likelihoods: tuple[list[Array], list[Array]] = ([], [])

    def add(self, ids: Sequence[int], p: Array, blocks: Iterable[Array]) -> None:
        """One passage: the source's log probabilities `p` (n_tokens, n_vocab) and the model's, some rows at a time."""
        first = 0
        for q in blocks:
            mine, following = p[first : first + len(q)], ids[first : first + len(q) + 1]
            self._divergences.append(_divergence(mine, q))
            self._agreements.append(mine.argmax(-1) == q.argmax(-1))
            for kept, log_p in zip(self._likelihoods, (mine, q), strict=True):
                kept.append(of_tokens(log_p, following))
            first += len(q)

    def add_routes(self, expected: Array, found: Array) -> None:
        """Experts of one passage, (n_layers, n_tokens, top_k), where both have as many for each token."""
        if expected.shape == found.shape and expected.size:
            self._routes.append(_shared_choices(expected, found))

    def proof(self, source: str, texts: Iterable[str]) -> Proof:
        """What has been gathered."""
        divergence = np.concatenate(self._divergences)
        source_perplexity, perplexity = (float(np.exp(-np.concatenate(kept).mean())) for kept in self._likelihoods)
        return Proof(
            source=source,
            text=", ".join(texts),
            n_tokens=len(divergence),
            source_perplexity=source_perplexity,
            perplexity=perplexity,
            divergence=max(float(divergence.mean()), 0.0),
            divergence_99=max(float(np.quantile(divergence, 0.99)), 0.0),
            top_agreement=float(np.concatenate(self._agreements).mean()),
            route_agreement=tuple(np.concatenate(self._routes, 1).mean(1).tolist()) if self._routes else (),
        )


def _divergence(p: Array, q: Array) -> Array:
    """KL(p || q) of each row of log probabilities (n, n_vocab): (n,) float64."""
    mine, other = p.astype(np.float64), q.astype(np.float64)
    return np.asarray((np.exp(mine) * (mine - other)).sum(-1))


def _shared_choices(expected: Array, found: Array) -> Array:
    """For experts (n_layers, n_tokens, top_k): the share of the choices that are common, (n_layers, n_tokens)."""
    common = (expected[..., :, None] == found[..., None, :]).any(-1)
    return np.asarray(common.mean(-1))
