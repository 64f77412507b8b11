"""Runs a conversion as the window asks for it: calibrated, read back, and compared with its source."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from app import unfinished
from app.calibration import calibration_texts, sample_texts
from app.conversion import Converted, convert
from app.file_types import ROUTER_TYPES, file_type
from app.jobs import Job, JobCancelledError
from app.proving import prove
from app.unfinished import ConversionRequest
from engine.errors import ColibriError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A model file at `path`; `proof_problem`: why it could not be compared with its source, though it was to be."""

    path: Path
    converted: Converted
    proof_problem: str = ""


def run_request(job: Job, request: ConversionRequest) -> Outcome:
    """Convert, and take away what an earlier run left.

    Raises ColibriError; JobCancelledError, after which nothing stays. A file that cannot be compared, as this version
    cannot run it, is a sound file nevertheless, and stays.
    """
    logger.info("converting %s", asdict(request))
    kind, source, target = file_type(request.type_key), Path(request.source), Path(request.target)
    options = kind.options(router_type=ROUTER_TYPES[request.router], top_k=request.top_k, name=request.name)
    texts = None
    if kind.mixture is not None and request.calibration:
        is_included = request.calibration == unfinished.INCLUDED_TEXTS
        texts = calibration_texts(None if is_included else Path(request.calibration))
    converted = convert(job, source, target, options, calibration=texts, verified=True)
    for path in unfinished.left_overs(target):  # of a run that was killed
        path.unlink(missing_ok=True)
    problem = ""
    if request.proves:
        try:
            converted = replace(converted, proof=prove(job, source, target, texts=sample_texts()))
        except JobCancelledError:
            target.unlink(missing_ok=True)
            raise
        except ColibriError as error:
            logger.warning("%s is not compared with its source: %s", target, error)
            problem = str(error)
    return Outcome(target, converted, problem)
