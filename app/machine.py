"""What a measurement must say about the machine it was made on."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True, slots=True)
class Machine:
    """The CPU's name, and how busy the machine was when this was read."""

    cpu: str
    load_average: float | None  # runnable processes over the last minute; None where the system does not say

    @classmethod
    def read(cls) -> Machine:
        """The machine as it is now."""
        return cls(cpu_name(), os.getloadavg()[0] if hasattr(os, "getloadavg") else None)


def cpu_name(cpuinfo: Path = _CPUINFO) -> str:
    """The CPU's model name as the system gives it, else its kind ("aarch64")."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    found = re.search(r"^model name[ \t]*:(.*)$", text, re.MULTILINE)
    name = " ".join(found.group(1).split()) if found else ""
    return name or platform.processor() or platform.machine() or "unknown"
