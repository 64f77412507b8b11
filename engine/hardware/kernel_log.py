"""What the kernel's log and counters say of memory that ran out."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.hardware.system_files import SystemFiles

_LOGS = ("dev/kmsg", "var/log/kern.log", "var/log/dmesg")
_OOM = re.compile(r"Out of memory: Kill(?:ed)? process (\d+) \(([^)]*)\)|Memory cgroup out of memory: Kill\w* process")
_HUGE = re.compile(r"hugetlb|huge ?pages?|HugeTLB", re.IGNORECASE)
_FAILED = re.compile(r"fail|unable|cannot|could not|only allocated|insufficient", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class KernelLog:
    """source: the file that was read, None where none may be read. Kills and failures name the lines found.

    n_oom_kills: the kernel's own counter since the start, which everybody may read; None before Linux 4.13.
    """

    source: str | None
    is_forbidden: bool
    oom_lines: tuple[str, ...]
    huge_page_lines: tuple[str, ...]
    n_oom_kills: int | None


def read_kernel_log(files: SystemFiles) -> KernelLog:
    """Looks through the first log that can be read."""
    source, text = next(((path, text) for path in _LOGS if (text := files.text(path))), (None, ""))
    lines = [_message(line) for line in text.splitlines() if line]
    counter = files.table("proc/vmstat", " ").get("oom_kill", "")
    return KernelLog(
        source,
        source is None and any(files.is_forbidden(path) for path in _LOGS),
        tuple(line for line in lines if _OOM.search(line)),
        tuple(line for line in lines if _HUGE.search(line) and _FAILED.search(line)),
        int(counter) if counter.isdigit() else None,
    )


def _message(line: str) -> str:
    """The text of a record of /dev/kmsg ("6,339,5140900,-;text") or of a log file."""
    head, found, text = line.partition(";")
    return text if found and re.match(r"\d+,\d+,\d+,", head) else line
