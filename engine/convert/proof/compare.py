"""Compares a model with its source on a text: distributions of the next token, perplexities, routes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.convert.calibrate.collect import expert_cache, reading_config
from engine.convert.calibrate.likelihood import log_probabilities, of_tokens
from engine.convert.calibrate.passages import PASSAGE_TOKENS, passages
from engine.convert.proof.record import Proof
from engine.engine import Engine
from engine.errors import ModelFormatError

Array = npt.NDArray[Any]
Progress = Callable[[int, int], None]

_PASSAGES = 6
_ROWS_AT_ONCE = 64  # of logits, in float64


def compare(
    source: str | os.PathLike[str],
    model: str | os.PathLike[str],
    texts: Mapping[str, str],
    *,
    n_most: int = _PASSAGES,
    passage_tokens: int = PASSAGE_TOKENS,
    top_k: int | None = None,
    progress: Progress | None = None,
) -> Proof:
    """Run both GGUF models over at most `n_most` passages of `texts`.

    Both are open at once, and read a passage at a time, layer by layer; experts that do not fit into memory are read
    from the files again for each passage. `top_k`: of `model`, instead of its own. Raises ModelFormatError if the
    vocabularies differ, and what Engine.open raises.
    """
    with (
        Engine.open(source, reading_config(passage_tokens, expert_cache_bytes=expert_cache(source, 2))) as first,
        Engine.open(
            model, reading_config(passage_tokens, expert_cache_bytes=expert_cache(model, 2), top_k=top_k)
        ) as second,
    ):
        return compare_engines(first, second, texts, n_most=n_most, passage_tokens=passage_tokens, progress=progress)


def compare_engines(
    source: Engine,
    model: Engine,
    texts: Mapping[str, str],
    *,
    n_most: int = _PASSAGES,
    passage_tokens: int = PASSAGE_TOKENS,
    progress: Progress | None = None,
) -> Proof:
    """`compare` for models that are open, with `reading_config`."""
    if source.info.n_vocab != model.info.n_vocab:
        raise ModelFormatError(
            f"{source.info.path.name} has {source.info.n_vocab:,} tokens, {model.info.path.name} has "
            f"{model.info.n_vocab:,}: they are no two files of one model."
        )
    passage_tokens = min(passage_tokens, source.config.context_length - 1, model.config.context_length - 1)
    chosen = passages(source.tokenizer, texts, n_tokens=passage_tokens, n_most=n_most)
    divergences, agreements, routes = list[Array](), list[Array](), list[Array]()
    likelihoods: tuple[list[Array], list[Array]] = ([], [])
    for done, ids in enumerate(chosen, 1):
        expected, found = source.evaluate(ids), model.evaluate(ids)
        p, q = log_probabilities(expected.logits), log_probabilities(found.logits)
        divergences.append(_divergence(p, q))
        agreements.append(p.argmax(-1) == q.argmax(-1))
        for kept, log_p in zip(likelihoods, (p, q), strict=True):
            kept.append(of_tokens(log_p, ids))
        if expected.experts.shape == found.experts.shape and expected.experts.size:
            routes.append(_shared_choices(expected.experts, found.experts))
        if progress:
            progress(done, len(chosen))
    divergence = np.concatenate(divergences)
    source_perplexity, perplexity = (float(np.exp(-np.concatenate(kept).mean())) for kept in likelihoods)
    return Proof(
        source=source.info.path.name,
        text=", ".join(texts),
        n_tokens=len(divergence),
        source_perplexity=source_perplexity,
        perplexity=perplexity,
        divergence=max(float(divergence.mean()), 0.0),
        divergence_99=max(float(np.quantile(divergence, 0.99)), 0.0),
        top_agreement=float(np.concatenate(agreements).mean()),
        route_agreement=tuple(np.concatenate(routes, 1).mean(1).tolist()) if routes else (),
    )


def _divergence(p: Array, q: Array) -> Array:
    """KL(p || q) of each row of log probabilities (n, n_vocab): (n,) float64."""
    rows = []
    for first in range(0, len(p), _ROWS_AT_ONCE):
        mine, other = (x[first : first + _ROWS_AT_ONCE].astype(np.float64) for x in (p, q))
        rows.append((np.exp(mine) * (mine - other)).sum(-1))
    return np.concatenate(rows)


def _shared_choices(expected: Array, found: Array) -> Array:
    """For experts (n_layers, n_tokens, top_k): the share of the choices that are common, (n_layers, n_tokens)."""
    common = (expected[..., :, None] == found[..., None, :]).any(-1)
    return np.asarray(common.mean(-1))
