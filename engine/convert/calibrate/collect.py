"""Measures the importance of inputs: a float model reads a text, and squares of what meets each matrix are summed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from engine.config import EngineConfig
from engine.convert.calibrate.importance import ImportanceMatrix, TensorInputs
from engine.convert.calibrate.passages import PASSAGE_TOKENS, passages
from engine.convert.likelihood import of_tokens
from engine.convert.streaming import LayerSource, Reading, layer_source
from engine.convert.streaming.layers import BUDGET_BYTES
from engine.kernels.library import load_library
from engine.kernels.tiers import choose_tier
from engine.tokenizer import Tokenizer

Progress = Callable[[int, int], None]


def reading_config(n_tokens: int = PASSAGE_TOKENS, **changes: Any) -> EngineConfig:
    """How a model is opened to read passages of `n_tokens`, all of them with logits.

    A step takes a whole passage, layer by layer, so experts that do not fit are read from the file once a passage.
    `changes`: further settings of EngineConfig.
    """
    return EngineConfig(
        context_length=max(n_tokens + 1, 32),
        max_batch_tokens=n_tokens,
        logits_rows=n_tokens,
        max_sequences=1,
        kv_type="f32",
        **changes,
    )


def passages_for(
    source: LayerSource, texts: Mapping[str, str], passage_tokens: int, n_most: int | None
) -> tuple[list[list[int]], int]:
    """`texts` in the model's tokens, and how many of them a passage has: no more than its context takes.

    Raises InvalidRequestError for too little text, TokenizerError.
    """
    passage_tokens = min(passage_tokens, source.training_context - 1)
    tokenizer = Tokenizer.from_metadata(source.metadata, load_library(choose_tier()))
    return passages(tokenizer, texts, n_tokens=passage_tokens, n_most=n_most), passage_tokens


def calibrate(
    source: str | os.PathLike[str] | LayerSource,
    texts: Mapping[str, str],
    *,
    n_most: int | None = None,
    passage_tokens: int = PASSAGE_TOKENS,
    expert_cache_bytes: int | None = None,
    budget_bytes: int = BUDGET_BYTES,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> ImportanceMatrix:
    """Read `texts` (name -> text) with the GGUF model at `source`, best one of F32, F16, BF16 or Q8_0, or its layers.

    At most `n_most` passages. In memory are layers of at most `budget_bytes`, or one, and with `expert_cache_bytes` not
    more of experts; what is between layers is in a file in `folder`. `progress(done, all)` may raise to end the work.
    Raises what Engine.open raises, and InvalidRequestError for too little text.
    """
    layers = layer_source(source)
    chosen, passage_tokens = passages_for(layers, texts, passage_tokens, n_most)
    config = reading_config(passage_tokens, expert_cache_bytes=expert_cache_bytes, measures_inputs=True)
    with Reading(layers, chosen, config, folder=folder, budget_bytes=budget_bytes) as reading:
        counter = Counter(reading.n_steps + len(chosen), progress)
        reading.run(counter.one_more)
        likelihoods = list[Any]()
        with reading.output() as output:
            for index, ids in enumerate(chosen):
                rows = 0
                for log_p in output.log_probabilities(index):
                    likelihoods.append(of_tokens(log_p, ids[rows : rows + len(log_p) + 1]))
                    rows += len(log_p)
                counter.one_more()
        tensors = {
            name: TensorInputs(inputs.sums, inputs.counts.astype(np.float32))
            for name, inputs in reading.input_sums.items()
        }
    perplexity = float(np.exp(-np.concatenate(likelihoods).mean()))
    return ImportanceMatrix(tensors, tuple(texts), len(chosen), passage_tokens, perplexity)


class Counter:
    """Tells `progress(done, all)` each time that one more of `n` is done."""

    def __init__(self, n: int, progress: Progress | None) -> None:
        self._n, self._progress, self._done = n, progress, 0

    def one_more(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._n)
