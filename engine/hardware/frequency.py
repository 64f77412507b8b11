"""How fast the cores may run: governors, energy preference, limits, turbo, throttling, power supply."""

from __future__ import annotations

from dataclasses import dataclass

from engine.hardware.system_files import SystemFiles

_CPUS = "sys/devices/system/cpu"


@dataclass(frozen=True, slots=True)
class Frequency:
    """cpufreq's files, by CPU number; dictionaries are empty where there is no cpufreq (virtual machines, some Arm).

    Frequencies are in kHz. has_turbo is None where the system has no switch for it.
    """

    driver: str | None
    governors: dict[int, str]
    available_governors: tuple[str, ...]
    energy_preferences: dict[int, str]
    current_khz: dict[int, int]
    limit_khz: dict[int, int]  # scaling_max_freq: what is allowed now
    lowest_khz: dict[int, int]
    highest_khz: dict[int, int]  # cpuinfo_max_freq: what the core can do
    has_turbo: bool | None

    @property
    def sets_speed_itself(self) -> bool:
        """Whether the processor picks frequencies by the energy preference, so that "powersave" is no fixed speed."""
        return self.driver in ("intel_pstate", "amd-pstate-epp")


@dataclass(frozen=True, slots=True)
class Throttling:
    """How often the cores and the package were slowed down for heat since the start; None where it is not counted."""

    core_events: int | None
    package_events: int | None


@dataclass(frozen=True, slots=True)
class Power:
    """on_battery is None on a machine without a mains supply that reports itself (a desktop, a server)."""

    on_battery: bool | None
    profile: str | None  # the firmware's platform profile: "low-power", "balanced", "performance"


def read_frequency(files: SystemFiles) -> Frequency:
    """The cpufreq files of all CPUs."""
    cpus = {int(path.rpartition("cpu")[2]): path for path in files.names(_CPUS, r"cpu\d+")}

    def texts(name: str) -> dict[int, str]:
        return {cpu: text for cpu, path in cpus.items() if (text := files.text(f"{path}/cpufreq/{name}"))}

    def numbers(name: str) -> dict[int, int]:
        found = {cpu: files.number(f"{path}/cpufreq/{name}") for cpu, path in cpus.items()}
        return {cpu: number for cpu, number in found.items() if number is not None}

    drivers = texts("scaling_driver")
    available = next(iter(texts("scaling_available_governors").values()), "")
    return Frequency(
        next(iter(drivers.values()), None),
        texts("scaling_governor"),
        tuple(available.split()),
        texts("energy_performance_preference"),
        numbers("scaling_cur_freq"),
        numbers("scaling_max_freq"),
        numbers("cpuinfo_min_freq"),
        numbers("cpuinfo_max_freq"),
        _turbo(files),
    )


def _turbo(files: SystemFiles) -> bool | None:
    no_turbo = files.number(f"{_CPUS}/intel_pstate/no_turbo")
    if no_turbo is not None:
        return no_turbo == 0
    boost = files.number(f"{_CPUS}/cpufreq/boost")
    return None if boost is None else boost != 0


def read_throttling(files: SystemFiles) -> Throttling:
    """The sums of the kernel's thermal_throttle counters (x86 with a machine check architecture that reports them)."""
    core: list[int] = []
    package: dict[int, int] = {}
    for path in files.names(_CPUS, r"cpu\d+"):
        count = files.number(f"{path}/thermal_throttle/core_throttle_count")
        if count is not None:
            core.append(count)
        count = files.number(f"{path}/thermal_throttle/package_throttle_count")
        if count is not None:  # each CPU repeats its package's counter
            socket = files.number(f"{path}/topology/physical_package_id") or 0
            package[socket] = max(count, package.get(socket, 0))
    return Throttling(sum(core) if core else None, sum(package.values()) if package else None)


def read_power(files: SystemFiles) -> Power:
    """Whether a laptop runs on its battery, and the firmware's profile."""
    mains = [
        files.number(f"{path}/online")
        for path in files.names("sys/class/power_supply", r".*")
        if files.text(f"{path}/type") in ("Mains", "USB")
    ]
    known = [online for online in mains if online is not None]
    return Power(not any(known) if known else None, files.text("sys/firmware/acpi/platform_profile"))
