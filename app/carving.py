"""Carving a dense model into experts as a job: split, measured for each number of experts, then kept or discarded."""

from __future__ import annotations

import json
import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from app.calibration import calibration_texts, sample_texts
from app.carving_request import PASSAGES, CarvingRequest, discard
from app.jobs import Job
from app.locks import FileLock
from app.target_errors import TargetError, check_folder, is_there, not_written
from engine.carve import Carving, Loss, check_dense, loss_keys, measure, observe, write_carved
from engine.carve.dense import Sizes
from engine.errors import FileInUseError
from engine.gguf import GGUFReader
from engine.gguf.amend import amend

logger = logging.getLogger(__name__)

READING, SPLITTING, MEASURING, WRITING = (
    "reading the text",
    "splitting the layers",
    "measuring the loss",
    "writing",
)
_SPARE_BYTES = 50 << 20
_MOST_MEASURED = 16
_MODEL, _LOSSES, _REQUEST, _LOCK = "model.gguf", "losses.json", "request.json", "lock"


@dataclass(frozen=True, slots=True)
class Trial:
    """A carved model that is measured, and lies beside its target until it is kept or discarded."""

    request: CarvingRequest
    path: Path
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class Carved:
    """What carving gives: the losses by number of experts, the number in the file, and the file unless it was tried."""

    losses: tuple[Loss, ...]
    top_k: int
    path: Path | None


def carve(
    job: Job,
    source: Path,
    target: Path,
    carving: Carving,
    *,
    text: Path | None = None,
    passages: int = PASSAGES,
    replace_file: bool = False,
    dry_run: bool = False,
) -> Carved:
    """Carve `source` and measure what fewer experts cost; without `dry_run` write it to `target`, whole or not at all.

    `text`: the user's own for calibration. Without `carving.top_k` the file says that all experts are chosen. Raises
    ColibriError before anything is written; JobCancelledError after a cancel, which leaves nothing behind.
    """
    request = CarvingRequest(
        str(source),
        str(target),
        carving.n_experts,
        carving.n_shared,
        carving.n_dense_layers,
        None if text is None else str(text),
        passages,
        carving.top_k,
    )
    chosen = carving.top_k or carving.n_routed
    if dry_run:
        with tempfile.TemporaryDirectory(prefix="carving-") as folder:
            trial = try_carving(job, replace(request, target=str(Path(folder) / target.name)))
            return Carved(trial.losses, chosen, None)
    trial = try_carving(job, request, replace_file=replace_file)
    return Carved(trial.losses, chosen, keep(job, trial, chosen, replace_file=replace_file))


def try_carving(job: Job, request: CarvingRequest, *, replace_file: bool = False) -> Trial:
    """Carve and measure, beside the target. What an earlier call had done when its process was killed is not repeated.

    Raises ColibriError before anything is written; JobCancelledError after a cancel; then nothing is left behind.
    """
    source, carving = Path(request.source), _carving(request)
    sizes = _check(request, carving, replace_file=replace_file)
    with _held(request):
        _forget_others(request)
        path = request.folder / _MODEL
        if not path.exists():
            _split(job, request, carving, sizes, path)
        losses = _known_losses(request)
        wanted = worth_measuring(request.n_routed, request.top_k)
        job.report(MEASURING, fraction=len(losses) / len(wanted))
        missing = [top_k for top_k in wanted if top_k not in losses]
        progress = _reporter(job, len(losses), len(wanted))
        for loss in measure(source, path, sample_texts(), missing, n_shared=request.n_shared, progress=progress):
            losses[loss.top_k] = loss
            job.say(f"{loss.top_k} experts: divergence {loss.divergence:.3g} nats, perplexity {loss.perplexity:.2f}")
            _write(request, _LOSSES, [asdict(loss) for loss in losses.values()])
        return Trial(request, path, tuple(losses[top_k] for top_k in wanted))


def keep(job: Job, trial: Trial, top_k: int, *, replace_file: bool = False) -> Path:
    """Move a trial to its target, with the table and the chosen number in the file. Raises TargetError."""
    request, target = trial.request, Path(trial.request.target)
    job.report(WRITING, done_bytes=0, total_bytes=trial.path.stat().st_size)
    if target.exists() and not replace_file:
        raise is_there(target)
    with GGUFReader.open(trial.path) as reader:
        architecture = str(reader.metadata["general.architecture"])
        name = request.name or str(reader.metadata["general.name"]).removesuffix(" (carved)")

    def progress(done_bytes: int) -> None:
        job.check()
        job.report(done_bytes=done_bytes)

    table = loss_keys(trial.losses, top_k)
    is_demonstration = any(loss.is_demonstration for loss in trial.losses if loss.top_k == top_k)
    label = f"{name}, carved (demonstration)" if is_demonstration else f"{name}, carved"
    try:
        amend(
            trial.path,
            {**table, f"{architecture}.expert_used_count": top_k, "general.name": label},
            progress=progress,
        )
        trial.path.replace(target)
    except OSError as error:
        raise not_written(target, error) from error
    discard(request)
    return target


def worth_measuring(n_routed: int, chosen: int | None = None) -> list[int]:
    """Every number of experts, the most first; of more than 16 as many, evenly, and the chosen one."""
    step = -(-n_routed // _MOST_MEASURED)
    return sorted({*range(n_routed, 0, -step), chosen or n_routed}, reverse=True)


def _split(job: Job, request: CarvingRequest, carving: Carving, sizes: Sizes, path: Path) -> None:
    job.report(READING, fraction=0.0)
    text = None if request.text is None else Path(request.text)
    inputs = observe(
        request.source, calibration_texts(text), n_most=request.passages, progress=lambda *at: _report(job, *at)
    )
    job.report(SPLITTING, fraction=0.0)
    chosen = replace(carving, top_k=carving.n_routed)
    try:
        write_carved(request.source, path, inputs, chosen, lambda done, _n: _report(job, done, sizes.n_layers))
    except OSError as error:
        raise not_written(path, error) from error


def _report(job: Job, done: float, n: int) -> None:
    job.check()
    job.report(fraction=done / n)


def _reporter(job: Job, n_before: int, n: int) -> Callable[[float], None]:
    return lambda done: _report(job, n_before + done, n)


def _carving(request: CarvingRequest) -> Carving:
    return Carving(request.n_experts, request.n_shared, request.n_dense_layers, request.top_k)


def _check(request: CarvingRequest, carving: Carving, *, replace_file: bool) -> Sizes:
    source, target = Path(request.source), Path(request.target)
    with GGUFReader.open(source) as reader:
        sizes = check_dense(reader)
        carving.check(sizes.n_feed_forward, sizes.n_layers)
        n_bytes = 2 * reader.file_bytes
    if target.exists() and not replace_file:
        raise is_there(target)
    folder = next(parent for parent in target.absolute().parents if parent.is_dir())
    check_folder(folder, 2 * n_bytes + _SPARE_BYTES)
    return sizes


@contextmanager
def _held(request: CarvingRequest) -> Iterator[None]:
    """Hold the trial's folder against other processes; after an error or a cancel take it away."""
    folder = request.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / _LOCK)
        is_free = lock.try_acquire()
    except OSError as error:
        raise TargetError(
            f"{folder.parent}: this folder cannot be written to ({error.strerror}). Choose another one."
        ) from error
    if not is_free:
        raise FileInUseError(f"{request.target}: another Colibri is carving this model now. Wait for it, or cancel it.")
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        lock.release()


def _identity(request: CarvingRequest) -> dict[str, Any]:
    """What a trial depends on."""
    status = Path(request.source).stat()
    values = {key: value for key, value in asdict(request).items() if key not in {"target", "top_k", "name"}}
    return {**values, "source_bytes": status.st_size, "source_modified_ns": status.st_mtime_ns}


def _forget_others(request: CarvingRequest) -> None:
    """What lies there of another carving is taken away."""
    if _read(request, _REQUEST) != _identity(request):
        for path in request.folder.iterdir():
            if path.name != _LOCK:
                path.unlink()
        _write(request, _REQUEST, _identity(request))


def _known_losses(request: CarvingRequest) -> dict[int, Loss]:
    try:
        losses = [Loss(**values) for values in _read(request, _LOSSES) or []]
    except TypeError as error:
        logger.warning("the losses in %s are measured again: %s", request.folder, error)
        return {}
    return {loss.top_k: loss for loss in losses}


def _read(request: CarvingRequest, name: str) -> Any:
    try:
        return json.loads((request.folder / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _write(request: CarvingRequest, name: str, values: Any) -> None:
    path = request.folder / name
    temporary = path.with_name(f"{name}.part")
    temporary.write_text(json.dumps(values), encoding="utf-8")
    temporary.replace(path)
