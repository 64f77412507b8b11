"""The CPU's instruction flags and cores, read from the operating system."""

from __future__ import annotations

import ctypes
import os
import platform
import re
from functools import cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA = 158, 0x1023, 18
_CORE_LISTS = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


@cache
def cpu_flags() -> frozenset[str]:
    """Instruction-set flags in /proc/cpuinfo's spelling; empty where the system does not say."""
    try:
        text = _CPUINFO.read_text(encoding="ascii", errors="replace")
    except OSError:
        return frozenset()
    found = re.search(r"^(?:flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return frozenset(found.group(1).split()) if found else frozenset()


@cache
def may_use_tiles() -> bool:
    """Ask Linux for AMX tile registers, which a process must do once (Documentation/arch/x86/xstate.rst)."""
    if platform.system() != "Linux" or platform.machine() != "x86_64" or "amx_tile" not in cpu_flags():
        return False
    return bool(ctypes.CDLL(None).syscall(_SYS_ARCH_PRCTL, _ARCH_REQ_XCOMP_PERM, _XFEATURE_XTILEDATA) == 0)


def usable_cores() -> int:
    """Physical cores that this process may run on: hyper-threads of one core count once."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    siblings = set()
    for cpu in cpus:
        try:
            siblings.add(Path(_CORE_LISTS.format(cpu)).read_text(encoding="ascii").strip())
        except OSError:
            siblings.add(str(cpu))
    return max(1, len(siblings))
