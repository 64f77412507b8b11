"""Texts for calibration and comparison, and measuring a model's importance matrix as a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from app.jobs import Job
from engine.convert import ConversionOptions
from engine.convert.calibrate import ImportanceMatrix, calibrate, write_importance
from engine.convert.streaming import open_layers
from engine.errors import ColibriError
from engine.gguf.header import MAGIC

TEXTS = Path(__file__).resolve().parent.parent / "resources" / "calibration"
_CALIBRATION = ("english", "chinese", "code", "conversations")
_SAMPLE = "sample"
_MOST_TEXT_BYTES = 64 << 20
_START_BYTES = 4096  # by which a text is told from numbers


class CalibrationError(ColibriError):
    """A calibration text that cannot be used, or a file that is in the way."""


def calibration_texts(file: Path | None = None) -> dict[str, str]:
    """Name -> text: those that come with Colibri, or the user's own `file`. Raises CalibrationError."""
    return {path.stem: _read(path) for path in ([file] if file else [TEXTS / f"{name}.txt" for name in _CALIBRATION])}


def sample_texts(file: Path | None = None) -> dict[str, str]:
    """Name -> text that calibration has not seen, to compare models on; or the user's own `file`."""
    path = file or TEXTS / f"{_SAMPLE}.txt"
    return {path.stem: _read(path)}


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_TEXT_BYTES:
            raise CalibrationError(f"{path}: expected a text of up to 64 MB. Give a part of it; 100 kB are enough.")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CalibrationError(f"{path}: the text cannot be read ({error.strerror}). Check the path.") from None
    except UnicodeDecodeError as error:
        raise CalibrationError(
            f"{path}: expected text in UTF-8, found other bytes at {error.start:,}. Save it as UTF-8."
        ) from None


def measure_importance(
    job: Job, model: Path, target: Path, text: Path | None = None, *, n_most: int | None = None, replace: bool = False
) -> ImportanceMatrix:
    """Calibrate `model` and write its importance matrix to `target`. Raises ColibriError; JobCancelledError."""
    if target.exists() and not replace:
        raise CalibrationError(f"{target}: the file is there already. Choose another name, or say --replace.")
    job.report("calibrating", fraction=0.0)

    def progress(done: int, n: int) -> None:
        job.check()
        job.report(fraction=done / n)

    importance = calibrate(model, calibration_texts(text), n_most=n_most, progress=progress)
    try:
        write_importance(importance, target)
    except OSError as error:
        raise CalibrationError(f"{target}: the file could not be written: {error.strerror}.") from error
    return importance


def calibrated(
    job: Job, source: Path, folder: Path, options: ConversionOptions, texts: Mapping[str, str]
) -> ImportanceMatrix:
    """Let the checkpoint or GGUF file at `source` read `texts`, layer by layer, by way of files in `folder`.

    options: of the conversion that it is for. Raises ColibriError; JobCancelledError, which leaves nothing.
    """
    job.report("calibrating", fraction=0.0)

    def progress(done: int, n: int) -> None:
        job.check()
        job.report(fraction=done / n)

    as_published = replace(options, type=None, mixture=None, importance=None)
    try:
        with open_layers(source, folder, as_published) as layers:
            return calibrate(layers, texts, folder=folder, progress=progress)
    except OSError as error:
        raise CalibrationError(
            f"{folder}: what is between two layers could not be kept there: {error.strerror}. Free some space, or "
            "choose another folder."
        ) from error


def is_text(file: Path) -> bool:
    """Whether a file for calibration is a text, and not what calibration has measured. Raises CalibrationError."""
    try:
        with file.open("rb") as opened:
            start = opened.read(_START_BYTES)
    except OSError as error:
        raise CalibrationError(f"{file}: the file cannot be read ({error.strerror}). Check the path.") from None
    return not start.startswith(MAGIC) and b"\0" not in start
