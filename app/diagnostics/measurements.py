"""Measures memory and disk as a job, and judges the figures."""

from __future__ import annotations

import logging
from datetime import datetime
from pathlib import Path

from app.diagnostics.finding import Finding, Group, Status, unavailable
from app.diagnostics.inspection import Inspection
from app.diagnostics.message import Message, text, verbatim
from app.jobs import Job
from app.machine_speeds import MachineSpeeds
from engine.hardware.dimms import read_modules, theoretical_bytes_per_second
from engine.hardware.disk_speed import LEAST_BYTES, DirectReadsRefusedError, measure_disk
from engine.hardware.memory_speed import LittleMemoryError, MemorySpeed, bytes_to_measure, measure_memory

_LEAST_SHARE = 0.5  # of what the modules should give
_LEAST_BYTES_PER_CORE = 4e9
_SLOW_DISK = 0.4e9

log = logging.getLogger(__name__)


def known(inspection: Inspection) -> list[Finding]:
    """What was measured earlier on this machine; what was not says so."""
    speeds = inspection.speeds
    reason = text("SystemCheck", "it was not measured yet (a few seconds)")
    memory = disk = None
    if speeds.memory is not None:
        memory = _judged_memory(inspection, speeds.memory, speeds.memory_measured_at)
    if speeds.disk is not None:
        disk = _judged_disk(speeds.disk, speeds.disk_file, speeds.disk_measured_at)
    return [
        memory or unavailable("memory-speed", Group.MEMORY, _MEMORY_TITLE, reason, _MEMORY_WHY),
        disk or unavailable("disk-speed", Group.STORAGE, _DISK_TITLE, reason, _DISK_WHY),
    ]


def measure(inspection: Inspection, job: Job) -> list[Finding]:
    """Measure both, for some seconds, and keep the figures. Raises JobCancelledError at a cancel."""
    return [memory_speed(inspection, job), disk_speed(inspection, job)]


_MEMORY_TITLE = text("SystemCheck", "Memory bandwidth")
_MEMORY_WHY = text(
    "SystemCheck",
    "Each token reads all active weights once, so bandwidth divided by their size is the limit of tokens per second; "
    "Colibri's kernels reach 87 to 94 % of it with two threads.",
)
_DISK_TITLE = text("SystemCheck", "Disk speed")
_DISK_WHY = text(
    "SystemCheck",
    "Opening a model, and experts that do not fit memory, wait for the disk. 1 to 7 GB/s is usual for an SSD (NVMe).",
)


def memory_speed(inspection: Inspection, job: Job) -> Finding:
    """The read bandwidth of all cores together, against what the modules should give where that is readable."""
    job.report("memory")
    n_threads = max(inspection.cores.n_usable_cores, 1)
    try:
        n_bytes = bytes_to_measure(inspection.files)
        speed = measure_memory(n_threads, n_bytes, lambda fraction: _progress(job, fraction))
    except (LittleMemoryError, MemoryError):
        reason = text("SystemCheck", "too little memory is free to measure with")
        return unavailable("memory-speed", Group.MEMORY, _MEMORY_TITLE, reason, _MEMORY_WHY)
    _keep(inspection, inspection.speeds.with_memory(speed))
    return _judged_memory(inspection, speed, None)


def _judged_memory(inspection: Inspection, speed: MemorySpeed, measured_at: datetime | None) -> Finding:
    modules = read_modules(inspection.files)
    limit = theoretical_bytes_per_second(modules) if modules else None
    if limit is None:
        value = text("SystemCheck", "{rate:.1f} GB/s with {threads} threads ({low:.1f} to {high:.1f})").format(
            rate=speed.median / 1e9,
            threads=speed.n_threads,
            low=speed.slowest / 1e9,
            high=speed.fastest / 1e9,
        )
        is_slow = speed.median < _LEAST_BYTES_PER_CORE * min(speed.n_threads, 4)
    else:
        value = text(
            "SystemCheck", "{rate:.1f} GB/s with {threads} threads: {share:.0f} % of the modules' {limit:.1f}"
        ).format(
            rate=speed.median / 1e9,
            threads=speed.n_threads,
            share=100 * speed.median / limit,
            limit=limit / 1e9,
        )
        is_slow = speed.median < _LEAST_SHARE * limit
    value = _dated(value, measured_at)
    if not is_slow:
        return Finding("memory-speed", Group.MEMORY, _MEMORY_TITLE, Status.OK, value, _MEMORY_WHY)
    advice = text(
        "SystemCheck",
        "That is little. Are all channels filled, is the memory's profile (XMP, EXPO) on, do others compute?",
    )
    return Finding("memory-speed", Group.MEMORY, _MEMORY_TITLE, Status.ADVICE, value, _MEMORY_WHY, advice)


def disk_speed(inspection: Inspection, job: Job) -> Finding:
    """Direct reads of the largest model in the folder."""
    job.report("disk")

    def missing(reason: Message) -> Finding:
        return unavailable("disk-speed", Group.STORAGE, _DISK_TITLE, reason, _DISK_WHY)

    path = _largest_model(inspection.model_folder)
    if path is None:
        return missing(text("SystemCheck", "there is no model of 32 MB or more to read"))
    try:
        speed = measure_disk(path, progress=lambda fraction: _progress(job, fraction))
    except DirectReadsRefusedError:
        return missing(text("SystemCheck", "the file system has no direct reads"))
    except OSError as error:
        return missing(verbatim(f"{error.strerror}: {path}"))
    _keep(inspection, inspection.speeds.with_disk(speed.bytes_per_second, path.name))
    return _judged_disk(speed.bytes_per_second, path.name, None)


def _judged_disk(bytes_per_second: float, name: str, measured_at: datetime | None) -> Finding:
    value = text("SystemCheck", "{rate:.2f} GB/s ({name}, direct reads)").format(rate=bytes_per_second / 1e9, name=name)
    value = _dated(value, measured_at)
    if bytes_per_second >= _SLOW_DISK:
        return Finding("disk-speed", Group.STORAGE, _DISK_TITLE, Status.OK, value, _DISK_WHY)
    advice = text("SystemCheck", "Keep models on an SSD inside the machine.")
    return Finding("disk-speed", Group.STORAGE, _DISK_TITLE, Status.ADVICE, value, _DISK_WHY, advice)


def _dated(value: Message, measured_at: datetime | None) -> Message:
    if measured_at is None:
        return value
    dated = text("SystemCheck", "{value}, measured on {day}")
    return dated.format(value=value, day=measured_at.astimezone().strftime("%Y-%m-%d"))


def _keep(inspection: Inspection, speeds: MachineSpeeds) -> None:
    if inspection.speeds_file is None:
        return
    try:
        speeds.save(inspection.speeds_file)
    except OSError as error:
        log.warning("the measured speeds are not kept: %s", error)


def _largest_model(folder: Path) -> Path | None:
    try:
        sizes = {path: path.stat().st_size for path in folder.rglob("*.gguf") if path.is_file()}
    except OSError:
        return None
    path = max(sizes, key=lambda path: sizes[path], default=None)
    return path if path is not None and sizes[path] >= LEAST_BYTES else None


def _progress(job: Job, fraction: float) -> None:
    job.check()
    job.report(fraction=fraction)
