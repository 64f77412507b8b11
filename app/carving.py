"""Carving a dense model into experts as a job: observed, split, measured for each number of experts, then written."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from app.calibration import calibration_texts, sample_texts
from app.jobs import Job
from engine.carve import Carving, Loss, check_dense, measure, observe, write_carved
from engine.carve.dense import Sizes
from engine.carve.measure import loss_keys
from engine.errors import ColibriError
from engine.gguf import GGUFReader
from engine.gguf.amend import amend

_SPARE_BYTES = 50 << 20


class CarvingError(ColibriError):
    """A model that cannot be written where it should."""


@dataclass(frozen=True, slots=True)
class Carved:
    """What carving gives: the losses by number of experts, the number in the file, and the file unless it was tried."""

    losses: list[Loss]
    top_k: int
    path: Path | None


def carve(
    job: Job,
    source: Path,
    target: Path,
    carving: Carving,
    *,
    text: Path | None = None,
    passages: int = 12,
    replace_file: bool = False,
    dry_run: bool = False,
) -> Carved:
    """Carve `source` and measure what fewer experts cost; without `dry_run` write it to `target`, whole or not at all.

    `text`: the user's own for calibration. Without `carving.top_k` the file says that all experts are chosen. Raises
    ColibriError before anything is written; JobCancelledError after a cancel, which leaves nothing behind.
    """
    sizes = _check(source, target, carving, replace_file=replace_file or dry_run)
    chosen = carving.top_k or carving.n_routed
    top_ks = _worth_measuring(carving.n_routed, chosen)
    job.report("reading the text", fraction=0.0)
    inputs = observe(source, calibration_texts(text), n_most=passages, progress=_reporter(job))
    folder = None if dry_run else target.absolute().parent
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".carving-", dir=folder) as place:
        path = Path(place) / target.name
        job.report(f"splitting {sizes.n_layers} layers", fraction=0.0)
        write_carved(source, path, inputs, replace(carving, top_k=chosen), _reporter(job))
        job.report("measuring the loss", fraction=0.0)
        losses = measure(
            source,
            path,
            sample_texts(),
            top_ks,
            n_shared=carving.n_shared,
            progress=lambda done: _reporter(job)(done, len(top_ks)),
        )
        if dry_run:
            return Carved(losses, chosen, None)
        job.report("writing")
        amend(path, loss_keys(losses, chosen), progress=lambda _done_bytes: job.check())
        path.replace(target)
    return Carved(losses, chosen, target)


def _reporter(job: Job) -> Callable[[int, int], None]:
    def report(done: int, n: int) -> None:
        job.check()
        job.report(fraction=done / n)

    return report


def _worth_measuring(n_routed: int, chosen: int) -> list[int]:
    """All experts, some fewer, down to half of them; and the chosen number."""
    return sorted({n_routed, n_routed - 1, chosen, *range(n_routed, n_routed // 2 - 1, -2)} - {0}, reverse=True)


def _check(source: Path, target: Path, carving: Carving, *, replace_file: bool) -> Sizes:
    with GGUFReader.open(source) as reader:
        sizes = check_dense(reader)
        carving.check(sizes.n_feed_forward, sizes.n_layers)
        n_bytes = 2 * reader.file_bytes
    if target.exists() and not replace_file:
        raise CarvingError(f"{target}: the file is there already. Choose another name, or say --replace.")
    folder = next(parent for parent in target.absolute().parents if parent.is_dir())
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < 2 * n_bytes + _SPARE_BYTES:
        raise CarvingError(
            f"{folder}: expected {(2 * n_bytes + _SPARE_BYTES) / 1e9:.2f} GB of free disk, found "
            f"{free_bytes / 1e9:.2f}. Free some, or choose a folder on another disk."
        )
    return sizes
