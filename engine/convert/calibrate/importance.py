"""How much each input of a matrix weighs in what the matrix gives: its mean square on a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from engine.errors import ModelFormatError

Floats = npt.NDArray[np.float32]

_PRIOR_INPUTS = 32.0  # a matrix that saw so many inputs is believed as much as the mean of its layer
_LEAST_SHARE = 1e-4  # of the mean: an input that was never met may still come
_LONE_EXPERT = re.compile(r"^(blk\.\d+\.ffn_(?:gate|up|down))\.\d+\.weight$")


@dataclass(frozen=True, slots=True)
class TensorInputs:
    """`sums` (n_matrices, n_inputs) float32 of the squares of `counts` (n_matrices,) float32 inputs.

    Older files do not say where one expert's inputs end; then there is one row of all of them.
    """

    sums: Floats
    counts: Floats


@dataclass(frozen=True, slots=True)
class ImportanceMatrix:
    """What calibration has measured, by tensor. `datasets`: names of the texts; `n_chunks` of `chunk_tokens` tokens."""

    tensors: Mapping[str, TensorInputs]
    datasets: tuple[str, ...] = ()
    n_chunks: int = 0
    chunk_tokens: int = 0
    perplexity: float | None = field(default=None, compare=False)

    def of(self, tensor: str, n_inputs: int) -> Floats | None:
        """Weights of the inputs of `tensor`, (n_matrices, n_inputs) float32, all above 0; None if it was not measured.

        Each expert's mean squares are drawn towards the mean of its layer, the more the fewer inputs it has had: an
        expert that was never chosen gets the layer's. Raises ModelFormatError if the tensor has other inputs.
        """
        found = self.tensors.get(tensor) or self.tensors.get(_LONE_EXPERT.sub(r"\1_exps.weight", tensor))
        if found is None:
            return None
        if found.sums.size % n_inputs or found.sums.shape[1] % n_inputs:
            raise ModelFormatError(
                f"The importance matrix has {found.sums.shape[1]:,} inputs for {tensor}, which has {n_inputs:,}. "
                "It was made for another model: calibrate with this one."
            )
        sums = found.sums.reshape(-1, n_inputs).astype(np.float64)
        counts = np.repeat(found.counts.astype(np.float64), len(sums) // len(found.counts))
        total = counts.sum()
        if total <= 0 or not np.isfinite(sums).all() or not np.isfinite(counts).all() or sums.min() < 0:
            return None
        layer = sums.sum(0) / total
        means = (sums + _PRIOR_INPUTS * layer) / (counts[:, None] + _PRIOR_INPUTS)
        floor = _LEAST_SHARE * means.mean(1, keepdims=True)
        if not (floor > 0).all():
            return None
        return np.asarray(np.maximum(means, floor), np.float32)

    def rare(self, n_least: int = 32) -> dict[str, int]:
        """How many experts of each tensor of experts had fewer than `n_least` inputs, where there are any."""
        few = {name: int((found.counts < n_least).sum()) for name, found in self.tensors.items()}
        return {name: n for name, n in few.items() if n}
