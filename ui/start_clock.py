"""Tells how long ago this process began, which is what its user has waited."""

from __future__ import annotations

import os
import time
from pathlib import Path

_IMPORTED_S = time.perf_counter()
_START_TIME_FIELD = 19  # of /proc/PID/stat, counted after the name, whose parentheses may hold anything


def process_age_ms() -> float:
    """Milliseconds since the process was started; where that cannot be known, since this module was imported."""
    try:
        fields = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        uptime_s = float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
        started_s = int(fields[_START_TIME_FIELD]) / os.sysconf("SC_CLK_TCK")
        return (uptime_s - started_s) * 1000
    except (OSError, ValueError, IndexError):
        return (time.perf_counter() - _IMPORTED_S) * 1000
