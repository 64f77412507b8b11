"""Measures how fast this machine's memory can be read by one thread and by more: the limit for decoding.

python -m tests.benchmarks.read_bandwidth [--threads 1 2] [--size-mb 1500] [--json]
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import statistics
import threading
import time

import numpy as np
from numba import njit

from engine.kernels.tiers import choose_tier

os.environ["COLIBRI_BUILD_TIER"] = choose_tier().name  # read when the vector module is imported
from engine.kernels.simd import load_i32x16, reduce_sum_i32, zero_i32x16

MADV_HUGEPAGE = 14
N_ROUNDS = 7
STEP_BYTES = 256


@njit(nogil=True)
def read_all(address, n_bytes):
    """Add up all vectors (any total will do, only the reading counts): four independent registers, 64 bytes each."""
    a, b, c, d = zero_i32x16(), zero_i32x16(), zero_i32x16(), zero_i32x16()
    for _ in range(n_bytes // STEP_BYTES):
        a = a + load_i32x16(address)
        b = b + load_i32x16(address + 64)
        c = c + load_i32x16(address + 128)
        d = d + load_i32x16(address + 192)
        address += STEP_BYTES
    return reduce_sum_i32(a + b + c + d)


def huge_page_memory(n_bytes: int) -> np.ndarray:
    """Private memory on transparent huge pages, every page touched, (n_bytes,) uint8."""
    area = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.madvise(MADV_HUGEPAGE)
    memory = np.frombuffer(area, np.uint8)
    memory[:] = 1
    return memory


def bytes_per_second(memory: np.ndarray, n_threads: int) -> float:
    """One pass over the memory, each thread its own equal part."""
    share = memory.nbytes // n_threads // STEP_BYTES * STEP_BYTES
    starts = [memory.ctypes.data + index * share for index in range(n_threads)]
    threads = [threading.Thread(target=read_all, args=(address, share)) for address in starts]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return share * n_threads / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--size-mb", type=int, default=1500)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    memory = huge_page_memory(arguments.size_mb * 1_000_000 // 4096 * 4096)
    read_all(memory.ctypes.data, STEP_BYTES)
    rates = {n: [bytes_per_second(memory, n) / 1e9 for _ in range(N_ROUNDS)] for n in arguments.threads}
    if arguments.json:
        print(json.dumps({"unit": "GB/s", "rates": rates}))
        return
    for n_threads, values in rates.items():
        middle = statistics.median(values)
        print(f"{n_threads} threads: median {middle:.1f} GB/s, best {max(values):.1f}, worst {min(values):.1f}")


if __name__ == "__main__":
    main()
