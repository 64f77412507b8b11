"""The figures of a comparison, as a sentence and as metadata of the model's file."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engine.gguf.amend import amend

PREFIX = "colibri.proof."
_FIGURES = ("source_perplexity", "perplexity", "divergence", "divergence_99", "top_agreement")
_MOST_LAYERS, _MOST_CHARACTERS = 4096, 200


@dataclass(frozen=True, slots=True)
class Proof:
    """A model beside its source on `n_tokens` tokens of `text`.

    divergence: mean Kullback-Leibler divergence of the next token's distribution from the source's, in nats;
    divergence_99: what 99 % of the positions stay below. top_agreement: share of the positions at which both prefer
    the same token. route_agreement: for each layer of experts, the share of chosen experts that the source chooses too.
    """

    source: str
    text: str
    n_tokens: int
    source_perplexity: float
    perplexity: float
    divergence: float
    divergence_99: float
    top_agreement: float
    route_agreement: tuple[float, ...] = ()

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        routes = ""
        if self.route_agreement:
            mean = sum(self.route_agreement) / len(self.route_agreement)
            routes = f", its routers choose the same experts in {_percent(mean)} of all cases"
        return (
            f"On {self.n_tokens:,} tokens of text it prefers the same next token as its source at "
            f"{_percent(self.top_agreement)} of the positions{routes}, and its perplexity is {self.perplexity:.3f} "
            f"instead of {self.source_perplexity:.3f} (divergence {self.divergence:.2g} nats)."
        )

    def keys(self) -> dict[str, object]:
        """Metadata for the model's file."""
        keys: dict[str, object] = {
            "sentence": self.sentence,
            "source": self.source[:_MOST_CHARACTERS],
            "text": self.text[:_MOST_CHARACTERS],
            "tokens": self.n_tokens,
            **{name: float(getattr(self, name)) for name in _FIGURES},
        }
        if self.route_agreement:
            keys["route_agreement"] = np.array(self.route_agreement, np.float32)
        return {PREFIX + name: value for name, value in keys.items()}


def store(proof: Proof, path: str | os.PathLike[str], progress: Callable[[int], None] | None = None) -> Path:
    """Write `proof` into the model at `path`, in the place of an older one. Raises what `amend` raises."""
    return amend(path, proof.keys(), without=PREFIX, progress=progress)


def proof_of(metadata: Mapping[str, Any]) -> Proof | None:
    """The proof in a file's metadata; None where there is none, or its figures cannot be."""
    source, text, n_tokens = (metadata.get(PREFIX + name) for name in ("source", "text", "tokens"))
    if not (isinstance(source, str) and isinstance(text, str) and isinstance(n_tokens, int)):
        return None
    figures: dict[str, Any] = {name: metadata.get(PREFIX + name) for name in _FIGURES}
    if not all(isinstance(value, float) and math.isfinite(value) and value >= 0 for value in figures.values()):
        return None
    routes, shares = metadata.get(PREFIX + "route_agreement"), tuple[float, ...]()
    if isinstance(routes, np.ndarray) and len(routes) <= _MOST_LAYERS:
        shares = tuple(float(share) for share in routes)
    if not all(0 <= share <= 1 for share in (*shares, figures["top_agreement"])):
        return None
    source, text = source[:_MOST_CHARACTERS], text[:_MOST_CHARACTERS]
    return Proof(source, text, n_tokens, route_agreement=shares, **figures)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
