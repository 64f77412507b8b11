"""Measures the importance of inputs: a float model reads a text, and squares of what meets each matrix are summed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import psutil

from engine.config import EngineConfig
from engine.convert.calibrate.importance import ImportanceMatrix, TensorInputs
from engine.convert.calibrate.likelihood import log_likelihoods
from engine.convert.calibrate.passages import PASSAGE_TOKENS, passages
from engine.engine import Engine
from engine.gguf import GGUFReader

Progress = Callable[[int, int], None]

_EXPERTS_SHARE = 0.5  # of the memory that is available
_LONE = re.compile(r"\.ffn_(?:gate|up|down)\.\d+\.weight$")  # an expert in a tensor of its own


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


def expert_cache(path: str | os.PathLike[str], n_models: int = 1) -> int | None:
    """Bytes of experts that may be in memory for one of `n_models` models; None where all fit well."""
    with GGUFReader.open(path) as reader:
        n_bytes = sum(t.n_bytes for t in reader.tensors.values() if len(t.shape) == 3 or _LONE.search(t.name))
    room = int(psutil.virtual_memory().available * _EXPERTS_SHARE) // n_models
    return None if n_bytes <= room else room


def calibrate(
    path: str | os.PathLike[str],
    texts: Mapping[str, str],
    *,
    n_most: int | None = None,
    passage_tokens: int = PASSAGE_TOKENS,
    expert_cache_bytes: int | None = None,
    progress: Progress | None = None,
) -> ImportanceMatrix:
    """Read `texts` (name -> text) with the GGUF model at `path`, best one of F32, F16, BF16 or Q8_0.

    At most `n_most` passages. `expert_cache_bytes`: for experts in memory; None: as much as there is room for.
    `progress(done, all)` is told after each passage, and may raise to end the work. Raises
    what Engine.open raises, and InvalidRequestError for too little text.
    """
    config = reading_config(
        passage_tokens, expert_cache_bytes=expert_cache_bytes or expert_cache(path), measures_inputs=True
    )
    with Engine.open(path, config) as engine:
        passage_tokens = min(passage_tokens, engine.config.context_length - 1)
        chosen = passages(engine.tokenizer, texts, n_tokens=passage_tokens, n_most=n_most)
        likelihoods = []
        for done, ids in enumerate(chosen, 1):
            likelihoods.append(log_likelihoods(engine.logits(ids), ids))
            if progress:
                progress(done, len(chosen))
        tensors = {
            name: TensorInputs(inputs.sums, inputs.counts.astype(np.float32))
            for name, inputs in engine.input_sums().items()
        }
    perplexity = float(np.exp(-np.concatenate(likelihoods).mean()))
    return ImportanceMatrix(tensors, tuple(texts), len(chosen), passage_tokens, perplexity)
