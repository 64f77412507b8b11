"""Memory and disk are measured as a job with progress and cancel, and judged against what is normal."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from app.diagnostics import Host, Inspection, Status, measurements
from app.jobs import Job, JobCancelledError, JobState
from engine.hardware.memory_speed import MemorySpeed
from engine.hardware.system_files import SystemFiles
from tests.support.recorded_machines import write_machine


@pytest.fixture
def inspection(tmp_path: Path) -> Inspection:
    root = write_machine("amd-desktop", tmp_path / "root").root
    (tmp_path / "models").mkdir()
    return Inspection(SystemFiles(root), Host("Linux", "x86_64", "", None), tmp_path / "models", tmp_path / "kernels")


def test_both_are_measured_with_phases_and_progress(inspection: Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurements, "_MEASURED_BYTES", 64 << 20)
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


def test_what_was_not_measured_says_so() -> None:
    assert [finding.status for finding in measurements.unmeasured()] == [Status.UNAVAILABLE] * 2
