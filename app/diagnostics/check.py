"""Runs all checks that only read: quick enough to be run whenever the page is opened."""

from __future__ import annotations

from collections.abc import Callable

from app.diagnostics import memory_checks, processor_checks, speed_checks, storage_checks, system_checks
from app.diagnostics.finding import Finding
from app.diagnostics.inspection import Inspection

CHECKS: tuple[Callable[[Inspection], Finding], ...] = (
    processor_checks.instructions,
    processor_checks.tiles,
    processor_checks.cores,
    processor_checks.caches,
    processor_checks.nodes,
    speed_checks.governor,
    speed_checks.energy_preference,
    speed_checks.frequencies,
    speed_checks.turbo,
    speed_checks.throttling,
    speed_checks.power,
    speed_checks.load,
    memory_checks.huge_pages,
    memory_checks.transparent_pages,
    memory_checks.mounts,
    memory_checks.locked_memory,
    memory_checks.memory,
    memory_checks.swap,
    memory_checks.control_group,
    system_checks.virtualisation,
    system_checks.kernel,
    system_checks.kernel_log,
    system_checks.security,
    system_checks.display,
    system_checks.entropy,
    storage_checks.disk_space,
    storage_checks.kernel_cache,
)


def run_checks(inspection: Inspection) -> list[Finding]:
    """The findings, in the order in which they are shown. What a machine lacks is UNAVAILABLE, with the reason."""
    return [check(inspection) for check in CHECKS]
