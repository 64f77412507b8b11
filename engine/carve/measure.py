"""What choosing fewer experts costs, measured on a text: the user should know before choosing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping

from engine.carve.record import Loss
from engine.convert.calibrate.collect import reading_config
from engine.convert.proof import compare_engines
from engine.engine import Engine, Evaluation

_KEPT_BYTES = 512 << 20  # of the dense model's logits, which are the same beside every number of experts


def measure(
    source: str | os.PathLike[str],
    carved: str | os.PathLike[str],
    texts: Mapping[str, str],
    top_ks: Iterable[int],
    *,
    n_shared: int,
    n_most: int = 3,
    progress: Callable[[float], None] | None = None,
) -> Iterator[Loss]:
    """The loss for each of `top_ks`, one after the other, on at most `n_most` passages of `texts`.

    progress(how many of `top_ks` are measured so far, the parts of one included) may raise to end the work.
    """
    with Engine.open(source, reading_config()) as dense:
        known = _Known(dense)
        for n_measured, top_k in enumerate(top_ks):
            with Engine.open(carved, reading_config(top_k=top_k)) as engine:
                n_experts = engine.info.n_experts + n_shared
                report = None if progress is None else _partial(progress, n_measured)
                proof = compare_engines(
                    dense, engine, texts, n_most=n_most, read_source=known.evaluation, progress=report
                )
            yield Loss(
                top_k,
                (top_k + n_shared) / n_experts,
                proof.perplexity,
                proof.source_perplexity,
                proof.divergence,
                proof.top_agreement,
            )


class _Known:
    """What a model gives for passages, kept as far as it takes little memory."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: dict[tuple[int, ...], Evaluation] = {}
        self._n_bytes = 0

    def evaluation(self, ids: list[int]) -> Evaluation:
        passage = tuple(ids)
        if passage in self._kept:
            return self._kept[passage]
        found = self._engine.evaluate(ids)
        if self._n_bytes + found.logits.nbytes <= _KEPT_BYTES:
            self._kept[passage] = found
            self._n_bytes += found.logits.nbytes
        return found


def _partial(progress: Callable[[float], None], n_measured: int) -> Callable[[int, int], None]:
    return lambda done, n: progress(n_measured + done / n)
