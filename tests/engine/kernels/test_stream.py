from __future__ import annotations

import numpy as np
import pytest

from engine.kernels.library import KernelLibrary
from engine.kernels.stream import STREAM_BYTES, read_through_reference


@pytest.mark.parametrize("n_blocks", [1, 7, 300])
def test_each_part_of_memory_is_read_whole(library: KernelLibrary, n_blocks: int) -> None:
    n_parts = 3
    random = np.random.default_rng(n_blocks)
    memory = random.integers(-(2**31), 2**31, (n_parts, n_blocks * STREAM_BYTES // 4), dtype=np.int32)
    sums = np.zeros((n_parts, 16), np.int32)
    for part in range(n_parts):
        library.run(
            "read_through",
            chunk=part,
            start=memory.ctypes.data,
            n_bytes=memory.strides[0],
            sums=sums.ctypes.data,
        )
    assert np.array_equal(sums, [read_through_reference(part) for part in memory])
