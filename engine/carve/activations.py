"""What the feed-forward networks of a dense model get to see on a text."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from engine.convert.calibrate.collect import reading_config
from engine.convert.calibrate.passages import PASSAGE_TOKENS, passages
from engine.engine import Engine

Floats = npt.NDArray[np.float32]
Progress = Callable[[int, int], None]

_GATE = "ffn_gate.weight"


def observe(
    path: str | os.PathLike[str], texts: Mapping[str, str], *, n_most: int = 16, progress: Progress | None = None
) -> list[npt.NDArray[np.float16]]:
    """The normalised inputs of each layer's network, (n_tokens, n_embedding) float16, for at most `n_most` passages."""
    kept: dict[str, list[npt.NDArray[np.float16]]] = {}
    with Engine.open(path, reading_config(keeps_inputs=_GATE)) as engine:
        n_tokens = min(PASSAGE_TOKENS, engine.config.context_length - 1)
        chosen = passages(engine.tokenizer, texts, n_tokens=n_tokens, n_most=n_most)
        for done, ids in enumerate(chosen, 1):
            engine.evaluate(ids)
            for name, inputs in engine.kept_inputs(len(ids)).items():
                kept.setdefault(name, []).append(inputs.astype(np.float16))
            if progress:
                progress(done, len(chosen))
    return [np.concatenate(kept[f"blk.{layer}.{_GATE}"]) for layer in range(len(kept))]
