"""The state of the machine that a measurement was made in: what makes the same program faster or slower."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.machine import cpu_name

_ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class MachineState:
    """Facts by name, each None where this machine does not tell it."""

    cpu: str
    governor: str | None  # of the first core
    frequency_mhz: float | None  # the mean of all cores
    temperature_c: float | None  # the hottest sensor
    huge_pages_free: int | None  # reserved ones, of the default size
    transparent_huge_pages: str | None  # "always", "madvise" or "never"
    available_bytes: int | None
    load_average: float | None  # runnable processes over the last minute

    @classmethod
    def read(cls, root: Path = _ROOT) -> MachineState:
        """The machine as it is now. `root`: where /proc and /sys are found."""
        cpu = root / "sys/devices/system/cpu"
        meminfo = _meminfo(root / "proc/meminfo")
        frequencies = [_number(path) for path in sorted(cpu.glob("cpu[0-9]*/cpufreq/scaling_cur_freq"))]
        known = [value / 1e3 for value in frequencies if value is not None]
        thermal = sorted((root / "sys/class/thermal").glob("thermal_zone*/temp"))
        temperatures = [value / 1e3 for path in thermal if (value := _number(path)) is not None]
        selected = re.search(r"\[(\w+)\]", _text(root / "sys/kernel/mm/transparent_hugepage/enabled") or "")
        load = _text(root / "proc/loadavg")
        return cls(
            cpu=cpu_name(root / "proc/cpuinfo"),
            governor=_text(cpu / "cpu0/cpufreq/scaling_governor"),
            frequency_mhz=sum(known) / len(known) if known else None,
            temperature_c=max(temperatures, default=None),
            huge_pages_free=meminfo.get("HugePages_Free"),
            transparent_huge_pages=selected.group(1) if selected else None,
            available_bytes=meminfo["MemAvailable"] * 1024 if "MemAvailable" in meminfo else None,
            load_average=float(load.split()[0]) if load else None,
        )

    def to_json(self) -> dict[str, str | float | int | None]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, values: Mapping[str, object]) -> MachineState:
        """Raises TypeError for facts that are no machine's."""
        known = {name: values.get(name) for name in cls.__slots__}
        return cls(**known)  # type: ignore[arg-type]


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _number(path: Path) -> float | None:
    try:
        return float(_text(path) or "")
    except ValueError:
        return None


def _meminfo(path: Path) -> dict[str, int]:
    pairs = re.findall(r"^(\w+):\s*(\d+)", _text(path) or "", re.MULTILINE)
    return {name: int(value) for name, value in pairs}
