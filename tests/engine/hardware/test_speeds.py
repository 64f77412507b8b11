"""Measuring memory and disk: plausible figures, progress, and an end when one is asked for."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from engine.hardware.disk_speed import LEAST_BYTES, DirectReadsRefusedError, measure_disk
from engine.hardware.memory_speed import LittleMemoryError, bytes_to_measure, measure_memory
from engine.hardware.system_files import SystemFiles
from tests.support.recorded_machines import write_machine


class Stopped(Exception):
    pass


def stop(fraction: float) -> None:
    if fraction > 0.4:
        raise Stopped


def big_file(folder: Path) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(os.urandom(1 << 20) * (LEAST_BYTES >> 20))
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return path


def test_memory_reads_at_a_plausible_rate_and_reports_its_progress() -> None:
    fractions: list[float] = []
    speed = measure_memory(2, 64 << 20, fractions.append)
    assert 1e6 < speed.slowest <= speed.median <= speed.fastest < 5e12
    assert fractions[0] == 0.0 and fractions[-1] == 1.0 and fractions == sorted(fractions)


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_the_speed_is_one_that_memory_has(n_threads: int) -> None:
    assert 1e6 < measure_memory(n_threads, 64 << 20).median < 2e12


def test_all_of_the_memory_is_read() -> None:
    began_s = time.perf_counter()
    rate = measure_memory(1, 64 << 20).median
    elapsed_s = time.perf_counter() - began_s
    assert 3 * (64 << 20) / rate < elapsed_s  # the five passes, of which three are no faster than the median


@pytest.mark.parametrize(("cache", "expected"), [("32768K", 512 << 20), ("300M", 4 * (300 << 20))])
def test_so_much_is_read_that_no_cache_can_serve_it(tmp_path: Path, cache: str, expected: int) -> None:
    machine = write_machine("amd-desktop", tmp_path).root
    for size in machine.glob("sys/devices/system/cpu/cpu*/cache/index3/size"):
        size.write_text(cache)
    assert bytes_to_measure(SystemFiles(machine)) == expected


def test_a_machine_with_little_free_memory_is_not_measured_and_told_how_much_it_takes(tmp_path: Path) -> None:
    machine = write_machine("amd-desktop", tmp_path).root
    (machine / "proc/meminfo").write_text("MemTotal: 2000000 kB\nMemAvailable: 700000 kB\n")
    with pytest.raises(LittleMemoryError, match=r"needs 0\.5 GB.*0\.7 GB are available"):
        bytes_to_measure(SystemFiles(machine))


def test_a_memory_measurement_can_be_ended() -> None:
    with pytest.raises(Stopped):
        measure_memory(1, 64 << 20, stop)


def test_a_disk_reads_the_file_whole_and_reports_its_progress(tmp_path: Path) -> None:
    fractions: list[float] = []
    try:
        speed = measure_disk(big_file(tmp_path), progress=fractions.append)
    except DirectReadsRefusedError:
        pytest.skip("the folder for temporary files has no direct reads")
    assert speed.n_bytes == LEAST_BYTES
    assert 1e6 < speed.bytes_per_second < 1e12
    assert fractions and fractions == sorted(fractions)


def test_a_disk_measurement_can_be_ended(tmp_path: Path) -> None:
    def stop_at_once(fraction: float) -> None:
        raise Stopped

    try:
        with pytest.raises(Stopped):
            measure_disk(big_file(tmp_path), progress=stop_at_once)
    except DirectReadsRefusedError:
        pytest.skip("the folder for temporary files has no direct reads")


def test_a_file_too_small_to_measure_with_is_refused_with_the_size_expected(tmp_path: Path) -> None:
    small = tmp_path / "small.gguf"
    small.write_bytes(bytes(4096))
    with pytest.raises(OSError, match=r"at least 32 MiB|direct reads"):
        measure_disk(small)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"):
        measure_disk(tmp_path / "gone.gguf")
