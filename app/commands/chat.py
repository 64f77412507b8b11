"""`colibri chat`: talks to a model in the terminal, answers one question, or answers what comes through a pipe."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from app import paths, starter
from app.commands.chat_options import add_options, engine_config, sampling_params
from app.commands.chat_session import ChatSession
from app.commands.chat_terminal import converse, converse_by_lines
from app.commands.output import ReasoningWriter, say, write
from app.commands.perf_report import perf_report
from app.commands.progress_line import ProgressLine
from app.jobs import Job
from app.settings import Settings
from engine.errors import ColibriError, InvalidRequestError

if TYPE_CHECKING:
    from engine import Engine, EngineConfig

_PHASES = {"kernels": "Compiling kernels for this CPU (once)", "weights": "Reading weights"}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `chat`."""
    parser = subparsers.add_parser(
        "chat",
        help="chat in the terminal",
        description="Chat in the terminal. Text from a pipe is answered as one message. "
        "Ctrl-C stops an answer, Ctrl-D ends the chat.",
    )
    add_options(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Chat as the options say."""
    by_pipe = options.prompt is None and not options.no_prompt and not sys.stdin.isatty()
    if options.json and options.prompt is None and not by_pipe:
        options.parser.error("--json needs -p TEXT, or text from a pipe")
    question = options.prompt if options.prompt is not None else _read_pipe() if by_pipe else None
    settings = Settings.load(paths.settings_file())
    path = Path(options.model) if options.model else fetch_starter()
    started_s = time.perf_counter()
    with open_engine(path, engine_config(options, settings)) as engine:
        load_ms = (time.perf_counter() - started_s) * 1e3
        session = ChatSession(engine, sampling_params(options, settings, engine.info), options.system, options.think)
        if question is None:
            if options.no_prompt:
                converse_by_lines(session)
            else:
                converse(session)
        elif options.json:
            answer = session.answer(question, lambda _: None)
            print(json.dumps({**answer.figures(), "load_ms": round(load_ms, 3)}, ensure_ascii=False))
        else:
            writer = ReasoningWriter()
            answer = session.answer(question, writer.answer, writer.reasoning)
            writer.close()
            write("" if answer.text.endswith("\n") else "\n")
        if options.perf:
            for line in perf_report(engine.telemetry.steps()):
                say(line)
    return 0


def open_engine(path: Path, config: EngineConfig) -> Engine:
    """Open a model, showing what takes time."""
    from engine import Engine  # noqa: PLC0415

    def work(job: Job) -> Engine:
        def progress(phase: str, fraction: float) -> None:
            job.report(_PHASES.get(phase, phase), fraction=fraction)

        engine = Engine.open(path, config, progress=progress)
        try:
            engine.load(progress)
        except BaseException:
            engine.close()
            raise
        return engine

    job = Job(path.name)
    try:
        with ProgressLine(job):
            return job.run_blocking(work)
    except OSError as error:
        raise ColibriError(f"{path}: the model cannot be opened: {error.strerror or error}") from error


def fetch_starter() -> Path:
    """The starter model, fetched when it is not there, showing what takes time."""
    job = Job("Starter model")
    with ProgressLine(job):
        return job.run_blocking(starter.ensure)


def _read_pipe() -> str:
    data = sys.stdin.buffer.read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequestError(
            f"standard input: expected UTF-8 text, found the byte 0x{data[error.start]:02x} at offset {error.start}."
        ) from error
    if not text.strip():
        raise InvalidRequestError("standard input: expected a message, found no text. Use -p TEXT, or a terminal.")
    return text.rstrip("\r\n")  # the line end is the shell's, not the writer's
