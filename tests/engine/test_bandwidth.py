"""The memory's speed: a figure that such memory can have, and one that grows with the bytes that are read."""

from __future__ import annotations

import time

import pytest

from engine.hardware.bandwidth import read_bytes_per_second

SIZE = 64 << 20


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_the_speed_is_one_that_memory_has(n_threads: int) -> None:
    assert 2e8 < read_bytes_per_second(n_threads, SIZE) < 2e12


def test_all_of_the_memory_is_read() -> None:
    began_s = time.perf_counter()
    rate = read_bytes_per_second(1, SIZE)
    elapsed_s = time.perf_counter() - began_s
    assert 3 * SIZE / rate < elapsed_s  # the five passes, of which three are no faster than the median
