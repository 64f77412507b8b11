"""Measures how fast this machine's memory can be read: the limit of generation."""

from __future__ import annotations

import ctypes
import mmap
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

_HUGE_PAGE_BYTES = 2 << 20
_MADV_HUGEPAGE = 14
_FILL, _ABSENT = 1, 2  # what the memory holds, and what is looked for in vain
N_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class MemorySpeed:
    """Median, slowest and fastest of the rounds, in bytes per second, of `n_threads` together."""

    n_threads: int
    median: float
    slowest: float
    fastest: float


def measure_memory(
    n_threads: int, n_bytes: int = 512 << 20, progress: Callable[[float], None] | None = None
) -> MemorySpeed:
    """Read `n_bytes` on huge pages, each thread its own part, several times.

    The C library's memchr looks for a byte that is not there: it reads with the CPU's widest registers and does next to
    nothing else. `progress` gets the fraction done, 0 to 1, and may raise to end the measurement. The size should be
    well above the last cache's.
    """
    share = max(n_bytes // n_threads // _HUGE_PAGE_BYTES, 1) * _HUGE_PAGE_BYTES
    report = progress or (lambda _fraction: None)
    report(0.0)
    memory = np.frombuffer(_memory(share * n_threads), np.uint8)  # given back with the array
    for part in range(n_threads):
        memory[part * share : (part + 1) * share] = _FILL
        report(0.3 * (part + 1) / n_threads)
    rates = []
    for number in range(N_ROUNDS):
        rates.append(_round(memory.ctypes.data, share, n_threads))
        report(0.3 + 0.7 * (number + 1) / N_ROUNDS)
    return MemorySpeed(n_threads, statistics.median(rates), min(rates), max(rates))


def _memory(n_bytes: int) -> mmap.mmap:
    area = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError, AttributeError):  # without huge pages it is what it is
        area.madvise(_MADV_HUGEPAGE)
    return area


def _round(address: int, share: int, n_threads: int) -> float:
    search = ctypes.CDLL(None).memchr
    search.argtypes, search.restype = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t), ctypes.c_void_p
    go = threading.Barrier(n_threads + 1)
    ends_s = [0.0] * n_threads

    def read(number: int) -> None:
        go.wait()
        search(address + number * share, _ABSENT, share)
        ends_s[number] = time.perf_counter()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    go.wait()
    start_s = time.perf_counter()
    for thread in threads:
        thread.join()
    return share * n_threads / (max(ends_s) - start_s)
