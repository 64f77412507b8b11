"""`colibri bench`: measures how many tokens per second a model reads and generates on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from app import paths
from app.benchmark import BenchmarkResult, Kind, SpeedTest, measure
from app.commands.bench_formats import FORMATS
from app.commands.chat import fetch_starter, open_engine
from app.commands.chat_options import add_cache_options, whole
from app.commands.chat_session import interrupts
from app.commands.output import say, write
from app.commands.progress_line import ProgressLine
from app.jobs import Job
from app.machine import Machine
from app.settings import Settings
from engine.errors import ColibriError

_LEAST_CONTEXT = 1024  # unless --context says otherwise
_INTERRUPTED = 130  # what shells give a program that Ctrl-C ended


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `bench`."""
    parser = subparsers.add_parser(
        "bench",
        help="measure tokens per second",
        description="Measure how many tokens per second a model reads and generates. Ctrl-C ends the measuring and "
        "prints what there is.",
    )
    parser.add_argument("-m", "--model", metavar="FILE", help="a GGUF model (default: the starter model)")
    parser.add_argument(
        "--prompt", type=_numbers, default=[512], metavar="N[,N]", help="prompts of N tokens (512); 0: none"
    )
    parser.add_argument(
        "--generate", type=_numbers, default=[128], metavar="N[,N]", help="generations of N tokens (128); 0: none"
    )
    parser.add_argument(
        "--depth", type=whole(0), default=0, metavar="N", help="tokens in the context before generating (0)"
    )
    parser.add_argument("--repetitions", type=whole(1), default=5, metavar="N", help="runs of each test (5)")
    parser.add_argument("--threads", type=whole(1), metavar="N", help="default: one for each physical core")
    parser.add_argument("--context", type=whole(1), metavar="N", help="default: what the tests need")
    add_cache_options(parser)
    parser.add_argument("--format", choices=list(FORMATS), default="text", help="how the results are written (text)")
    parser.add_argument("--output", metavar="FILE", help="write the results there, not to standard output")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Measure and print; 130 when Ctrl-C ended it."""
    from engine import EngineConfig  # noqa: PLC0415 - loading the engine takes a while

    tests = _tests(options)
    context_length = _context_length(options, tests)
    _check_output(options)
    settings = Settings.load(paths.settings_file())
    path = Path(options.model) if options.model else fetch_starter()
    threads = options.threads or settings.threads
    config = EngineConfig(
        context_length,
        threads,
        max_sequences=1,
        kv_pool_tokens=context_length,
        expert_cache_experts=options.cache_size,
        prefetch=options.prefetch,
    )
    machine = Machine.read()
    with open_engine(path, config) as engine:
        job = Job(path.name)

        def work(job: Job) -> BenchmarkResult:
            return measure(
                engine,
                tests,
                options.repetitions,
                machine=machine,
                progress=lambda phase, fraction: job.report(phase, fraction=fraction),
                cancelled=interrupted.is_set,
            )

        with interrupts() as interrupted, ProgressLine(job):
            result = job.run_blocking(work)
    if result.speeds:
        _deliver(FORMATS[options.format](result), options.output)
    if not result.is_complete:
        say("Stopped." if result.speeds else "Stopped before anything was measured.")
        return _INTERRUPTED
    return 0


def _tests(options: argparse.Namespace) -> list[SpeedTest]:
    prompts = [SpeedTest(Kind.PROMPT, n_tokens) for n_tokens in options.prompt if n_tokens]
    generations = [SpeedTest(Kind.GENERATE, n_tokens, options.depth) for n_tokens in options.generate if n_tokens]
    if not prompts and not generations:
        options.parser.error("--prompt and --generate are both 0: nothing is left to measure")
    if options.depth and not generations:
        options.parser.error("--depth is about generations, and --generate 0 leaves them out")
    return [*prompts, *generations]


def _context_length(options: argparse.Namespace, tests: list[SpeedTest]) -> int:
    longest = max(tests, key=lambda test: test.n_context_tokens)
    if options.context is None:
        return max(_LEAST_CONTEXT, longest.n_context_tokens)
    if options.context < longest.n_context_tokens:
        options.parser.error(
            f"argument --context: expected {longest.n_context_tokens} or more, which the test '{longest.name}' needs, "
            f"found {options.context}"
        )
    return int(options.context)


def _check_output(options: argparse.Namespace) -> None:
    """Refuse a file that cannot be written before anything is measured."""
    if options.output is None:
        return
    path = Path(options.output)
    if path.is_dir():
        options.parser.error(f"argument --output: expected a file, found the folder {path}")
    if not path.parent.is_dir():
        options.parser.error(f"argument --output: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        options.parser.error(f"argument --output: {path} may not be written")


def _deliver(text: str, output: str | None) -> None:
    if output is None:
        write(text)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        sys.stdout.write(text)  # what took minutes to measure is not lost
        raise ColibriError(f"{output}: the results cannot be written: {error.strerror or error}") from error


def _numbers(text: str) -> list[int]:
    """`128,512` as numbers, each once."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected whole numbers such as 128,512, found {text!r}") from None
    if min(numbers) < 0:
        raise argparse.ArgumentTypeError(f"expected 0 or more, found {min(numbers)}")
    return list(dict.fromkeys(numbers))
