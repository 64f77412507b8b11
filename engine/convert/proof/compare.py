"""Compares a model with its source on a text: distributions of the next token, perplexities, routes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.convert.calibrate.collect import Counter, passages_for, reading_config
from engine.convert.calibrate.passages import PASSAGE_TOKENS, passages
from engine.convert.likelihood import log_probabilities
from engine.convert.proof.figures import Figures
from engine.convert.proof.record import Proof
from engine.convert.streaming import LayerSource, Reading, layer_source
from engine.convert.streaming.layers import BUDGET_BYTES
from engine.engine import Engine, Evaluation
from engine.errors import ModelFormatError

Array = npt.NDArray[Any]
Progress = Callable[[int, int], None]

_PASSAGES = 6
_ROWS_AT_ONCE = 64  # of logits, in float64


def compare(
    source: str | os.PathLike[str] | LayerSource,
    model: str | os.PathLike[str] | LayerSource,
    texts: Mapping[str, str],
    *,
    n_most: int = _PASSAGES,
    passage_tokens: int = PASSAGE_TOKENS,
    top_k: int | None = None,
    budget_bytes: int = BUDGET_BYTES,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Proof:
    """Read at most `n_most` passages of `texts` with both models, which are GGUF files or a conversion's layers.

    In memory are layers of one of them, of at most `budget_bytes` or one layer, and as much of logits; what is between
    layers is in files in `folder`. `top_k`: of `model`, instead of its own. Raises ModelFormatError if the
    vocabularies differ, and what Engine.open raises.
    """
    first, second = layer_source(source), layer_source(model)
    check_vocabularies(first.name, first.n_vocab, second.name, second.n_vocab)
    passage_tokens = min(passage_tokens, second.training_context - 1)
    chosen, passage_tokens = passages_for(first, texts, passage_tokens, n_most)
    with (
        Reading(first, chosen, reading_config(passage_tokens), folder=folder, budget_bytes=budget_bytes) as expected,
        Reading(
            second, chosen, reading_config(passage_tokens, top_k=top_k), folder=folder, budget_bytes=budget_bytes
        ) as found,
    ):
        counter = Counter(expected.n_steps + found.n_steps + len(chosen), progress)
        expected.run(counter.one_more)
        found.run(counter.one_more)
        figures = Figures()
        for group in _groups(chosen, 4 * first.n_vocab, budget_bytes):
            with expected.output() as output:
                distributions = [np.concatenate(list(output.log_probabilities(index))) for index in group]
            with found.output() as output:
                for index, p in zip(group, distributions, strict=True):
                    figures.add(chosen[index], p, output.log_probabilities(index))
                    counter.one_more()
        for before, after in zip(expected.experts, found.experts, strict=True):
            figures.add_routes(before, after)
    return figures.proof(first.name, texts)


def compare_engines(
    source: Engine,
    model: Engine,
    texts: Mapping[str, str],
    *,
    n_most: int = _PASSAGES,
    passage_tokens: int = PASSAGE_TOKENS,
    read_source: Callable[[list[int]], Evaluation] | None = None,
    progress: Progress | None = None,
) -> Proof:
    """`compare` for models that are open whole, with `reading_config`.

    `read_source`: what `source` gives for a passage, from somebody who knows it already; None: it reads it now.
    """
    check_vocabularies(source.info.path.name, source.info.n_vocab, model.info.path.name, model.info.n_vocab)
    passage_tokens = min(passage_tokens, source.config.context_length - 1, model.config.context_length - 1)
    chosen = passages(source.tokenizer, texts, n_tokens=passage_tokens, n_most=n_most)
    figures, read_source = Figures(), read_source or source.evaluate
    for done, ids in enumerate(chosen, 1):
        expected, found = read_source(ids), model.evaluate(ids)
        figures.add(ids, log_probabilities(expected.logits), _blocks(log_probabilities(found.logits)))
        figures.add_routes(expected.experts, found.experts)
        if progress:
            progress(done, len(chosen))
    return figures.proof(source.info.path.name, texts)


def check_vocabularies(source: str, n_source: int, model: str, n_model: int) -> None:
    """Raise ModelFormatError if two models have vocabularies of different sizes."""
    if n_source != n_model:
        raise ModelFormatError(
            f"{source} has {n_source:,} tokens, {model} has {n_model:,}: they are no two files of one model."
        )


def _groups(chosen: Sequence[Sequence[int]], row_bytes: int, most_bytes: int) -> Iterator[list[int]]:
    """Passages whose logits fit into `most_bytes` together; at least one of them."""
    group, n_bytes = list[int](), 0
    for index, ids in enumerate(chosen):
        if group and n_bytes + len(ids) * row_bytes > most_bytes:
            yield group
            group, n_bytes = [], 0
        group.append(index)
        n_bytes += len(ids) * row_bytes
    yield group


def _blocks(rows: Array) -> Iterator[Array]:
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        yield rows[first : first + _ROWS_AT_ONCE]
