"""Benchmarks that were made in the window, each filed with the state of the machine before and after it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.machine_state import MachineState

if TYPE_CHECKING:
    from app.benchmark import BenchmarkResult

_NAME = "%Y%m%d-%H%M%S"


@dataclass(frozen=True, slots=True)
class Filed:
    """A measurement as it was found in the folder."""

    path: Path
    model: str
    started_at: datetime
    tokens_per_second: dict[str, float]  # the median of each test
    before: MachineState
    after: MachineState


def file_measurement(folder: Path, result: BenchmarkResult, before: MachineState, after: MachineState) -> Path:
    """Write `result` with the machine's state into a new file of `folder`. Raises OSError."""
    from app.commands.bench_formats import as_json  # noqa: PLC0415

    described: dict[str, Any] = json.loads(as_json(result))
    described["model_name"] = result.model.name
    described["started_at"] = result.started_at.isoformat()
    described["machine_before"] = before.to_json()
    described["machine_after"] = after.to_json()
    described["medians"] = {speed.test.name: speed.median for speed in result.speeds}
    path = folder / f"{result.started_at.strftime(_NAME)}.json"
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)
    return path


def filed_measurements(folder: Path) -> list[Filed]:
    """All that can be read, newest first; what is no measurement is left out."""
    found = []
    for path in folder.glob("*.json"):
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            found.append(
                Filed(
                    path,
                    str(values["model_name"]),
                    datetime.fromisoformat(values["started_at"]),
                    {str(name): float(rate) for name, rate in values["medians"].items()},
                    MachineState.from_json(values["machine_before"]),
                    MachineState.from_json(values["machine_after"]),
                )
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
    return sorted(found, key=lambda filed: filed.started_at, reverse=True)
