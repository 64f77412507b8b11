"""Pages larger than 4 KiB: the pools of huge pages, transparent huge pages, hugetlbfs mounts, locked memory."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.hardware.system_files import SystemFiles, choice

_POOLS = "sys/kernel/mm/hugepages"
_TRANSPARENT = "sys/kernel/mm/transparent_hugepage"
UNLIMITED = -1


@dataclass(frozen=True, slots=True)
class Pool:
    """A pool of huge pages of one size."""

    page_bytes: int
    n_pages: int
    n_free: int
    n_reserved: int  # promised, not yet touched
    n_surplus: int


@dataclass(frozen=True, slots=True)
class TransparentPages:
    """The chosen words; None where the kernel was built without them. Counts are since the start."""

    mode: str | None  # "always", "madvise", "never"
    defrag: str | None
    n_given: int | None
    n_refused: int | None  # faults that had to take 4 KiB pages instead


@dataclass(frozen=True, slots=True)
class LockedMemory:
    """The limit on locked memory, soft and hard, in bytes; UNLIMITED where there is none."""

    soft_bytes: int
    hard_bytes: int


def read_pools(files: SystemFiles) -> tuple[Pool, ...]:
    """The pools by page size; empty where the kernel has no hugetlb."""
    pools = []
    for path in files.names(_POOLS, r"hugepages-\d+kB"):
        n_pages = files.number(f"{path}/nr_hugepages")
        if n_pages is None:
            continue
        found = re.search(r"(\d+)kB$", path)
        page_bytes = int(found.group(1)) << 10 if found else 0
        free, reserved, surplus = (
            files.number(f"{path}/{name}") or 0 for name in ("free_hugepages", "resv_hugepages", "surplus_hugepages")
        )
        pools.append(Pool(page_bytes, n_pages, free, reserved, surplus))
    return tuple(sorted(pools, key=lambda pool: pool.page_bytes))


def read_transparent_pages(files: SystemFiles) -> TransparentPages:
    """The mode, how hard the kernel tries, and how often it succeeded."""
    counters = files.table("proc/vmstat", " ")

    def count(name: str) -> int | None:
        return int(counters[name]) if counters.get(name, "").isdigit() else None

    return TransparentPages(
        choice(files.text(f"{_TRANSPARENT}/enabled")),
        choice(files.text(f"{_TRANSPARENT}/defrag")),
        count("thp_fault_alloc"),
        count("thp_fault_fallback"),
    )


def read_hugetlb_mounts(files: SystemFiles) -> tuple[str, ...] | None:
    """Where hugetlbfs is mounted; None where the mounts cannot be read."""
    text = files.text("proc/self/mounts")
    if text is None:
        return None
    rows = [line.split() for line in text.splitlines()]
    return tuple(row[1] for row in rows if len(row) > 2 and row[2] == "hugetlbfs")


def read_locked_memory(files: SystemFiles) -> LockedMemory | None:
    """This process's limit (RLIMIT_MEMLOCK); None where the system does not say."""
    text = files.text("proc/self/limits") or ""
    found = re.search(r"^Max locked memory\s+(\d+|unlimited)\s+(\d+|unlimited)\s", text + "\n", re.MULTILINE)
    if not found:
        return None
    soft, hard = (UNLIMITED if word == "unlimited" else int(word) for word in found.groups())
    return LockedMemory(soft, hard)
