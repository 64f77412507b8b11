"""Comparing a converted model with its source as a job, and keeping the figures in the model's file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from app.calibration import sample_texts
from app.jobs import Job
from engine.convert.proof import Proof, compare, store
from engine.convert.streaming import open_layers
from engine.errors import ColibriError

_SPARE_BYTES = 50 << 20


class ProofError(ColibriError):
    """Figures that cannot be written into the model's file."""


def prove(
    job: Job,
    source: Path,
    model: Path,
    text: Path | None = None,
    *,
    texts: Mapping[str, str] | None = None,
    passages: int = 6,
    top_k: int | None = None,
    keep: bool = True,
) -> Proof:
    """Compare the GGUF file `model` with `source`, a GGUF file or checkpoint; with `keep` write the figures into it.

    text: the user's own; or `texts` (name -> text). Neither model has to fit into memory. Writing needs the model's
    size of free disk for a moment. Raises ColibriError; JobCancelledError after a cancel, which changes nothing.
    """
    if keep:
        _check_place(model)
    job.report("comparing with the source", fraction=0.0)

    def progress(done: int, n: int) -> None:
        job.check()
        job.report(fraction=done / n)

    texts, folder = sample_texts(text) if texts is None else texts, model.absolute().parent
    folder = folder if os.access(folder, os.W_OK | os.X_OK) else Path(tempfile.gettempdir())
    try:
        with open_layers(source, folder) as layers:
            proof = compare(layers, model, texts, n_most=passages, top_k=top_k, folder=folder, progress=progress)
    except OSError as error:
        raise ProofError(
            f"{folder}: what is between two layers could not be kept there: {error.strerror}. Free some space."
        ) from error
    if keep:
        job.report("writing the figures", done_bytes=0, total_bytes=model.stat().st_size)

        def written(done_bytes: int) -> None:
            job.check()
            job.report(done_bytes=done_bytes)

        try:
            store(proof, model, written)
        except OSError as error:
            raise ProofError(f"{model}: the figures could not be written: {error.strerror}.") from error
    return proof


def _check_place(model: Path) -> None:
    folder = model.absolute().parent
    if not model.is_file():
        raise ProofError(f"{model}: expected a model file, found none. Check the path.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ProofError(f"{folder}: this folder cannot be written to; --no-store only shows the figures.")
    needed, free = model.stat().st_size + _SPARE_BYTES, shutil.disk_usage(folder).free
    if free < needed:
        raise ProofError(
            f"{folder}: expected {needed / 1e9:.2f} GB of free disk to write the figures, found {free / 1e9:.2f}. "
            "Free some, or say --no-store."
        )
