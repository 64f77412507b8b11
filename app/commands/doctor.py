"""`colibri doctor`: checks what on this machine holds the engine back, and says what to do about it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.commands.progress_line import ProgressLine
from app.diagnostics import Finding, Group, ModelNeeds, Status, run_checks
from app.diagnostics.live import inspect_here
from app.diagnostics.measurements import known, measure
from app.jobs import Job
from engine.errors import InvalidRequestError

PROBLEM_FOUND = 3
_WIDTH_IN_PIPES = 120
_MARKS = {
    Status.OK: ("ok", "green"),
    Status.ADVICE: ("advice", "yellow"),
    Status.PROBLEM: ("problem", "bold red"),
    Status.UNAVAILABLE: ("-", "dim"),
}
_HEADINGS = {
    Group.PROCESSOR: "Processor",
    Group.SPEED: "Speed of the cores",
    Group.PAGES: "Pages",
    Group.MEMORY: "Memory",
    Group.SYSTEM: "System",
    Group.STORAGE: "Storage",
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the sub-command `doctor`."""
    parser = subparsers.add_parser(
        "doctor",
        help="check what on this machine slows the engine down",
        description="Check processor, frequencies, pages, memory, system and storage. Nothing is changed. "
        f"Exit code: 0 no problem, {PROBLEM_FOUND} at least one problem, 1 the check itself failed.",
    )
    parser.add_argument("-m", "--model", type=Path, help="the model file that is meant to be run")
    parser.add_argument("--measure", action="store_true", help="also measure memory and disk (a few seconds)")
    parser.add_argument("--all", action="store_true", help="give the reasons for what is in order, too")
    parser.add_argument(
        "--why",
        action="store_true",
        help="say in at most three sentences what makes answers slow: runs a short one, with -m or the starter model",
    )
    parser.add_argument("--recording", type=Path, help="with --why: look at this recording, run nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Check and print; PROBLEM_FOUND if anything is a problem."""
    inspection = inspect_here(_model(options.model), options.model.resolve().parent if options.model else None)
    findings = run_checks(inspection)
    if options.measure:
        job = Job("System check")
        with ProgressLine(job):
            findings += job.run_blocking(lambda job: measure(inspection, job))
    else:
        findings += known(inspection)
    if options.why:
        from app.commands.doctor_why import causes, print_causes  # noqa: PLC0415  (only here needed)

        print_causes(causes(options, inspection, findings), as_json=options.json)
        return 0
    if options.json:
        sys.stdout.write(json.dumps({"findings": [as_json(finding) for finding in findings]}, indent=2) + "\n")
    else:
        print_findings(findings, everything=options.all)
    return PROBLEM_FOUND if any(finding.status is Status.PROBLEM for finding in findings) else 0


def _model(path: Path | None) -> ModelNeeds | None:
    """The model's size on disk stands for what it takes; a model that is open says it exactly."""
    if path is None:
        return None
    if not path.is_file():
        raise InvalidRequestError(f"{path}: expected a model file, found none. Check the path.")
    return ModelNeeds(path.name, path.stat().st_size)


def as_json(finding: Finding) -> dict[str, Any]:
    """A finding as plain values, in English."""
    return {
        "id": finding.id,
        "group": finding.group.value,
        "title": str(finding.title),
        "status": finding.status.value,
        "value": str(finding.value),
        "why": str(finding.why),
        "advice": None if finding.advice is None else str(finding.advice),
        "command": finding.command,
        "fix": None if finding.fix is None else {"verb": finding.fix.verb.value, "values": list(finding.fix.values)},
    }


def print_findings(findings: list[Finding], *, everything: bool) -> None:
    """A table for each group; what is to be done stands below the line that it belongs to."""
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH_IN_PIPES)
    for group in Group:
        members = [finding for finding in findings if finding.group is group]
        table = Table(title=f"\n{_HEADINGS[group]}", title_justify="left", title_style="bold", box=None, pad_edge=False)
        table.show_header = False
        for _ in range(3):
            table.add_column(overflow="fold")
        for finding in members:
            word, style = _MARKS[finding.status]
            table.add_row(Text(word, style=style), Text(str(finding.title)), Text(str(finding.value)))
            is_good = finding.status in (Status.OK, Status.UNAVAILABLE)
            if everything or not is_good:
                table.add_row("", "", Text(str(finding.why), style="dim"))
            if finding.advice is not None and (everything or not is_good):
                table.add_row("", "", Text(str(finding.advice)))
            if finding.command and (everything or not is_good):
                table.add_row("", "", Text(f"$ {finding.command}", style="cyan"))
        if members:
            console.print(table)
    counts = {status: sum(finding.status is status for finding in findings) for status in Status}
    console.print(
        f"\n{counts[Status.PROBLEM]} problems, {counts[Status.ADVICE]} pieces of advice, "
        f"{counts[Status.OK]} in order, {counts[Status.UNAVAILABLE]} not available here"
    )
