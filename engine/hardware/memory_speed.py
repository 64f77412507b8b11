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
from typing import TYPE_CHECKING

import numpy as np

from engine.errors import ColibriError
from engine.hardware.capacity import read_memory_use
from engine.hardware.processor import read_caches
from engine.hardware.system_files import SystemFiles

if TYPE_CHECKING:
    from engine.kernels.library import KernelLibrary

_HUGE_PAGE_BYTES = 2 << 20
_MADV_HUGEPAGE = 14
_VALUE = 3
_SUM_BYTES = 64  # of one part, see kernels/stream.py
_LEAST_BYTES = 512 << 20
_CACHE_FACTOR = 4  # a cache that keeps a quarter of what streams through it still gives nothing back
_SPARE_BYTES = 1 << 30
N_ROUNDS = 5


class LittleMemoryError(ColibriError):
    """Too little memory is free to measure with; the text says how much would be needed."""


@dataclass(frozen=True, slots=True)
class MemorySpeed:
    """Median, slowest and fastest of the rounds, in bytes per second, of `n_threads` together."""

    n_threads: int
    median: float
    slowest: float
    fastest: float


def bytes_to_measure(files: SystemFiles) -> int:
    """How much must be read so that memory is measured and not the last cache.

    Raises LittleMemoryError where so much is not free.
    """
    last_cache_bytes = max((cache.n_bytes * cache.n_caches for cache in read_caches(files)), default=0)
    n_bytes = max(_LEAST_BYTES, _CACHE_FACTOR * last_cache_bytes)
    memory = read_memory_use(files)
    if memory is not None and memory.available_bytes < n_bytes + _SPARE_BYTES:
        raise LittleMemoryError(
            f"Measuring the memory's speed needs {n_bytes / 1e9:.1f} GB, four times the last cache, and leaves 1 GB to "
            f"others; {memory.available_bytes / 1e9:.1f} GB are available. Close other programs, or unload the model."
        )
    return n_bytes


def measure_memory(
    n_threads: int, n_bytes: int | None = None, progress: Callable[[float], None] | None = None
) -> MemorySpeed:
    """Read `n_bytes` on huge pages (None: what this machine needs), each thread its own part, several times.

    The engine's own vectors read and add; nothing is kept in a cache that is much smaller than `n_bytes`. `progress`
    gets the fraction done, 0 to 1, and may raise to end the measurement.

    Raises LittleMemoryError, MemoryError where the system refuses the memory, KernelBuildError.
    """
    from engine.kernels.library import load_library  # noqa: PLC0415
    from engine.kernels.tiers import choose_tier  # noqa: PLC0415

    report = progress or (lambda _fraction: None)
    report(0.0)
    kernels = load_library(choose_tier())
    kernels.require(["read_through"], lambda _name, _fraction: report(0.0))
    wanted = bytes_to_measure(SystemFiles()) if n_bytes is None else n_bytes
    share = max(wanted // n_threads // _HUGE_PAGE_BYTES, 1) * _HUGE_PAGE_BYTES
    memory = np.frombuffer(_memory(share * n_threads), np.int32)  # given back with the array
    start = -(-memory.ctypes.data // _HUGE_PAGE_BYTES) * _HUGE_PAGE_BYTES
    offset = (start - memory.ctypes.data) // 4
    for part in range(n_threads):
        memory[offset + part * share // 4 : offset + (part + 1) * share // 4] = _VALUE
        report(0.3 * (part + 1) / n_threads)
    rates = []
    for number in range(N_ROUNDS):
        rates.append(_round(kernels, start, share, n_threads))
        report(0.3 + 0.7 * (number + 1) / N_ROUNDS)
    return MemorySpeed(n_threads, statistics.median(rates), min(rates), max(rates))


def _memory(n_bytes: int) -> mmap.mmap:
    """A mapping with room for `n_bytes` from its first whole huge page on."""
    try:
        area = mmap.mmap(-1, n_bytes + _HUGE_PAGE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"the system refused {n_bytes} bytes: {error}") from error
    with suppress(OSError, AttributeError):  # without huge pages it is what it is
        area.madvise(_MADV_HUGEPAGE)
    return area


def _round(kernels: KernelLibrary, start: int, share: int, n_threads: int) -> float:
    """Bytes per second of one pass: from the first thread's start to the last one's end."""
    sums = np.zeros((n_threads, _SUM_BYTES // 4), np.int32)
    record = kernels.pack("read_through", {"start": start, "n_bytes": share, "sums": sums.ctypes.data})
    together = threading.Barrier(n_threads)
    times_s = [(0.0, 0.0)] * n_threads

    def read(number: int) -> None:
        call = kernels.function("read_through")
        together.wait()
        began_s = time.perf_counter()
        call(record.ctypes.data, number, 0)
        times_s[number] = began_s, time.perf_counter()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if int(sums.sum(dtype=np.int32)) != ctypes.c_int32(share // 4 * n_threads * _VALUE).value:
        raise RuntimeError("the memory that was measured did not hold what had been written: is it damaged?")
    return share * n_threads / (max(end for _, end in times_s) - min(began for began, _ in times_s))
