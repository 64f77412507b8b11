"""Checks of the surroundings: virtual machine, container, kernel, its log, security modules, display, entropy."""

from __future__ import annotations

from app.diagnostics.finding import Finding, Group, Status, unavailable
from app.diagnostics.inspection import Inspection
from app.diagnostics.message import text, verbatim
from engine.hardware.kernel_log import read_kernel_log
from engine.hardware.surroundings import read_display, read_entropy_bits, read_kernel, read_security

_GROUP = Group.SYSTEM
_LEAST_ENTROPY_BITS = 128
_AMX_KERNEL = (5, 16)


def virtualisation(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Virtual machine or container")
    why = text(
        "SystemCheck", "A guest shares cores and memory bandwidth with others, and sees only what its host shows."
    )
    found = inspection.virtualisation
    if inspection.host.system != "Linux":
        reason = text("SystemCheck", "only Linux shows this in files")
        return unavailable("virtualisation", _GROUP, title, reason, why)
    if found.hypervisor is None and found.container is None:
        return Finding("virtualisation", _GROUP, title, Status.OK, text("SystemCheck", "neither was found"), why)
    value = verbatim(", ".join(name for name in (found.hypervisor, found.container) if name))
    if found.hypervisor == "WSL2":
        advice = text(
            "SystemCheck",
            "WSL2 gives Linux half of the memory unless .wslconfig says more. Keep models on Linux's own disk: files "
            "below /mnt are read through a network protocol.",
        )
        command = r'printf "[wsl2]\nmemory=24GB\n" >> /mnt/c/Users/YOU/.wslconfig'
        return Finding("virtualisation", _GROUP, title, Status.ADVICE, value, why, advice, command)
    return Finding("virtualisation", _GROUP, title, Status.OK, value, why)


def security(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "SELinux and AppArmor")
    why = text(
        "SystemCheck",
        "The engine loads its compiled kernels into memory and runs them there, which a policy can forbid.",
    )
    found = read_security(inspection.files)
    if inspection.host.system != "Linux":
        reason = text("SystemCheck", "only Linux has them")
        return unavailable("security", _GROUP, title, reason, why)
    words = []
    if found.selinux:
        words.append(f"SELinux {found.selinux}")
    if found.has_apparmor:
        words.append(f"AppArmor: {found.profile or '-'}")
    value = verbatim(", ".join(words)) if words else text("SystemCheck", "neither is active")
    if found.denies_executable_memory:
        advice = text("SystemCheck", "SELinux's boolean deny_execmem forbids exactly that. Switch it off.")
        command = "sudo setsebool -P deny_execmem 0"
        return Finding("security", _GROUP, title, Status.PROBLEM, value, why, advice, command)
    return Finding("security", _GROUP, title, Status.OK, value, why)


def kernel(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Kernel and C library")
    why = text("SystemCheck", "Older kernels lack AMX (5.16) and give huge pages less readily.")
    found = read_kernel(inspection.files)
    if found.release is None:
        reason = text("SystemCheck", "only Linux shows this in files")
        return unavailable("kernel", _GROUP, title, reason, why)
    value = verbatim(", ".join(word for word in (f"Linux {found.release}", inspection.host.libc) if word))
    if "amx_tile" in inspection.processor.flags and found.version < _AMX_KERNEL and not inspection.host.has_tiles:
        advice = text("SystemCheck", "This CPU has AMX, and the kernel is too old for it.")
        return Finding("kernel", _GROUP, title, Status.ADVICE, value, why, advice)
    return Finding("kernel", _GROUP, title, Status.OK, value, why)


def kernel_log(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Kernel log")
    why = text(
        "SystemCheck",
        "It tells when the kernel ended programs for want of memory, and when huge pages could not be had.",
    )
    log, group = read_kernel_log(inspection.files), inspection.control_group
    command = "sudo dmesg | grep -iE 'out of memory|hugetlb'"
    n_kills = max(len(log.oom_lines), log.n_oom_kills or 0, group.n_oom_kills or 0)
    if log.source is None and log.n_oom_kills is None:
        reason = text("SystemCheck", "the kernel's log and counters cannot be read")
        return unavailable("kernel-log", _GROUP, title, reason, why)
    value = text("SystemCheck", "{kills} programs ended for want of memory, {failures} failures of huge pages").format(
        kills=n_kills, failures=len(log.huge_page_lines) if log.source else "?"
    )
    if log.oom_lines or log.huge_page_lines:
        advice = text("SystemCheck", "The last line: {line}").format(
            line=([*log.huge_page_lines, *log.oom_lines])[-1][:200]
        )
        return Finding("kernel-log", _GROUP, title, Status.ADVICE, value, why, advice, command)
    if n_kills:
        advice = text("SystemCheck", "Which programs, only the administrator may read.")
        return Finding("kernel-log", _GROUP, title, Status.ADVICE, value, why, advice, command)
    return Finding("kernel-log", _GROUP, title, Status.OK, value, why)


def display(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Display")
    why = text("SystemCheck", "The window needs one; without it, `colibri chat` works in the terminal.")
    found = read_display(inspection.files)
    if inspection.host.system != "Linux":
        reason = text("SystemCheck", "only Linux has several")
        return unavailable("display", _GROUP, title, reason, why)
    if found.kind is None:
        return Finding("display", _GROUP, title, Status.OK, text("SystemCheck", "none (a terminal only)"), why)
    name = "Wayland" if found.kind == "wayland" else "X11"
    return Finding("display", _GROUP, title, Status.OK, verbatim(" · ".join(filter(None, (name, found.desktop)))), why)


def entropy(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Entropy")
    why = text(
        "SystemCheck", "Random seeds of answers come from the kernel; while its pool is empty, the start may wait."
    )
    bits = read_entropy_bits(inspection.files)
    if bits is None:
        reason = text("SystemCheck", "the kernel does not tell it")
        return unavailable("entropy", _GROUP, title, reason, why)
    value = text("SystemCheck", "{bits} bits").format(bits=bits)
    if bits >= _LEAST_ENTROPY_BITS:
        return Finding("entropy", _GROUP, title, Status.OK, value, why)
    advice = text("SystemCheck", "A source of randomness helps, in virtual machines virtio-rng.")
    return Finding("entropy", _GROUP, title, Status.ADVICE, value, why, advice, "sudo apt-get install rng-tools5")
