"""Memory and disk are measured as a job with progress and cancel, and judged against what is normal."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from app.diagnostics import Host, Inspection, Status, measurements
from app.jobs import Job, JobCancelledError, JobState
from app.machine import cpu_name
from app.machine_speeds import MachineSpeeds
from engine.hardware.memory_speed import MemorySpeed
from engine.hardware.system_files import SystemFiles
from tests.support.recorded_machines import write_machine


@pytest.fixture
def inspection(tmp_path: Path) -> Inspection:
    root = write_machine("amd-desktop", tmp_path / "root").root
    (tmp_path / "models").mkdir()
    host = Host("Linux", "x86_64", "", None)
    speeds = tmp_path / "speeds.json"
    return Inspection(SystemFiles(root), host, tmp_path / "models", tmp_path / "kernels", speeds_file=speeds)


def test_both_are_measured_with_phases_and_progress(inspection: Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "bytes_to_measure", lambda _files: 64 << 20)
    (inspection.model_folder / "model.gguf").write_bytes(os.urandom(1 << 20) * 33)
    seen: set[str] = set()
    job = Job("check")
    job.on_change(lambda job: seen.add(job.phase))
    memory, disk = job.run_blocking(lambda job: measurements.measure(inspection, job))
    assert {"memory", "disk"} <= seen and job.state is JobState.DONE
    assert "GB/s with 8 threads" in str(memory.value) and "of the modules' 34.1" in str(memory.value)
    assert "GB/s (model.gguf" in str(disk.value) or "no direct reads" in str(disk.value)


def test_a_cancel_ends_the_measurement(inspection: Inspection) -> None:
    job = Job("check")
    job.cancel()
    with pytest.raises(JobCancelledError):
        job.run_blocking(lambda job: measurements.measure(inspection, job))


@pytest.mark.parametrize(("rate", "status"), [(30e9, Status.OK), (12e9, Status.ADVICE)])
def test_bandwidth_is_held_against_what_the_modules_should_give(
    inspection: Inspection, monkeypatch: pytest.MonkeyPatch, rate: float, status: Status
) -> None:
    monkeypatch.setattr(measurements, "measure_memory", lambda n, _size, _report: MemorySpeed(n, rate, rate, rate))
    finding = measurements.memory_speed(inspection, Job("check"))
    assert finding.status is status
    assert f"{100 * rate / 34.128e9:.0f} %" in str(finding.value)


def test_a_machine_with_little_free_memory_is_not_measured(inspection: Inspection) -> None:
    (inspection.files.root / "proc/meminfo").write_text("MemTotal: 2000000 kB\nMemAvailable: 700000 kB\n")
    finding = measurements.memory_speed(inspection, Job("check"))
    assert finding.status is Status.UNAVAILABLE and "too little memory" in str(finding.value)


def test_a_folder_without_a_model_says_so(inspection: Inspection) -> None:
    for folder in (inspection.model_folder, inspection.model_folder / "gone"):
        finding = measurements.disk_speed(replace(inspection, model_folder=folder), Job("check"))
        assert finding.status is Status.UNAVAILABLE and "no model" in str(finding.value)


def test_what_was_not_measured_says_so(inspection: Inspection) -> None:
    assert [finding.status for finding in measurements.known(inspection)] == [Status.UNAVAILABLE] * 2


def test_what_was_measured_is_known_later_with_its_day(inspection: Inspection) -> None:
    assert inspection.speeds_file is not None
    speeds = MachineSpeeds().with_memory(MemorySpeed(8, 30e9, 28e9, 31e9)).with_disk(0.2e9, "model.gguf")
    speeds.save(inspection.speeds_file)
    assert inspection.speeds == speeds
    memory, disk = measurements.known(inspection)
    assert (memory.status, disk.status) == (Status.OK, Status.ADVICE)
    today = datetime.now().strftime("%Y-%m-%d")
    assert str(memory.value) == f"30.0 GB/s with 8 threads: 88 % of the modules' 34.1, measured on {today}"
    assert str(disk.value) == f"0.20 GB/s (model.gguf, direct reads), measured on {today}"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cpu": "another"}', '{"cpu": "HERE", "memory": 3}', "\x00"])
def test_damaged_speeds_and_those_of_another_machine_count_as_not_measured(inspection: Inspection, text: str) -> None:
    assert inspection.speeds_file is not None
    inspection.speeds_file.write_text(text.replace("HERE", cpu_name()))
    assert inspection.speeds == MachineSpeeds()
