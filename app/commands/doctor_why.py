"""`colibri doctor --why`: answers in at most three sentences what makes a model slow on this machine."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import paths
from app.benchmark import Kind, SpeedTest, measure
from app.commands.chat import fetch_starter, open_engine
from app.commands.output import write
from app.commands.progress_line import ProgressLine
from app.diagnostics import Finding, Inspection
from app.diagnostics.causes import Cause
from app.diagnostics.why import explain, open_model
from app.jobs import Job
from app.settings import Settings

if TYPE_CHECKING:
    from engine import Engine
    from engine.steps import Steps

_CONTEXT = 1024
_TEST = SpeedTest(Kind.GENERATE, 64, depth=192)  # a short question and a short answer
_N_REPETITIONS = 2


def causes(options: argparse.Namespace, inspection: Inspection, findings: list[Finding]) -> list[Cause]:
    """What the check, the plan and a run show: the run of `options.recording`, or one that is made now.

    Raises RecordingError, what opening a model raises, and OSError.
    """
    if options.recording is not None:
        from app.recording import Recording  # noqa: PLC0415  (loads NumPy)

        return explain(inspection, findings, Recording.load(options.recording).steps, None)
    from engine import EngineConfig  # noqa: PLC0415  (loading the engine takes a while)

    settings = Settings.load(paths.settings_file())
    path = options.model or fetch_starter()
    config = EngineConfig(_CONTEXT, settings.threads, max_sequences=1, kv_pool_tokens=_CONTEXT)
    with open_engine(Path(path), config) as engine:
        steps = _run(engine, path.name)
        model = open_model(engine.info, engine.memory, engine.telemetry, inspection)
    return explain(inspection, findings, steps, model)


def _run(engine: Engine, name: str) -> Steps:
    """The steps of a short answer, read from a warm model."""
    job = Job(name)

    def work(job: Job) -> None:
        measure(
            engine,
            [_TEST],
            _N_REPETITIONS,
            progress=lambda phase, fraction: job.report(phase, fraction=fraction),
            cancelled=lambda: job.cancelled,
        )

    with ProgressLine(job):
        job.run_blocking(work)
    return engine.telemetry.steps()


def print_causes(found: list[Cause], *, as_json: bool) -> None:
    """The sentences, numbered, each with the command that goes with it."""
    if as_json:
        sys.stdout.write(json.dumps({"why": [_plain(cause) for cause in found]}, indent=2) + "\n")
        return
    for number, cause in enumerate(found, 1):
        write(f"{number}. {cause.sentence}\n" + (f"   $ {cause.command}\n" if cause.command else ""))


def _plain(cause: Cause) -> dict[str, Any]:
    fix = None if cause.fix is None else {"verb": cause.fix.verb.value, "values": list(cause.fix.values)}
    gain = None if cause.gain is None else round(cause.gain, 3)
    return {"id": cause.id, "sentence": str(cause.sentence), "gain": gain, "command": cause.command, "fix": fix}
