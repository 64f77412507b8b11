"""Memory and processor time that the system leaves to this process: free memory, swap, control groups, load."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from engine.hardware.system_files import SystemFiles, cpu_list

_NO_LIMIT_BYTES = 1 << 60  # version 1 writes a number near 2 ** 63 for "none"


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """/proc/meminfo, in bytes. swappiness is None where the system does not say."""

    total_bytes: int
    available_bytes: int
    swap_total_bytes: int
    swap_free_bytes: int
    swappiness: int | None
    overcommit: int | None  # vm.overcommit_memory: 2 counts every promised byte


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The tightest limits between this process's control group and the root; None where there is no limit.

    version: 1 or 2; None where control groups are not visible.
    """

    version: int | None
    memory_limit_bytes: int | None
    memory_used_bytes: int | None  # of the group with the tightest limit
    n_cpus: float | None  # the processor time that may be used, in CPUs
    cpuset: tuple[int, ...]
    n_oom_kills: int | None


@dataclass(frozen=True, slots=True)
class Load:
    """Runnable processes over the last minute; percent of the time in which tasks waited for memory (PSI)."""

    average: float | None
    memory_pressure: float | None


def read_memory_use(files: SystemFiles) -> MemoryUse | None:
    """Memory and swap; None where there is no /proc/meminfo."""
    table = files.table("proc/meminfo")

    def n_bytes(name: str) -> int:
        found = re.match(r"(\d+) kB", table.get(name, ""))
        return int(found.group(1)) << 10 if found else 0

    if not n_bytes("MemTotal"):
        return None
    available = n_bytes("MemAvailable") or n_bytes("MemFree") + n_bytes("Cached")
    swappiness, overcommit = files.number("proc/sys/vm/swappiness"), files.number("proc/sys/vm/overcommit_memory")
    return MemoryUse(n_bytes("MemTotal"), available, n_bytes("SwapTotal"), n_bytes("SwapFree"), swappiness, overcommit)


def read_control_group(files: SystemFiles) -> ControlGroup:
    """Limits of this process's control group and of those above it, version 2 or 1."""
    groups = dict(_groups(files))
    if "" in groups and files.exists("sys/fs/cgroup/cgroup.controllers"):
        return _version_2(files, groups[""])
    if files.exists("sys/fs/cgroup/memory") or files.exists("sys/fs/cgroup/cpu"):
        return _version_1(files, groups)
    return ControlGroup(None, None, None, None, (), None)


def _groups(files: SystemFiles) -> Iterator[tuple[str, str]]:
    """(controller, path) of each line "4:memory:/user.slice"; version 2 has the controller ""."""
    for line in (files.text("proc/self/cgroup") or "").splitlines():
        _, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        for controller in controllers.split(","):
            yield controller, path


def _upwards(files: SystemFiles, base: str, path: str) -> list[str]:
    """Folders from the group up to the root; a container sees its own group as the root, whatever its path says."""
    relative = PurePosixPath(path.lstrip("/"))
    folders = [f"{base}/{part}" for part in (relative, *relative.parents) if str(part) != "."]
    return [folder for folder in [*folders, base] if files.exists(folder)]


def _version_2(files: SystemFiles, path: str) -> ControlGroup:
    folders = _upwards(files, "sys/fs/cgroup", path)
    limits = [(limit, folder) for folder in folders if (limit := files.number(f"{folder}/memory.max")) is not None]
    limit, limited = min(limits, default=(None, ""))
    used = files.number(f"{limited}/memory.current") if limited else None
    n_cpus = []
    for folder in folders:
        found = re.fullmatch(r"(\d+) (\d+)", files.text(f"{folder}/cpu.max") or "")
        if found and int(found.group(2)):
            n_cpus.append(int(found.group(1)) / int(found.group(2)))
    events = files.table(f"{folders[0]}/memory.events", " ") if folders else {}
    kills = int(events["oom_kill"]) if events.get("oom_kill", "").isdigit() else None
    cpuset = cpu_list(files.text(f"{folders[0]}/cpuset.cpus.effective")) if folders else ()
    return ControlGroup(2, limit, used, min(n_cpus, default=None), cpuset, kills)


def _version_1(files: SystemFiles, groups: dict[str, str]) -> ControlGroup:
    limits = []
    for folder in _upwards(files, "sys/fs/cgroup/memory", groups.get("memory", "/")):
        limit = files.number(f"{folder}/memory.limit_in_bytes")
        if limit is not None and limit < _NO_LIMIT_BYTES:
            limits.append((limit, files.number(f"{folder}/memory.usage_in_bytes")))
    limit, used = min(limits, key=lambda pair: pair[0], default=(None, None))
    n_cpus = []
    for folder in _upwards(files, "sys/fs/cgroup/cpu", groups.get("cpu", "/")):
        quota, period = files.number(f"{folder}/cpu.cfs_quota_us"), files.number(f"{folder}/cpu.cfs_period_us")
        if quota and quota > 0 and period:
            n_cpus.append(quota / period)
    folders = _upwards(files, "sys/fs/cgroup/cpuset", groups.get("cpuset", "/"))
    cpuset = cpu_list(files.text(f"{folders[0]}/cpuset.cpus")) if folders else ()
    return ControlGroup(1, limit, used, min(n_cpus, default=None), cpuset, None)


def read_load(files: SystemFiles) -> Load:
    """How busy the machine is."""
    average = re.match(r"([\d.]+) ", files.text("proc/loadavg") or "")
    pressure = re.search(r"^some avg10=[\d.]+ avg60=([\d.]+)", files.text("proc/pressure/memory") or "", re.MULTILINE)
    return Load(float(average.group(1)) if average else None, float(pressure.group(1)) if pressure else None)
