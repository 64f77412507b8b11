"""Checks of pages and memory: huge pages, limits on locking, free memory, swap, control groups."""

from __future__ import annotations

from app.diagnostics.finding import Finding, Fix, Group, Status, Verb, unavailable
from app.diagnostics.inspection import Inspection
from app.diagnostics.message import Message, size, text, verbatim
from engine.hardware.capacity import read_load
from engine.hardware.pages import UNLIMITED, read_hugetlb_mounts, read_locked_memory, read_pools

_PAGE_BYTES = 2 << 20
_SLACK = 1.05  # each buffer begins on a page of its own
_KEPT_FREE_BYTES = 1 << 30
_MUCH_SWAPPED_BYTES = 512 << 20
_WAITING_PERCENT = 5.0


def wanted_pages(inspection: Inspection) -> int | None:
    """2 MiB pages that the model would fill; None while no model is known."""
    model = inspection.model
    return None if model is None else int(model.total_bytes * _SLACK) // _PAGE_BYTES + 1


def huge_pages(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Reserved huge pages")
    why = text(
        "SystemCheck",
        "Weights on huge pages need few address translations: a file mapped in 4 KiB pages was read 20 to 25 % slower. "
        "Reserved pages are taken first; transparent ones serve where there are none.",
    )
    pool = next((pool for pool in read_pools(inspection.files) if pool.page_bytes == _PAGE_BYTES), None)
    if pool is None:
        reason = text("SystemCheck", "the kernel shows no pool of 2 MiB pages")
        return unavailable("huge-pages", Group.PAGES, title, reason, why)
    value = text("SystemCheck", "{pages} pages of 2 MiB ({size}), {free} free").format(
        pages=pool.n_pages, size=size(pool.n_pages * _PAGE_BYTES), free=pool.n_free
    )
    wanted, model = wanted_pages(inspection), inspection.model
    has_transparent = inspection.transparent_pages.mode in ("always", "madvise")
    command = f"sudo sysctl vm.nr_hugepages={wanted}" if wanted else None
    if model is not None and wanted is not None:
        held = model.hugetlb_bytes // _PAGE_BYTES
        advice = text("SystemCheck", "The model {model} would fill {wanted} of them.").format(
            model=model.name, wanted=wanted
        )
        if pool.n_free + held >= wanted:
            return Finding("huge-pages", Group.PAGES, title, Status.OK, value, why, advice)
        fix = _pool_fix(inspection, wanted)
        is_fine = pool.n_pages == 0 and has_transparent
        status = Status.OK if is_fine else Status.ADVICE
        return Finding("huge-pages", Group.PAGES, title, status, value, why, advice, command, fix)
    if pool.n_pages == 0 and not has_transparent:
        advice = text("SystemCheck", "There are neither reserved nor transparent huge pages. Allow the latter.")
        return Finding("huge-pages", Group.PAGES, title, Status.ADVICE, value, why, advice)
    return Finding("huge-pages", Group.PAGES, title, Status.OK, value, why)


def _pool_fix(inspection: Inspection, wanted: int) -> Fix | None:
    """Offered only where the memory is there: pages that are reserved are lost to all other programs."""
    memory = inspection.memory
    if not inspection.can_fix or memory is None:
        return None
    if memory.available_bytes - _KEPT_FREE_BYTES < wanted * _PAGE_BYTES:
        return None
    effect = text(
        "SystemCheck",
        "{pages} huge pages ({size}) are reserved; other programs cannot use "
        "that memory until it is undone or the next "
        "restart. The model uses them when it is loaded again.",
    ).format(pages=wanted, size=size(wanted * _PAGE_BYTES))
    return Fix(Verb.HUGE_PAGES, (str(wanted),), effect)


def transparent_pages(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Transparent huge pages")
    why = text(
        "SystemCheck",
        "The engine asks for them for all large buffers (madvise). Without any "
        "huge pages each 4 KiB needs a translation "
        "of its own; reading was 20 to 25 % slower.",
    )
    found = inspection.transparent_pages
    if found.mode is None:
        reason = text("SystemCheck", "the kernel was built without them, or does not show them")
        return unavailable("transparent-pages", Group.PAGES, title, reason, why)
    value = text("SystemCheck", "{mode}, defrag {defrag}; {given} given, {refused} refused since the start").format(
        mode=found.mode,
        defrag=found.defrag or "?",
        given="?" if found.n_given is None else found.n_given,
        refused="?" if found.n_refused is None else found.n_refused,
    )
    if found.mode == "never":
        effect = text(
            "SystemCheck", "Programs that ask get transparent huge pages, until it is undone or the next restart."
        )
        fix = Fix(Verb.TRANSPARENT_PAGES, ("madvise",), effect) if inspection.can_fix else None
        advice = text("SystemCheck", "Allow them to programs that ask.")
        command = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"
        return Finding("transparent-pages", Group.PAGES, title, Status.PROBLEM, value, why, advice, command, fix)
    if found.n_given is not None and found.n_refused is not None and found.n_refused > found.n_given:
        advice = text("SystemCheck", "Memory is fragmented: most were refused. Let the kernel tidy up, or restart.")
        command = "echo 1 | sudo tee /proc/sys/vm/compact_memory"
        return Finding("transparent-pages", Group.PAGES, title, Status.ADVICE, value, why, advice, command)
    return Finding("transparent-pages", Group.PAGES, title, Status.OK, value, why)


def mounts(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Mount of huge pages")
    why = text(
        "SystemCheck", "Colibri takes huge pages without a file system; a mount of hugetlbfs changes nothing for it."
    )
    found = read_hugetlb_mounts(inspection.files)
    if found is None:
        reason = text("SystemCheck", "the list of mounts cannot be read")
        return unavailable("huge-page-mount", Group.PAGES, title, reason, why)
    value = verbatim(", ".join(found)) if found else text("SystemCheck", "none")
    return Finding("huge-page-mount", Group.PAGES, title, Status.OK, value, why)


def locked_memory(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Limit on locked memory")
    why = text(
        "SystemCheck",
        "Colibri locks no memory today, so a low limit costs it nothing. Tools "
        "that keep weights from being swapped out "
        "need at least the model's size.",
    )
    found = read_locked_memory(inspection.files)
    if found is None:
        reason = text("SystemCheck", "the process's limits cannot be read")
        return unavailable("locked-memory", Group.PAGES, title, reason, why)
    if found.soft_bytes == UNLIMITED:
        return Finding("locked-memory", Group.PAGES, title, Status.OK, text("SystemCheck", "unlimited"), why)
    effect = text(
        "SystemCheck", "You may lock any amount of memory after you have logged in again, until it is undone."
    )
    fix = Fix(Verb.LOCKED_MEMORY, ("unlimited",), effect) if inspection.can_fix else None
    command = 'echo "$USER - memlock unlimited" | sudo tee /etc/security/limits.d/90-colibri-memlock.conf'
    value = verbatim(size(found.soft_bytes))
    return Finding("locked-memory", Group.PAGES, title, Status.OK, value, why, None, command, fix)


def memory(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Memory")
    why = text(
        "SystemCheck", "Weights and experts that do not fit are read from the disk for each token that needs them."
    )
    found, group = inspection.memory, inspection.control_group
    if found is None:
        return unavailable("memory", Group.MEMORY, title, _why_no_files(inspection), why)
    available = found.available_bytes
    if group.memory_limit_bytes is not None:
        available = min(available, group.memory_limit_bytes - (group.memory_used_bytes or 0))
    value = text("SystemCheck", "{available} available of {total}").format(
        available=size(max(available, 0)),
        total=size(min(found.total_bytes, group.memory_limit_bytes or found.total_bytes)),
    )
    model, waiting = inspection.model, read_load(inspection.files).memory_pressure
    if model is not None and model.total_bytes > found.total_bytes:
        advice = text(
            "SystemCheck",
            "The model {model} takes {size}: more than this machine has. Choose a "
            "smaller one, or limit the expert cache.",
        )
        return Finding(
            "memory",
            Group.MEMORY,
            title,
            Status.PROBLEM,
            value,
            why,
            advice.format(model=model.name, size=size(model.total_bytes)),
        )
    if waiting is not None and waiting > _WAITING_PERCENT:
        advice = text("SystemCheck", "Programs waited for memory {percent:.0f} % of the last minute. Close some.")
        return Finding("memory", Group.MEMORY, title, Status.PROBLEM, value, why, advice.format(percent=waiting))
    if found.overcommit == 2:
        advice = text(
            "SystemCheck",
            "The kernel counts every promised byte (vm.overcommit_memory=2): large models may be refused early.",
        )
        command = "sudo sysctl vm.overcommit_memory=0"
        return Finding("memory", Group.MEMORY, title, Status.ADVICE, value, why, advice, command)
    return Finding("memory", Group.MEMORY, title, Status.OK, value, why)


def _why_no_files(inspection: Inspection) -> Message:
    if inspection.host.system != "Linux":
        return text("SystemCheck", "only Linux shows this in files")
    return text("SystemCheck", "/proc cannot be read")


def swap(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Swap")
    why = text(
        "SystemCheck", "Weights that were swapped out come back in pieces of 4 KiB, the slowest way to read a disk."
    )
    found = inspection.memory
    if found is None:
        return unavailable("swap", Group.MEMORY, title, _why_no_files(inspection), why)
    if not found.swap_total_bytes:
        return Finding("swap", Group.MEMORY, title, Status.OK, text("SystemCheck", "none"), why)
    used = found.swap_total_bytes - found.swap_free_bytes
    value = text("SystemCheck", "{used} of {total} used, swappiness {swappiness}").format(
        used=size(used),
        total=size(found.swap_total_bytes),
        swappiness="?" if found.swappiness is None else found.swappiness,
    )
    if used < _MUCH_SWAPPED_BYTES:
        return Finding("swap", Group.MEMORY, title, Status.OK, value, why)
    advice = text(
        "SystemCheck", "Much is swapped out. Close programs before a large model is loaded, and swap less eagerly."
    )
    return Finding("swap", Group.MEMORY, title, Status.ADVICE, value, why, advice, "sudo sysctl vm.swappiness=10")


def control_group(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Limits of the control group")
    why = text(
        "SystemCheck",
        "A quota of processor time stops all workers when it is used up; a limit on memory ends the program.",
    )
    group, n_cpus = inspection.control_group, len(inspection.cores.usable or inspection.cores.online)
    if group.version is None:
        reason = text("SystemCheck", "no control groups are visible")
        return unavailable("control-group", Group.MEMORY, title, reason, why)
    if group.memory_limit_bytes is None and group.n_cpus is None:
        return Finding("control-group", Group.MEMORY, title, Status.OK, text("SystemCheck", "none"), why)
    value = text("SystemCheck", "memory {memory}, processor time of {cpus} CPUs").format(
        memory="-" if group.memory_limit_bytes is None else size(group.memory_limit_bytes),
        cpus="-" if group.n_cpus is None else f"{group.n_cpus:g}",
    )
    if group.n_cpus is not None and n_cpus and group.n_cpus < inspection.cores.n_usable_cores:
        advice = text("SystemCheck", "Use at most {n} threads, so that they are not stopped together.").format(
            n=max(int(group.n_cpus), 1)
        )
        command = f"./colibri bench --threads {max(int(group.n_cpus), 1)}"
        return Finding("control-group", Group.MEMORY, title, Status.ADVICE, value, why, advice, command)
    return Finding("control-group", Group.MEMORY, title, Status.OK, value, why)
