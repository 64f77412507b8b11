"""Checks of what slows the cores down: governor, energy preference, limits, turbo, heat, power, other programs."""

from __future__ import annotations

from collections import Counter

from app.diagnostics.finding import Finding, Fix, Group, Status, Verb, unavailable
from app.diagnostics.inspection import Inspection
from app.diagnostics.message import Message, gigahertz, text, verbatim
from engine.hardware.capacity import read_load
from engine.hardware.frequency import read_power, read_throttling

_GROUP = Group.SPEED
_SLOW_PREFERENCES = {"power", "balance_power"}
_CAPPED = 0.95
_BUSY = 0.5
_GOVERNOR_COMMAND = "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"


def _no_cpufreq(inspection: Inspection) -> Message:
    if inspection.host.system != "Linux":
        return text("SystemCheck", "only Linux shows this in files")
    if inspection.virtualisation.hypervisor:
        return text("SystemCheck", "the host of this virtual machine sets the frequencies")
    return text("SystemCheck", "the kernel offers no control over frequencies (cpufreq)")


def governor(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Frequency governor")
    why = text(
        "SystemCheck",
        "Generation reads memory between short waits. A governor that lowers "
        "the frequency when a core waits makes each "
        "token start slowly.",
    )
    frequency = inspection.frequency
    if not frequency.governors:
        return unavailable("governor", _GROUP, title, _no_cpufreq(inspection), why)
    value = text("SystemCheck", "{governors} (driver {driver})").format(
        governors=_counted(frequency.governors), driver=frequency.driver or "?"
    )
    names = set(frequency.governors.values())
    slow = {"conservative"} if frequency.sets_speed_itself else {"conservative", "powersave"}
    if names <= {"performance"} or not names & slow:
        return Finding("governor", _GROUP, title, Status.OK, value, why)
    advice = text("SystemCheck", "This governor keeps the cores at or near their lowest frequency. Choose performance.")
    return Finding(
        "governor", _GROUP, title, Status.PROBLEM, value, why, advice, _GOVERNOR_COMMAND, _governor_fix(inspection)
    )


def energy_preference(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Energy preference")
    why = text("SystemCheck", "It tells the processor how soon to raise the frequency when work comes.")
    found = inspection.frequency.energy_preferences
    if not found:
        reason = (
            text("SystemCheck", "the driver {driver} has none").format(driver=inspection.frequency.driver)
            if inspection.frequency.driver
            else _no_cpufreq(inspection)
        )
        return unavailable("energy-preference", _GROUP, title, reason, why)
    value = verbatim(_counted(found))
    if not set(found.values()) & _SLOW_PREFERENCES:
        return Finding("energy-preference", _GROUP, title, Status.OK, value, why)
    advice = text("SystemCheck", "It favours saving over speed. The governor performance also sets this preference.")
    return Finding(
        "energy-preference",
        _GROUP,
        title,
        Status.ADVICE,
        value,
        why,
        advice,
        "echo balance_performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference",
        _governor_fix(inspection),
    )


def _governor_fix(inspection: Inspection) -> Fix | None:
    available = inspection.frequency.available_governors
    if not inspection.can_fix or "performance" not in available:
        return None
    effect = text(
        "SystemCheck", "The governor of all cores becomes performance, until it is undone or the next restart."
    )
    return Fix(Verb.GOVERNOR, ("performance",), effect)


def frequencies(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Frequencies")
    why = text("SystemCheck", "Prompts are read as fast as the cores compute; a cap on the frequency caps them.")
    frequency = inspection.frequency
    if not frequency.highest_khz:
        return unavailable("frequency", _GROUP, title, _no_cpufreq(inspection), why)
    highest, lowest = max(frequency.highest_khz.values()), min(frequency.lowest_khz.values(), default=0)
    value = text("SystemCheck", "{lowest} to {highest}, now {now}").format(
        lowest=gigahertz(lowest),
        highest=gigahertz(highest),
        now=gigahertz(max(frequency.current_khz.values())) if frequency.current_khz else "?",
    )
    capped = [
        cpu
        for cpu, limit_khz in frequency.limit_khz.items()
        if limit_khz < _CAPPED * frequency.highest_khz.get(cpu, limit_khz)
    ]
    if not capped:
        return Finding("frequency", _GROUP, title, Status.OK, value, why)
    limit_khz = min(frequency.limit_khz[cpu] for cpu in capped)
    advice = text("SystemCheck", "{n} CPUs may not go beyond {limit}. Lift the limit.").format(
        n=len(capped), limit=gigahertz(limit_khz)
    )
    command = f"echo {highest} | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_max_freq"
    return Finding("frequency", _GROUP, title, Status.PROBLEM, value, why, advice, command)


def turbo(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Turbo")
    why = text("SystemCheck", "Above the base frequency a core computes faster as long as it stays cool.")
    has_turbo = inspection.frequency.has_turbo
    if has_turbo is None:
        return unavailable("turbo", _GROUP, title, text("SystemCheck", "there is no switch for it"), why)
    if has_turbo:
        return Finding("turbo", _GROUP, title, Status.OK, text("SystemCheck", "on"), why)
    advice = text("SystemCheck", "Switch it on, unless it was switched off to keep the machine quiet or cool.")
    is_intel = inspection.files.exists("sys/devices/system/cpu/intel_pstate/no_turbo")
    command = (
        "echo 0 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo"
        if is_intel
        else "echo 1 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    )
    return Finding("turbo", _GROUP, title, Status.ADVICE, text("SystemCheck", "off"), why, advice, command)


def throttling(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Throttling by heat")
    why = text(
        "SystemCheck", "A core that grew too hot was slowed down by the hardware; speed then varies by the minute."
    )
    found = read_throttling(inspection.files)
    if found.core_events is None and found.package_events is None:
        reason = text("SystemCheck", "the kernel counts no such events on this machine")
        return unavailable("throttling", _GROUP, title, reason, why)
    value = text("SystemCheck", "{cores} events of cores, {packages} of packages since the start").format(
        cores=found.core_events or 0, packages=found.package_events or 0
    )
    if not found.core_events and not found.package_events:
        return Finding("throttling", _GROUP, title, Status.OK, value, why)
    advice = text("SystemCheck", "Give the machine air, clean its fans, or use one thread less than there are cores.")
    return Finding("throttling", _GROUP, title, Status.ADVICE, value, why, advice)


def power(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Power supply")
    why = text("SystemCheck", "On battery, and in the profile low-power, most firmware lowers all frequencies.")
    found = read_power(inspection.files)
    if found.on_battery is None and found.profile is None:
        reason = text("SystemCheck", "the machine reports no mains supply and no power profile")
        return unavailable("power", _GROUP, title, reason, why)
    supply = text("SystemCheck", "on battery") if found.on_battery else text("SystemCheck", "on mains")
    value = text("SystemCheck", "{supply}, profile {profile}").format(supply=supply, profile=found.profile or "-")
    if found.on_battery or found.profile == "low-power":
        advice = text("SystemCheck", "Plug the machine in, or choose the profile performance.")
        command = "powerprofilesctl set performance"
        return Finding("power", _GROUP, title, Status.ADVICE, value, why, advice, command)
    return Finding("power", _GROUP, title, Status.OK, value, why)


def load(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Other programs")
    why = text("SystemCheck", "Programs that compute take cores and memory bandwidth from the engine.")
    found = read_load(inspection.files)
    if found.average is None:
        return unavailable("load", _GROUP, title, text("SystemCheck", "the system does not tell its load"), why)
    n_cpus = max(len(inspection.cores.online), 1)
    value = text("SystemCheck", "{load:.2f} processes ran on average over the last minute, on {cpus} CPUs").format(
        load=found.average, cpus=n_cpus
    )
    if found.average <= _BUSY * n_cpus:
        return Finding("load", _GROUP, title, Status.OK, value, why)
    advice = text("SystemCheck", "If that was not Colibri itself, see which programs compute, and close them.")
    return Finding("load", _GROUP, title, Status.ADVICE, value, why, advice, "top -o %CPU")


def _counted(values: dict[int, str]) -> str:
    """ "performance" where all agree, else "powersave (12 CPUs), performance (4 CPUs)"."""
    counts = Counter(values.values()).most_common()
    return counts[0][0] if len(counts) == 1 else ", ".join(f"{name} x {count}" for name, count in counts)
