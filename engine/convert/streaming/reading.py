"""Passages of text on their way through a model, layer by layer; what is between two layers waits on the disk."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from engine.config import EngineConfig
from engine.convert.likelihood import log_probabilities
from engine.convert.streaming.layers import BUDGET_BYTES, LayerSource
from engine.errors import OutOfMemoryPlanError
from engine.models.observed import InputSums
from engine.span import Span

Array = npt.NDArray[Any]

_OUTPUT_ROWS = 64  # of logits at once
_EXPERTS_SHARE = 0.5  # of the memory that is available, where the experts of one layer do not fit


class Reading:
    """A context manager: reads `passages` (token ids) with the model of `source`.

    `run` takes them through all layers, then `output` gives logits. `experts` (n_moe_layers, n_tokens, top_k) is known
    then of each passage, and with `config.measures_inputs` `input_sums` of all tensors.
    """

    def __init__(
        self,
        source: LayerSource,
        passages: Sequence[list[int]],
        config: EngineConfig,
        *,
        folder: Path | None = None,
        budget_bytes: int = BUDGET_BYTES,
    ) -> None:
        """config: see `reading_config`. folder: for what is kept on the disk; None: the system's for such files.

        Entering raises OutOfMemoryPlanError where no single layer fits into the free memory.
        """
        self._source, self._passages, self._folder = source, passages, folder
        self._config = replace(config, logits_rows=_OUTPUT_ROWS)
        self._spans = source.spans(budget_bytes)
        self.experts: list[Array] = []
        self.input_sums: dict[str, InputSums] = {}

    @property
    def n_steps(self) -> int:
        """How often `run` tells that it got on."""
        return len(self._spans) * len(self._passages)

    def __enter__(self) -> Reading:
        self._source.refuse_too_little(psutil.virtual_memory().available)
        self._file = tempfile.TemporaryFile(dir=self._folder, prefix=".hidden-")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def run(self, told: Callable[[], None] | None = None) -> None:
        """Take all passages through all layers. told() is called after each passage in each group of layers."""
        routes: list[list[Array]] = [[] for _ in self._passages]
        for layers in self._spans:
            with self._open(layers) as span:
                for index, ids in enumerate(self._passages):
                    result = span.run(ids, None if layers[0] == 0 else self._hidden(index))
                    self._keep(index, result.hidden)
                    routes[index].append(result.experts)
                    if told is not None:
                        told()
        self.experts = [np.concatenate(found) for found in routes]

    @contextmanager
    def output(self) -> Iterator[Output]:
        """The logits of passages that have been read."""
        n_layers = self._source.n_layers
        with self._open((n_layers, n_layers)) as span:
            yield Output(span, self._passages, self._hidden)

    @contextmanager
    def _open(self, layers: tuple[int, int]) -> Iterator[Span]:
        with self._source.opened(layers) as path, _opened(path, layers, self._config) as span:
            self._n_embedding = span.info.n_embedding
            yield span
            self.input_sums |= span.input_sums()

    def _offset(self, index: int) -> int:
        return 4 * self._n_embedding * sum(len(ids) for ids in self._passages[:index])

    def _keep(self, index: int, hidden: Array) -> None:
        self._file.seek(self._offset(index))
        self._file.write(np.ascontiguousarray(hidden, np.float32).data)

    def _hidden(self, index: int) -> Array:
        shape = (len(self._passages[index]), self._n_embedding)
        self._file.seek(self._offset(index))
        return np.frombuffer(self._file.read(4 * shape[0] * shape[1]), np.float32).reshape(shape)


class Output:
    """A model's output layer, open."""

    def __init__(self, span: Span, passages: Sequence[list[int]], hidden: Callable[[int], Array]) -> None:
        """Use `Reading.output`."""
        self._span, self._passages, self._hidden = span, passages, hidden
        self.n_vocab = span.info.n_vocab

    def log_probabilities(self, index: int) -> Iterator[Array]:
        """Of every token after each position of passage `index`: (rows, n_vocab) float32, in order."""
        for logits in self._span.logits(self._passages[index], self._hidden(index)):
            yield log_probabilities(logits)


def _opened(path: Path, layers: tuple[int, int], config: EngineConfig) -> Span:
    """With as many experts in memory as there is room for, where those of the layers do not all fit."""
    try:
        return Span(path, layers, config)
    except OutOfMemoryPlanError:
        room = int(psutil.virtual_memory().available * _EXPERTS_SHARE)
        return Span(path, layers, replace(config, expert_cache_bytes=room))
