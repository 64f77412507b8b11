"""Which neurons make an expert: the busiest are shared, the others are grouped by working at the same time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

_ROUNDS = 12


def busiest(contributions: Floats, n: int) -> tuple[Numbers, Numbers]:
    """The `n` neurons with the largest sum of squares of contributions (n_tokens, n_neurons), and the others."""
    order = np.argsort(-(contributions.astype(np.float64) ** 2).sum(0), kind="stable")
    return np.sort(order[:n]), np.sort(order[n:])


def balanced_clusters(features: Floats, n_clusters: int, seed: int = 0) -> list[Numbers]:
    """Groups of equal size of the rows of `features` (n, n_features), alike in direction: spherical k-means."""
    n = len(features)
    size = n // n_clusters
    unit = features - features.mean(1, keepdims=True)
    unit /= np.maximum(np.linalg.norm(unit, axis=1, keepdims=True), 1e-12)
    centres = _spread_rows(unit, n_clusters, np.random.default_rng(seed))
    owners = np.full(n, -1)
    for _ in range(_ROUNDS):
        new_owners = _assign(unit @ centres.T, size)
        if np.array_equal(new_owners, owners):
            break
        owners = new_owners
        centres = np.stack([unit[owners == cluster].sum(0) for cluster in range(n_clusters)])
        centres /= np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    return [np.flatnonzero(owners == cluster) for cluster in range(n_clusters)]


def _spread_rows(unit: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Rows that are far from each other (k-means++)."""
    chosen = [int(rng.integers(len(unit)))]
    distances = np.full(len(unit), np.inf)
    for _ in range(n - 1):
        distances = np.minimum(distances, np.maximum(1 - unit @ unit[chosen[-1]], 0))
        total = distances.sum()
        chosen.append(int(rng.choice(len(unit), p=distances / total)) if total > 0 else chosen[0])
    return unit[chosen]


def _assign(likeness: Floats, size: int) -> Numbers:
    """Each row's cluster by likeness (n, n_clusters), at most `size` rows each; who has most to lose chooses first."""
    ordered = np.sort(likeness, 1)
    turn = np.argsort(-(ordered[:, -1] - ordered[:, -2]), kind="stable")
    wishes = np.argsort(-likeness, 1, kind="stable")
    left = [size] * likeness.shape[1]
    owners = np.empty(len(likeness), np.int64)
    for row in turn:
        cluster = next(int(wish) for wish in wishes[row] if left[wish])
        left[cluster] -= 1
        owners[row] = cluster
    return owners
