"""What this machine's memory and disk were measured to give, kept until it is measured again."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from app import paths
from app.machine import cpu_name
from engine.hardware.memory_speed import MemorySpeed

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MachineSpeeds:
    """Each None until it was measured; the disk's speed is in bytes per second, `disk_file` is what was read."""

    memory: MemorySpeed | None = None
    memory_measured_at: datetime | None = None
    disk: float | None = None
    disk_file: str = ""
    disk_measured_at: datetime | None = None

    def with_memory(self, speed: MemorySpeed) -> MachineSpeeds:
        """The same with a newly measured speed of the memory."""
        return replace(self, memory=speed, memory_measured_at=datetime.now().astimezone())

    def with_disk(self, bytes_per_second: float, name: str) -> MachineSpeeds:
        """The same with a newly measured speed of the disk, from the file `name`."""
        now = datetime.now().astimezone()
        return replace(self, disk=bytes_per_second, disk_file=name, disk_measured_at=now)

    def save(self, path: Path) -> None:
        """Keep them with the CPU's name. Raises OSError."""
        values = {**asdict(self), "cpu": cpu_name()}
        for name in ("memory_measured_at", "disk_measured_at"):
            values[name] = values[name].isoformat() if values[name] else None
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        temporary.write_text(json.dumps(values, indent=1), encoding="utf-8")
        temporary.replace(path)

    @classmethod
    def load(cls, path: Path) -> MachineSpeeds:
        """What was kept; nothing where there is no file, where it is damaged, or where it is of another CPU."""
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            return cls._of(values) if values["cpu"] == cpu_name() else cls()
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s holds no speeds of a machine (%s); they are measured again when asked for", path, error)
            return cls()

    @classmethod
    def _of(cls, values: dict[str, Any]) -> MachineSpeeds:
        memory = values["memory"]
        return cls(
            None if memory is None else MemorySpeed(int(memory["n_threads"]), *map(float, _rates(memory))),
            _moment(values["memory_measured_at"]),
            None if values["disk"] is None else float(values["disk"]),
            str(values["disk_file"]),
            _moment(values["disk_measured_at"]),
        )


def _rates(memory: dict[str, Any]) -> tuple[float, float, float]:
    return memory["median"], memory["slowest"], memory["fastest"]


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def speeds_file() -> Path:
    """Where this machine's are kept."""
    return paths.data_dir() / "machine-speeds.json"
