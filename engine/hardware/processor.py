"""The processor as Linux describes it: name, instructions, cores, caches, memory nodes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from engine.hardware.system_files import SystemFiles, cpu_list

_CPUS = "sys/devices/system/cpu"
_NODES = "sys/devices/system/node"
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Processor:
    """What /proc/cpuinfo says of the first CPU. `flags` are empty where the system does not say."""

    name: str | None
    flags: frozenset[str]


@dataclass(frozen=True, slots=True)
class Cores:
    """CPUs that are online, and how they hang together. Lists are empty where the system does not say.

    cores: the hyper-threads of each physical core. usable: CPUs that this process may run on.
    performance, efficiency: CPUs of a hybrid processor; both empty on others.
    """

    online: tuple[int, ...]
    usable: tuple[int, ...]
    cores: tuple[tuple[int, ...], ...]
    n_sockets: int | None
    performance: tuple[int, ...]
    efficiency: tuple[int, ...]

    @property
    def has_smt(self) -> bool:
        return any(len(threads) > 1 for threads in self.cores)

    @property
    def n_usable_cores(self) -> int:
        """Physical cores with at least one CPU that this process may use; the CPUs where cores are not known."""
        usable = set(self.usable or self.online)
        return sum(1 for threads in self.cores if usable & set(threads)) or len(usable)


@dataclass(frozen=True, slots=True)
class Cache:
    """All caches of one level and kind; `n_bytes` is the size of one of them."""

    level: int
    kind: str  # "Data", "Instruction", "Unified"
    n_bytes: int
    n_caches: int


@dataclass(frozen=True, slots=True)
class Node:
    """A NUMA node; `free_bytes` is what nothing uses now."""

    number: int
    cpus: tuple[int, ...]
    total_bytes: int
    free_bytes: int


def read_processor(files: SystemFiles) -> Processor:
    """The first CPU's name and instruction flags."""
    text = files.text("proc/cpuinfo") or ""
    name = re.search(r"^(?:model name|Model)[ \t]*:[ \t]*(\S.*)$", text, re.MULTILINE)
    flags = re.search(r"^(?:flags|Features)[ \t]*:(.*)$", text, re.MULTILINE)
    return Processor(
        " ".join(name.group(1).split()) if name else None,
        frozenset(flags.group(1).split()) if flags else frozenset(),
    )


def read_cores(files: SystemFiles) -> Cores:
    """The CPUs and their cores, from sysfs, and from /proc/cpuinfo where that is missing."""
    online = cpu_list(files.text(f"{_CPUS}/online"))
    if not online:
        listed = re.findall(r"^processor[ \t]*:[ \t]*(\d+)$", files.text("proc/cpuinfo") or "", re.MULTILINE)
        online = tuple(int(cpu) for cpu in listed)
    cores = {
        siblings
        for cpu in online
        if (siblings := cpu_list(files.text(f"{_CPUS}/cpu{cpu}/topology/thread_siblings_list")))
    }
    packages = {files.number(f"{_CPUS}/cpu{cpu}/topology/physical_package_id") for cpu in online} - {None}
    performance, efficiency = _hybrid(files, online)
    usable = cpu_list(files.table("proc/self/status").get("Cpus_allowed_list"))
    return Cores(online, usable, tuple(sorted(cores)), len(packages) or None, performance, efficiency)


def _hybrid(files: SystemFiles, online: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Intel's two core types have a PMU each; elsewhere the scheduler's cpu_capacity tells big from little."""
    performance = cpu_list(files.text("sys/devices/cpu_core/cpus"))
    efficiency = cpu_list(files.text("sys/devices/cpu_atom/cpus"))
    if performance and efficiency:
        return performance, efficiency
    capacities = {cpu: files.number(f"{_CPUS}/cpu{cpu}/cpu_capacity") for cpu in online}
    known = {cpu: capacity for cpu, capacity in capacities.items() if capacity is not None}
    if len(set(known.values())) < 2:
        return (), ()
    most = max(known.values())
    return tuple(cpu for cpu in known if known[cpu] == most), tuple(cpu for cpu in known if known[cpu] < most)


def read_caches(files: SystemFiles) -> tuple[Cache, ...]:
    """The caches by level; each is counted once, however many CPUs share it."""
    seen: set[tuple[int, str, str]] = set()
    found: Counter[tuple[int, str, int]] = Counter()
    for cpu in files.names(_CPUS, r"cpu\d+"):
        for index in files.names(f"{cpu}/cache", r"index\d+"):
            level, kind = files.number(f"{index}/level"), files.text(f"{index}/type")
            n_bytes = parse_size(files.text(f"{index}/size"))
            if level is None or kind is None or n_bytes is None:
                continue
            place = (level, kind, files.text(f"{index}/shared_cpu_list") or cpu)
            if place not in seen:
                seen.add(place)
                found[level, kind, n_bytes] += 1
    return tuple(Cache(level, kind, n_bytes, count) for (level, kind, n_bytes), count in sorted(found.items()))


def read_nodes(files: SystemFiles) -> tuple[Node, ...]:
    """The NUMA nodes; empty where the kernel knows of none."""
    nodes = []
    for path in files.names(_NODES, r"node\d+"):
        text = files.text(f"{path}/meminfo") or ""
        sizes = dict(re.findall(r"^Node \d+ (MemTotal|MemFree):\s+(\d+) kB", text, re.MULTILINE))
        nodes.append(
            Node(
                int(path.rpartition("node")[2]),
                cpu_list(files.text(f"{path}/cpulist")),
                int(sizes.get("MemTotal", 0)) << 10,
                int(sizes.get("MemFree", 0)) << 10,
            )
        )
    return tuple(nodes)


def parse_size(text: str | None) -> int | None:
    """Bytes of a size as sysfs writes it: "32K", "2048K", "36M"."""
    found = re.fullmatch(r"(\d+)([KMG]?)", (text or "").strip())
    return int(found.group(1)) * _UNITS.get(found.group(2), 1) if found else None
