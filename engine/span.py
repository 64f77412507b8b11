"""Some layers of a model, run by themselves: so a model that is larger than the memory can be read layer by layer."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from engine.config import EngineConfig, ModelInfo
from engine.kernels.library import load_library
from engine.kernels.tiers import choose_tier
from engine.memory import MemoryPlan
from engine.model import Model
from engine.models.observed import InputSums
from engine.passage import read_passage

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class SpanResult:
    """hidden (n_tokens, n_embedding) float32 for the next layer; experts as those of `Evaluation`, of these layers."""

    hidden: Array
    experts: Array


class Span:
    """The layers `first` to `last` (not included) of the model at `path`; (n_layers, n_layers) is its output alone.

    One text after another is read from its start. Only these layers' weights are in memory. What comes out is the same,
    bit for bit, as inside of the whole model.
    """

    def __init__(self, path: str | os.PathLike[str], layers: tuple[int, int], config: EngineConfig) -> None:
        """Raises as `Engine.open` does."""
        self._model = Model(Path(path), replace(config, layers=layers), load_library(choose_tier(config.tier)))
        self._first, self._n_steps = layers[0], 0

    @property
    def info(self) -> ModelInfo:
        return self._model.info

    @property
    def memory(self) -> MemoryPlan:
        return self._model.memory_plan()

    def run(self, ids: list[int], hidden: Array | None = None) -> SpanResult:
        """hidden (n_tokens, n_embedding) float32: what the layer before gave for `ids`; layer 0 needs none."""
        model, outputs, routes = self._model, list[Array](), list[Array]()
        for first, last in self._read(ids, hidden, model.config.max_batch_tokens):
            outputs.append(model.residual_rows(last - first).copy())
            routes.append(model.routes(last - first)[0])
        return SpanResult(np.concatenate(outputs), np.concatenate(routes, 1))

    def logits(self, ids: list[int], hidden: Array) -> Any:
        """For the output: yields (rows, n_vocab) float32 of `ids` in order, as many at a time as are made at once."""
        model = self._model
        step = min(model.config.max_batch_tokens, model.batch.max_outputs)
        for first, last in self._read(ids, hidden, step):
            yield model.logits_rows(last - first)

    def input_sums(self) -> dict[str, InputSums]:
        """As `Engine.input_sums`, for these layers."""
        return self._model.observed.sums()

    def close(self) -> None:
        """Give all memory back."""
        self._model.close()

    def __enter__(self) -> Span:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, ids: list[int], hidden: Array | None, step: int) -> Any:
        def fill(first: int, last: int) -> None:
            if hidden is not None:
                self._model.residual_rows(last - first)[:] = hidden[first:last]

        return read_passage(self._model, ids, step, self._begin, fill)

    def _begin(self) -> None:
        self._n_steps += 1
        self._model.batch.begin(self._n_steps)
