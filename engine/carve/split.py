"""Splits one feed-forward network: the order of its neurons as experts, and a router that knows who will be needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.carve.clusters import Numbers, balanced_clusters, busiest
from engine.carve.options import Carving

Floats = npt.NDArray[np.float32]

_FEATURE_TOKENS = 1536
_RIDGE = 1e-3  # of the mean variance of the inputs
_SMALL = 2.0**-12  # of a router's logits: the softmax then weighs all experts nearly alike, in the right order
_LEAST_NORM = 1e-4  # of the mean


@dataclass(frozen=True, slots=True)
class Split:
    """`shared` neurons, those of each routed expert, and the router (n_routed, n_embedding) float32."""

    shared: Numbers
    experts: list[Numbers]
    router: Floats


def split_network(x: Floats, gate: Floats, up: Floats, down: Floats, carving: Carving) -> Split:
    """x (n_tokens, n_embedding): inputs; gate, up (n_neurons, n_embedding), down (n_embedding, n_neurons).

    The router is fitted by ridge regression to the logarithm of each expert's contribution; its logits are small, so
    that the chosen experts' weights (softmax times n_routed) lie within some thousandths of 1.
    """
    size = len(gate) // carving.n_experts
    projected = x @ gate.T
    with np.errstate(over="ignore"):  # infinity is right: such a neuron gives 0
        hidden = projected / (1 + np.exp(-projected)) * (x @ up.T)
    contributions = np.abs(hidden) * np.linalg.norm(down, axis=0)
    shared, rest = busiest(contributions, size * carving.n_shared)
    every = max(1, len(x) // _FEATURE_TOKENS)
    groups = balanced_clusters(np.sqrt(contributions[::every, rest].T), carving.n_routed)
    experts = [rest[group] for group in groups]
    norms = np.stack([_output_norms(hidden[:, expert], down[:, expert]) for expert in experts], 1)
    return Split(shared, experts, fit_router(x, norms))


def _output_norms(hidden: Floats, down: Floats) -> Floats:
    """Norms of hidden @ down.T, (n_tokens,), by the columns' products with each other."""
    squares = ((hidden @ (down.T @ down)) * hidden).sum(1)
    return np.asarray(np.sqrt(np.maximum(squares, 0)), np.float32)


def fit_router(x: Floats, norms: Floats) -> Floats:
    """x (n_tokens, n_embedding), norms (n_tokens, n_experts) -> (n_experts, n_embedding): logits like log norms."""
    target = np.log(norms + _LEAST_NORM * norms.mean())
    target -= target.mean()  # what all experts have in common chooses none
    target /= max(float(target.std()), 1e-6)
    wide = x.astype(np.float64)
    square = wide.T @ wide
    square[np.diag_indices_from(square)] += _RIDGE * np.trace(square) / len(square)
    weights = np.linalg.solve(square, wide.T @ target)
    return np.asarray(_SMALL * weights.T, np.float32)
