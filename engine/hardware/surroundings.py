"""What the program runs inside: virtual machine, WSL, container, kernel, security modules, display, entropy."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engine.hardware.system_files import SystemFiles

_HYPERVISORS = (  # what DMI says of machines that are none
    ("KVM", r"QEMU|KVM|Standard PC|Google Compute|Amazon EC2|OpenStack|DigitalOcean|Hetzner"),
    ("VMware", r"VMware"),
    ("VirtualBox", r"VirtualBox|innotek"),
    ("Hyper-V", r"Microsoft Corporation.*Virtual Machine"),
    ("Xen", r"\bXen\b"),
    ("Parallels", r"Parallels"),
    ("Bochs", r"Bochs"),
)
_CONTAINERS = (("docker", r"/docker[/-]"), ("podman", r"libpod"), ("kubernetes", r"/kubepods"), ("lxc", r"/lxc[/.]"))


@dataclass(frozen=True, slots=True)
class Virtualisation:
    """Names of what lies between the program and the machine; None where nothing was found.

    hypervisor: "KVM", "VMware", "WSL2", ... or "unknown"; container: "docker", "podman", ... or "unknown".
    """

    hypervisor: str | None
    container: str | None


@dataclass(frozen=True, slots=True)
class Security:
    """selinux: "enforcing", "permissive", None without SELinux. profile: AppArmor's for this process."""

    selinux: str | None
    denies_executable_memory: bool  # SELinux's boolean deny_execmem
    has_apparmor: bool | None
    profile: str | None


@dataclass(frozen=True, slots=True)
class Kernel:
    release: str | None
    version: tuple[int, int]  # (6, 8); (0, 0) where it is not known


@dataclass(frozen=True, slots=True)
class Display:
    """How windows are shown: "wayland", "x11", None without a display."""

    kind: str | None
    desktop: str | None


def read_virtualisation(files: SystemFiles) -> Virtualisation:
    """From the kernel's name, DMI, the CPU's hypervisor flag, and the marks that containers leave."""
    return Virtualisation(_hypervisor(files), _container(files))


def _hypervisor(files: SystemFiles) -> str | None:
    release = (files.text("proc/sys/kernel/osrelease") or files.text("proc/version") or "").lower()
    if "microsoft" in release:
        return "WSL2" if "wsl2" in release or files.exists("run/WSL") or "microsoft-standard" in release else "WSL1"
    dmi = " ".join(files.text(f"sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name"))
    for name, pattern in _HYPERVISORS:
        if re.search(pattern, dmi):
            return name
    if files.text("sys/hypervisor/type") == "xen":
        return "Xen"
    cpuinfo = files.text("proc/cpuinfo") or ""
    return "unknown" if re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE) else None


def _container(files: SystemFiles) -> str | None:
    if files.exists(".dockerenv"):
        return "docker"
    if files.exists("run/.containerenv"):
        return "podman"
    groups = (files.text("proc/1/cgroup") or "") + "\n" + (files.text("proc/self/cgroup") or "")
    for name, pattern in _CONTAINERS:
        if re.search(pattern, groups):
            return name
    if files.exists(".flatpak-info"):
        return "flatpak"
    return files.text("run/systemd/container") or None


def read_security(files: SystemFiles) -> Security:
    """SELinux and AppArmor."""
    enforce = files.number("sys/fs/selinux/enforce")
    denies = (files.text("sys/fs/selinux/booleans/deny_execmem") or "").startswith("1")
    apparmor = files.text("sys/module/apparmor/parameters/enabled")
    profile = files.text("proc/self/attr/current") if apparmor == "Y" else None
    return Security(
        None if enforce is None else "enforcing" if enforce else "permissive",
        denies and enforce == 1,
        None if apparmor is None else apparmor == "Y",
        profile.strip("\0") if profile else None,
    )


def read_kernel(files: SystemFiles) -> Kernel:
    """The running kernel."""
    release = files.text("proc/sys/kernel/osrelease")
    found = re.match(r"(\d+)\.(\d+)", release or "")
    return Kernel(release, (int(found.group(1)), int(found.group(2))) if found else (0, 0))


def read_display(files: SystemFiles) -> Display:
    """From the variables that this process was started with."""
    words = (files.data("proc/self/environ") or b"").decode("utf-8", "replace").split("\0")
    variables = dict(word.split("=", 1) for word in words if "=" in word)
    kind = "wayland" if variables.get("WAYLAND_DISPLAY") else "x11" if variables.get("DISPLAY") else None
    return Display(kind, variables.get("XDG_CURRENT_DESKTOP") or None)


def read_entropy_bits(files: SystemFiles) -> int | None:
    """Bits in the kernel's pool; since Linux 5.18 it is 256 once the generator is seeded."""
    return files.number("proc/sys/kernel/random/entropy_avail")
