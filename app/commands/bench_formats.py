"""A benchmark's result as text, JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

from app.benchmark import BenchmarkResult, Speed

_HEADINGS = ("test", "tokens/s", "lowest", "highest", "deviation", "ms/token", "runs")


def as_text(result: BenchmarkResult) -> str:
    """Facts, then a table with aligned columns."""
    rows = [_HEADINGS, *_rows(result)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    facts = _facts(result)
    width = max(len(label) for label, _ in facts)
    lines = [f"{label:<{width}}  {value}" for label, value in facts]
    lines.append("")
    for name, *figures in rows:
        aligned = [f"{figure:>{room}}" for figure, room in zip(figures, widths[1:], strict=True)]
        lines.append("  ".join([f"{name:<{widths[0]}}", *aligned]))
    return "\n".join(lines) + "\n"


def as_markdown(result: BenchmarkResult) -> str:
    """A table, and the facts as a list below it."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    lines = [line(_HEADINGS), line(["---", *["---:"] * (len(_HEADINGS) - 1)])]
    lines += [line(row) for row in _rows(result)]
    lines.append("")
    lines += [f"- {label}: {_escaped(value)}" for label, value in _facts(result)]
    return "\n".join(lines) + "\n"


def as_json(result: BenchmarkResult) -> str:
    """One object; `tests` holds every sample."""
    tests = [{**_figures(speed), "samples": [round(sample, 3) for sample in speed.samples]} for speed in result.speeds]
    described = {**_description(result), "tests": tests}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def as_csv(result: BenchmarkResult) -> str:
    """A line for each test, with all facts on each, so that files can be put together."""
    rows = [{**_description(result), **_figures(speed)} for speed in result.speeds]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


FORMATS: dict[str, Callable[[BenchmarkResult], str]] = {
    "text": as_text,
    "json": as_json,
    "csv": as_csv,
    "markdown": as_markdown,
}


def _description(result: BenchmarkResult) -> dict[str, Any]:
    """The facts for programs."""
    model, machine = result.model, result.machine
    return {
        "model": model.name,
        "architecture": model.architecture,
        "type": model.type_name,
        "file_bytes": model.file_bytes,
        "cpu": machine.cpu,
        "tier": model.tier,
        "threads": result.n_threads,
        "load_average": None if machine.load_average is None else round(machine.load_average, 2),
        "started_at": result.started_at.isoformat(timespec="seconds"),
        "complete": result.is_complete,
    }


def _figures(speed: Speed) -> dict[str, Any]:
    """A test's figures for programs; rates are in tokens per second."""
    return {
        "test": str(speed.test.kind),
        "n_tokens": speed.test.n_tokens,
        "depth": speed.test.depth,
        "repetitions": len(speed.samples),
        "median": round(speed.median, 3),
        "min": round(speed.lowest, 3),
        "max": round(speed.highest, 3),
        "standard_deviation": None if speed.deviation is None else round(speed.deviation, 3),
        "ms_per_token": round(speed.ms_per_token, 6),
    }


def _facts(result: BenchmarkResult) -> list[tuple[str, str]]:
    """The facts for people."""
    model, machine = result.model, result.machine
    load = "unknown" if machine.load_average is None else f"{machine.load_average:.2f}"
    facts = [
        ("model", f"{_one_line(model.name)}, {model.type_name}, {model.file_bytes:,} bytes"),
        ("CPU", f"{_one_line(machine.cpu)}, tier {model.tier}, threads {result.n_threads}"),
        ("load average at the start", load),
        ("date", result.started_at.isoformat(" ", timespec="seconds")),
    ]
    if not result.is_complete:
        facts.append(("note", f"stopped before {result.n_repetitions} repetitions of every test were made"))
    return facts


def _rows(result: BenchmarkResult) -> list[tuple[str, ...]]:
    """A line for each test, for people; the first rate is the median."""
    return [
        (
            speed.test.name,
            f"{speed.median:.1f}",
            f"{speed.lowest:.1f}",
            f"{speed.highest:.1f}",
            "-" if speed.deviation is None else f"{speed.deviation:.1f}",
            f"{speed.ms_per_token:.3f}",
            str(len(speed.samples)),
        )
        for speed in result.speeds
    ]


def _one_line(text: str) -> str:
    """A name from a file, without anything that could steer a terminal or end the line."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>|#" else letter for letter in text)
