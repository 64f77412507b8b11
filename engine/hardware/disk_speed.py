"""Measures how fast a file's disk gives data that no cache holds: what a model that does not fit waits for."""

from __future__ import annotations

import errno
import mmap
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

READ_BYTES = 1 << 20
N_IN_FLIGHT = 4
_ALIGNMENT = 4096
LEAST_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class DiskSpeed:
    """What was read, past the page cache, with N_IN_FLIGHT reads of READ_BYTES under way."""

    path: Path
    n_bytes: int
    seconds: float

    @property
    def bytes_per_second(self) -> float:
        return self.n_bytes / self.seconds


class DirectReadsRefusedError(OSError):
    """The file system has no direct reads (tmpfs, some network and user-space ones)."""


def measure_disk(path: Path, n_bytes: int = 512 << 20, progress: Callable[[float], None] | None = None) -> DiskSpeed:
    """Read up to `n_bytes` of the file, spread over it, with O_DIRECT. `progress` may raise to end the measurement.

    Raises DirectReadsRefusedError where that cannot be done, OSError if the file cannot be read or is smaller than
    LEAST_BYTES.
    """
    report = progress or (lambda _fraction: None)
    flag = getattr(os, "O_DIRECT", 0)
    if not flag:
        raise DirectReadsRefusedError(errno.EOPNOTSUPP, "this system has no direct reads", str(path))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flag)
    except OSError as error:
        if error.errno == errno.EINVAL:
            raise DirectReadsRefusedError(error.errno, "the file system has no direct reads", str(path)) from None
        raise
    try:
        offsets = _offsets(os.fstat(descriptor).st_size, n_bytes, path)
        start_s = time.perf_counter()
        total = _read_all(descriptor, offsets, report)
        return DiskSpeed(path, total, time.perf_counter() - start_s)
    finally:
        os.close(descriptor)


def _offsets(file_bytes: int, n_bytes: int, path: Path) -> list[int]:
    """Offsets of the reads, evenly over the file, each a multiple of the alignment."""
    if file_bytes < LEAST_BYTES:
        raise OSError(errno.EINVAL, f"expected a file of at least {LEAST_BYTES >> 20} MiB to measure with", str(path))
    n_reads = min(n_bytes, file_bytes) // READ_BYTES
    stride = (file_bytes - READ_BYTES) / max(n_reads - 1, 1)
    return [int(number * stride) // _ALIGNMENT * _ALIGNMENT for number in range(n_reads)]


def _read_all(descriptor: int, offsets: list[int], report: Callable[[float], None]) -> int:
    """All reads, taken by N_IN_FLIGHT threads from one list; the caller's thread reports and notices failures."""
    pending = list(reversed(offsets))
    total, failures, lock = [0], list[BaseException](), threading.Lock()

    def work() -> None:
        with mmap.mmap(-1, READ_BYTES) as buffer:
            while True:
                with lock:
                    if not pending:
                        return
                    offset = pending.pop()
                try:
                    count = os.preadv(descriptor, [buffer], offset)
                except OSError as error:
                    with lock:
                        failures.append(error)
                        pending.clear()
                    return
                with lock:
                    total[0] += count

    threads = [threading.Thread(target=work) for _ in range(N_IN_FLIGHT)]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            threads[0].join(0.05)
            report(1 - len(pending) / len(offsets))
            if not threads[0].is_alive():
                for thread in threads:
                    thread.join(0.05)
    finally:
        with lock:
            pending.clear()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    return total[0]
