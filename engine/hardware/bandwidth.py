"""Measures how fast memory can be read: decoding reads every weight once a token, so this is its limit."""

from __future__ import annotations

import ctypes
import mmap
import statistics
import threading
import time

_MADV_HUGEPAGE = 14
_ABSENT = 0xA5  # a byte that the memory does not hold, so that a search for it reads everything
_FILLING = b"\x01"
_N_ROUNDS = 5

_libc = ctypes.CDLL(None)
_libc.memchr.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
_libc.memchr.restype = ctypes.c_void_p


def read_bytes_per_second(n_threads: int, n_bytes: int = 256 << 20) -> float:
    """The median speed of a few passes over `n_bytes` of memory by `n_threads` threads, each its own part.

    The memory must be several times the caches. It is the C library's search for a byte that reads: as wide as the
    processor can, and without the interpreter's lock. Takes about a quarter of a second. Raises MemoryError or OSError
    where the system has not that much.
    """
    memory = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        if hasattr(memory, "madvise"):
            memory.madvise(_MADV_HUGEPAGE)
    except OSError:
        pass  # without huge pages it is what it is
    memory.write(_FILLING * n_bytes)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    share = n_bytes // n_threads
    speeds = []
    for _ in range(_N_ROUNDS):
        threads = [
            threading.Thread(target=_libc.memchr, args=(address + number * share, _ABSENT, share))
            for number in range(n_threads)
        ]
        began_s = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        speeds.append(n_threads * share / (time.perf_counter() - began_s))
    return statistics.median(speeds)
