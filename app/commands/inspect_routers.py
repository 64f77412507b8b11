"""`colibri inspect --router-precision FILE`: how often bf16 and fp16 routers choose other experts than fp32 ones."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from app import paths
from app.commands.output import say
from app.commands.progress_line import ProgressLine
from app.jobs import Job
from app.settings import Settings
from engine.errors import ColibriError

if TYPE_CHECKING:
    from engine.experts.router_precision import RouterReport

TEXT = Path(__file__).resolve().parents[2] / "resources" / "texts" / "us-constitution.txt"


def run(args: argparse.Namespace) -> int:
    """Print the report for `args.file`; 0, or 1 after a message on stderr if it cannot be measured."""
    try:
        report = _measure(Path(args.file), Path(args.text) if args.text else TEXT, args.tokens)
    except ColibriError as error:
        say(f"colibri inspect: {error}")
        return 1
    if args.json:
        sys.stdout.write(json.dumps(asdict(report), indent=2) + "\n")
    else:
        chosen = f"{report.top_k} of {report.n_experts} experts, {report.n_tokens:,} tokens"
        sys.stdout.write(f"Choices that differ from those of fp32 routers: {chosen}\n\n")
        Console(highlight=False).print(_table(report))
    return 0


def _measure(path: Path, text_path: Path, most_tokens: int) -> RouterReport:
    from engine.config import EngineConfig  # noqa: PLC0415
    from engine.experts.router_precision import WINDOW_TOKENS, measure_router_precision  # noqa: PLC0415

    try:
        text = text_path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ColibriError(f"{text_path}: expected a text in UTF-8 that can be read: {error}") from error
    threads = Settings.load(paths.settings_file()).threads
    config = EngineConfig(WINDOW_TOKENS + 1, threads, max_sequences=1, kv_pool_tokens=WINDOW_TOKENS + 1)

    def work(job: Job) -> RouterReport:
        def progress(precision: str, fraction: float) -> None:
            job.report(f"{precision} routers", fraction=fraction)

        return measure_router_precision(path, text, config, most_tokens=most_tokens, progress=progress)

    job = Job(path.name)
    try:
        with ProgressLine(job):
            return job.run_blocking(work)
    except OSError as error:
        raise ColibriError(f"{path}: the model cannot be opened: {error.strerror or error}") from error


def _table(report: RouterReport) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("layer")
    for difference in report.differences:
        table.add_column(difference.precision, justify="right")
    for i, layer in enumerate(report.layers):
        table.add_row(str(layer), *(_percent(difference.by_layer[i]) for difference in report.differences))
    table.add_section()
    table.add_row("all", *(_percent(difference.of_choices) for difference in report.differences))
    table.add_row("tokens with any", *(_percent(difference.of_tokens) for difference in report.differences))
    return table


def _percent(share: float) -> str:
    return f"{100 * share:.3f} %"
