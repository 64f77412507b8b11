"""The probes read recorded machines: laptops, servers, guests and containers, without any of them at hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.hardware.capacity import read_control_group, read_load, read_memory_use
from engine.hardware.dimms import n_channels, parse_modules, read_modules, theoretical_bytes_per_second
from engine.hardware.frequency import read_frequency, read_power, read_throttling
from engine.hardware.kernel_log import read_kernel_log
from engine.hardware.pages import UNLIMITED, read_hugetlb_mounts, read_locked_memory, read_pools, read_transparent_pages
from engine.hardware.processor import Cache, read_caches, read_cores, read_nodes, read_processor
from engine.hardware.surroundings import (
    read_display,
    read_entropy_bits,
    read_kernel,
    read_security,
    read_virtualisation,
)
from engine.hardware.system_files import SystemFiles, choice, cpu_list, cpu_list_text
from tests.support.recorded_machines import NAMES, smbios_table, write_machine

GIB = 1 << 30


def machine(name: str, root: Path) -> SystemFiles:
    return SystemFiles(write_machine(name, root).root)


@pytest.mark.parametrize(
    ("name", "cpu", "n_cpus", "n_cores", "n_sockets", "has_smt"),
    [
        ("intel-hybrid-laptop", "12th Gen Intel(R) Core(TM) i5-1235U", 12, 10, 1, True),
        ("amd-desktop", "AMD Ryzen 7 5800X 8-Core Processor", 16, 8, 1, True),
        ("xeon-two-sockets", "Intel(R) Xeon(R) Platinum 8480+", 16, 8, 2, True),
        ("epyc-zen4", "AMD EPYC 9124 16-Core Processor", 8, 8, 1, False),
        ("kvm-guest", "Intel Xeon Processor (Icelake)", 4, 4, 1, False),
        ("wsl2", "11th Gen Intel(R) Core(TM) i7-11800H @ 2.30GHz", 4, 2, 1, True),
        ("arm-board", "Radxa ROCK 5B", 8, 8, 1, False),
    ],
)
def test_cores_are_told_from_hyper_threads(
    tmp_path: Path, name: str, cpu: str, n_cpus: int, n_cores: int, n_sockets: int, has_smt: bool
) -> None:
    files = machine(name, tmp_path)
    cores = read_cores(files)
    assert read_processor(files).name == cpu
    assert (len(cores.online), cores.n_usable_cores, cores.n_sockets) == (n_cpus, n_cores, n_sockets)
    assert cores.has_smt == has_smt


def test_two_kinds_of_cores_are_found_on_intel_and_arm(tmp_path: Path) -> None:
    laptop = read_cores(machine("intel-hybrid-laptop", tmp_path / "laptop"))
    board = read_cores(machine("arm-board", tmp_path / "board"))
    desktop = read_cores(machine("amd-desktop", tmp_path / "desktop"))
    assert (laptop.performance, laptop.efficiency) == ((0, 1, 2, 3), tuple(range(4, 12)))
    assert (board.performance, board.efficiency) == ((4, 5, 6, 7), (0, 1, 2, 3))
    assert (desktop.performance, desktop.efficiency) == ((), ())


def test_only_cores_that_the_process_may_use_count(tmp_path: Path) -> None:
    files = machine("amd-desktop", tmp_path)
    (tmp_path / "proc/self/status").write_text("Cpus_allowed_list:\t0-2,8\n")
    assert read_cores(files).n_usable_cores == 3


def test_a_shared_cache_counts_once(tmp_path: Path) -> None:
    caches = read_caches(machine("xeon-two-sockets", tmp_path))
    assert Cache(3, "Unified", 107520 << 10, 2) in caches
    assert read_caches(SystemFiles(tmp_path / "nothing")) == ()


def test_memory_nodes_have_their_cpus_and_sizes(tmp_path: Path) -> None:
    nodes = read_nodes(machine("xeon-two-sockets", tmp_path))
    assert [node.cpus for node in nodes] == [(0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)]
    assert [node.total_bytes for node in nodes] == [263844720 << 10, 264257624 << 10]


def test_governors_limits_and_turbo_are_read_for_each_cpu(tmp_path: Path) -> None:
    laptop = read_frequency(machine("intel-hybrid-laptop", tmp_path / "laptop"))
    desktop = read_frequency(machine("amd-desktop", tmp_path / "desktop"))
    assert laptop.sets_speed_itself and not desktop.sets_speed_itself
    assert set(laptop.energy_preferences.values()) == {"balance_power"}
    assert (laptop.highest_khz[0], laptop.highest_khz[4], laptop.has_turbo) == (4_400_000, 3_300_000, True)
    assert (desktop.governors[15], desktop.limit_khz[3], desktop.has_turbo) == ("powersave", 2_800_000, False)
    assert "schedutil" in desktop.available_governors


def test_throttling_counts_a_package_once_and_each_core(tmp_path: Path) -> None:
    throttling = read_throttling(machine("intel-hybrid-laptop", tmp_path / "laptop"))
    assert (throttling.core_events, throttling.package_events) == (4 * 212, 388)
    assert read_throttling(machine("arm-board", tmp_path / "board")).core_events is None


def test_a_laptop_on_its_battery_is_recognised(tmp_path: Path) -> None:
    power = read_power(machine("intel-hybrid-laptop", tmp_path / "laptop"))
    assert (power.on_battery, power.profile) == (True, "balanced")
    assert read_power(machine("amd-desktop", tmp_path / "desktop")).on_battery is None


def test_pools_of_huge_pages_have_size_and_use(tmp_path: Path) -> None:
    pools = read_pools(machine("xeon-two-sockets", tmp_path))
    assert [(pool.page_bytes, pool.n_pages, pool.n_free) for pool in pools] == [(2 << 20, 2048, 2048), (GIB, 0, 0)]


@pytest.mark.parametrize(
    ("name", "mode", "defrag", "refused"),
    [("amd-desktop", "never", "madvise", 0), ("kvm-guest", "always", "never", 980), ("arm-board", None, None, None)],
)
def test_transparent_pages_have_mode_and_counters(
    tmp_path: Path, name: str, mode: str | None, defrag: str | None, refused: int | None
) -> None:
    pages = read_transparent_pages(machine(name, tmp_path))
    assert (pages.mode, pages.defrag, pages.n_refused) == (mode, defrag, refused)


def test_mounts_and_locked_memory(tmp_path: Path) -> None:
    xeon, desktop = machine("xeon-two-sockets", tmp_path / "xeon"), machine("amd-desktop", tmp_path / "desktop")
    nothing = SystemFiles(tmp_path / "nothing")
    assert (read_hugetlb_mounts(xeon), read_hugetlb_mounts(desktop)) == (("/dev/hugepages",), ())
    assert read_hugetlb_mounts(nothing) is None and read_locked_memory(nothing) is None
    limits = read_locked_memory(xeon), read_locked_memory(desktop)
    assert [limit.soft_bytes for limit in limits if limit] == [UNLIMITED, 8 << 20]


def test_limits_of_a_container_are_found_in_version_2(tmp_path: Path) -> None:
    group = read_control_group(machine("container", tmp_path))
    assert (group.version, group.memory_limit_bytes, group.memory_used_bytes) == (2, 6 * GIB, GIB)
    assert (group.n_cpus, group.cpuset, group.n_oom_kills) == (1.5, tuple(range(16)), 2)


def test_the_tightest_limit_of_all_groups_above_counts(tmp_path: Path) -> None:
    files = machine("intel-hybrid-laptop", tmp_path)
    above = tmp_path / "sys/fs/cgroup/user.slice"
    (above / "memory.max").write_text(f"{4 * GIB}\n")
    (above / "user-1000.slice/memory.max").write_text(f"{8 * GIB}\n")
    (above / "cpu.max").write_text("250000 100000\n")
    group = read_control_group(files)
    assert (group.memory_limit_bytes, group.n_cpus) == (4 * GIB, 2.5)


def test_limits_are_found_in_version_1(tmp_path: Path) -> None:
    files = machine("wsl2", tmp_path)
    assert read_control_group(files).memory_limit_bytes is None
    (tmp_path / "sys/fs/cgroup/memory/memory.limit_in_bytes").write_text(f"{3 * GIB}\n")
    (tmp_path / "sys/fs/cgroup/cpu/cpu.cfs_quota_us").write_text("50000\n")
    group = read_control_group(files)
    assert (group.version, group.memory_limit_bytes, group.n_cpus) == (1, 3 * GIB, 0.5)


def test_memory_swap_and_load(tmp_path: Path) -> None:
    files = machine("kvm-guest", tmp_path)
    use, load = read_memory_use(files), read_load(files)
    assert use is not None
    assert (use.available_bytes, use.swap_total_bytes - use.swap_free_bytes) == (610240 << 10, (2097148 - 104857) << 10)
    assert (use.swappiness, use.overcommit) == (60, 2)
    assert (load.average, load.memory_pressure) == (0.3, 18.44)


@pytest.mark.parametrize(
    ("name", "hypervisor", "container"),
    [
        ("intel-hybrid-laptop", None, None),
        ("xeon-two-sockets", None, None),
        ("kvm-guest", "KVM", None),
        ("wsl2", "WSL2", None),
        ("container", "KVM", "docker"),
        ("arm-board", None, None),
    ],
)
def test_virtual_machines_and_containers_are_recognised(
    tmp_path: Path, name: str, hypervisor: str | None, container: str | None
) -> None:
    found = read_virtualisation(machine(name, tmp_path))
    assert (found.hypervisor, found.container) == (hypervisor, container)


def test_security_kernel_display_and_entropy(tmp_path: Path) -> None:
    xeon, laptop = machine("xeon-two-sockets", tmp_path / "xeon"), machine("intel-hybrid-laptop", tmp_path / "laptop")
    assert read_security(xeon).selinux == "enforcing" and read_security(xeon).denies_executable_memory
    assert (read_security(laptop).has_apparmor, read_security(laptop).profile) == (True, "unconfined")
    assert read_kernel(xeon).version == (5, 14)
    assert (read_display(laptop).kind, read_display(laptop).desktop) == ("wayland", "ubuntu:GNOME")
    assert read_display(xeon).kind is None
    assert read_entropy_bits(xeon) == 256


def test_the_kernel_log_names_what_was_killed_and_what_failed(tmp_path: Path) -> None:
    desktop = read_kernel_log(machine("amd-desktop", tmp_path / "desktop"))
    assert desktop.source == "dev/kmsg"
    assert len(desktop.oom_lines) == 1 and "3321 (llama-server)" in desktop.oom_lines[0]
    assert desktop.huge_page_lines == (
        "HugeTLB: allocating 4096 of page size 2.00 MiB failed.  Only allocated 3121 hugepages.",
    )
    sound = read_kernel_log(machine("epyc-zen4", tmp_path / "epyc"))
    assert sound.oom_lines == sound.huge_page_lines == ()


def test_a_forbidden_kernel_log_is_told_from_an_absent_one(tmp_path: Path) -> None:
    laptop = read_kernel_log(machine("intel-hybrid-laptop", tmp_path / "laptop"))
    assert (laptop.source, laptop.is_forbidden, laptop.n_oom_kills) == (None, True, 1)
    assert not read_kernel_log(SystemFiles(tmp_path / "nothing")).is_forbidden


def test_memory_modules_give_the_bandwidth_of_their_channels(tmp_path: Path) -> None:
    desktop = read_modules(machine("amd-desktop", tmp_path / "desktop"))
    epyc = read_modules(machine("epyc-zen4", tmp_path / "epyc"))
    assert desktop is not None and epyc is not None
    assert (n_channels(desktop), n_channels(epyc)) == (2, 4)
    assert theoretical_bytes_per_second(desktop) == 2 * 2133e6 * 8
    assert theoretical_bytes_per_second(epyc) == 4 * 4800e6 * 8
    assert read_modules(machine("intel-hybrid-laptop", tmp_path / "laptop")) is None


@given(st.binary(max_size=200))
def test_a_damaged_firmware_table_is_no_error(rest: bytes) -> None:
    parse_modules(rest)
    sound = smbios_table("16384 64 DDR4 3200 2133 DIMM_A2 BANK0")
    assert len(parse_modules(sound[:-6] + rest)) >= 1


@pytest.mark.parametrize("name", NAMES)
def test_every_probe_reads_every_machine_without_an_error(tmp_path: Path, name: str) -> None:
    files = machine(name, tmp_path)
    for probe in PROBES:
        probe(files)


def test_a_machine_without_any_file_is_no_error(tmp_path: Path) -> None:
    files = SystemFiles(tmp_path)
    for probe in PROBES:
        probe(files)
    assert read_cores(files).n_usable_cores == 0
    assert read_memory_use(files) is None
    assert read_frequency(files).governors == {}


@given(st.lists(st.integers(0, 500), max_size=30))
def test_a_cpu_list_survives_being_written_and_read(cpus: list[int]) -> None:
    assert cpu_list(cpu_list_text(tuple(cpus))) == tuple(sorted(set(cpus)))


@given(st.text(max_size=40))
def test_any_text_is_some_cpu_list_and_some_choice(text: str) -> None:
    cpu_list(text)
    choice(text)


PROBES = (
    read_processor,
    read_cores,
    read_caches,
    read_nodes,
    read_frequency,
    read_throttling,
    read_power,
    read_pools,
    read_transparent_pages,
    read_hugetlb_mounts,
    read_locked_memory,
    read_memory_use,
    read_control_group,
    read_load,
    read_virtualisation,
    read_security,
    read_kernel,
    read_display,
    read_entropy_bits,
    read_kernel_log,
    read_modules,
)
