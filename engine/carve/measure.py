"""What choosing fewer experts costs, measured on a text: the user should know before choosing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping

from engine.carve.record import Loss
from engine.convert.calibrate.collect import reading_config
from engine.convert.proof import compare_engines
from engine.engine import Engine


def measure(
    source: str | os.PathLike[str],
    carved: str | os.PathLike[str],
    texts: Mapping[str, str],
    top_ks: Iterable[int],
    *,
    n_shared: int,
    n_most: int = 3,
    progress: Callable[[float], None] | None = None,
) -> list[Loss]:
    """The loss for each of `top_ks`, on at most `n_most` passages of `texts`.

    progress(how many of `top_ks` are measured so far, the parts of one included) may raise to end the work.
    """
    losses = list[Loss]()
    with Engine.open(source, reading_config()) as dense:
        for top_k in top_ks:
            with Engine.open(carved, reading_config(top_k=top_k)) as engine:
                n_experts = engine.info.n_experts + n_shared
                report = None if progress is None else _partial(progress, len(losses))
                proof = compare_engines(dense, engine, texts, n_most=n_most, progress=report)
            share = (top_k + n_shared) / n_experts
            losses.append(
                Loss(
                    top_k,
                    share,
                    proof.perplexity,
                    proof.source_perplexity,
                    proof.divergence,
                    proof.top_agreement,
                )
            )
    return losses


def _partial(progress: Callable[[float], None], n_measured: int) -> Callable[[int, int], None]:
    return lambda done, n: progress(n_measured + done / n)
