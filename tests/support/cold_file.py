"""A mapped file whose pages are not in memory, and how many are."""

from __future__ import annotations

import ctypes
import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.support.waiting import still_patient


@contextmanager
def cold_file(path: Path, n_bytes: int) -> Iterator[int]:
    """The address of `n_bytes` of random content, mapped; skips the test where files are always in memory."""
    with path.open("wb") as file:
        file.write(np.random.default_rng(0).bytes(n_bytes))
        file.flush()
        os.fsync(file.fileno())
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        array = np.frombuffer(mapped, np.uint8)
        try:
            if n_pages_in_memory(array.ctypes.data, n_bytes) == n_bytes // mmap.PAGESIZE:
                pytest.skip("this folder's files are always in memory")
            yield array.ctypes.data
        finally:
            del array  # the mapping cannot be closed before


def n_pages_in_memory(address: int, n_bytes: int) -> int:
    pages = (ctypes.c_ubyte * (n_bytes // mmap.PAGESIZE))()
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(n_bytes), pages) == 0, ctypes.get_errno()
    return sum(page & 1 for page in pages)


def wait_for_pages(address: int, n_bytes: int) -> None:
    """Return when all of them are in memory; none is touched."""
    is_patient = still_patient("reading ahead")
    while n_pages_in_memory(address, n_bytes) < n_bytes // mmap.PAGESIZE and is_patient():
        time.sleep(0.001)
