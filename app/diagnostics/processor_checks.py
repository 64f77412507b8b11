"""Checks of the processor: instructions, tile registers, cores, caches, memory nodes."""

from __future__ import annotations

from app.diagnostics.finding import Finding, Group, Status, unavailable
from app.diagnostics.inspection import Inspection
from app.diagnostics.message import Message, binary_size, size, text, verbatim
from engine.hardware.processor import read_caches, read_nodes
from engine.hardware.system_files import cpu_list_text
from engine.kernels.tiers import TIERS, Tier

_GROUP = Group.PROCESSOR
_NODE_SHARE = 0.8  # of a node's memory that a model may take of it
_SHOWN_FLAGS = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimd", "asimddp")


def best_tier(inspection: Inspection) -> Tier:
    """The tier that this CPU would be given if none were forced."""
    flags = inspection.processor.flags
    return next(
        tier
        for tier in TIERS.values()
        if tier.needs <= flags and ("amx_tile" not in tier.needs or bool(inspection.host.has_tiles))
    )


def instructions(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Instruction sets")
    why = text(
        "SystemCheck",
        "Kernels are compiled for what the CPU has. With AMX the matrix "
        "products of a prompt took 1/2.1 of AVX-512's time.",
    )
    processor, forced = inspection.processor, inspection.host.forced_tier
    best = best_tier(inspection)
    if not processor.flags and inspection.host.machine in ("x86_64", "AMD64"):
        reason = text("SystemCheck", "the system does not list the CPU's instructions")
        return unavailable("instructions", _GROUP, title, reason, why)
    shown = " ".join(flag for flag in _SHOWN_FLAGS if flag in processor.flags) or "-"
    value = text("SystemCheck", "{cpu}: tier {tier} ({flags})").format(
        cpu=processor.name or inspection.host.machine, tier=forced or best.name, flags=shown
    )
    if forced and forced != best.name:
        advice = text("SystemCheck", "COLIBRI_ISA forces this tier; without it, {tier} would be used.")
        return Finding(
            "instructions", _GROUP, title, Status.ADVICE, value, why, advice.format(tier=best.name), "unset COLIBRI_ISA"
        )
    if best.name == "generic":
        advice = text("SystemCheck", "This CPU has neither AVX2 nor AVX-512: plain code runs, several times slower.")
        return Finding("instructions", _GROUP, title, Status.ADVICE, value, why, advice)
    return Finding("instructions", _GROUP, title, Status.OK, value, why)


def tiles(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "AMX permission")
    why = text("SystemCheck", "Linux lends the tile registers only to a process that asks; prompts are read with them.")
    if "amx_tile" not in inspection.processor.flags:
        return unavailable("amx", _GROUP, title, text("SystemCheck", "this CPU has no AMX"), why)
    if inspection.host.has_tiles:
        return Finding("amx", _GROUP, title, Status.OK, text("SystemCheck", "granted"), why)
    advice = text("SystemCheck", "Linux 5.16 or newer is needed, and a container must not forbid arch_prctl.")
    return Finding("amx", _GROUP, title, Status.ADVICE, text("SystemCheck", "refused by the kernel"), why, advice)


def cores(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Cores")
    why = text(
        "SystemCheck",
        "One worker runs on each physical core; two hyper-threads share the units that it keeps busy. Work is handed "
        "out in small pieces, so slow cores and those that other programs use do not hold the rest up.",
    )
    found = inspection.cores
    if not found.online:
        return unavailable("cores", _GROUP, title, text("SystemCheck", "the system does not list its CPUs"), why)
    n_cores = found.n_usable_cores
    counted = text("SystemCheck", "{cores} physical cores for {cpus} CPUs")
    if n_cores == 1:
        counted = text("SystemCheck", "one physical core for {cpus} CPUs")
    parts: list[Message] = [counted.format(cores=n_cores, cpus=len(found.online))]
    if found.efficiency:
        hybrid = text("SystemCheck", "fast cores on CPUs {fast}, small ones on {small}")
        parts.append(hybrid.format(fast=cpu_list_text(found.performance), small=cpu_list_text(found.efficiency)))
    smt = text("SystemCheck", "hyper-threads on") if found.has_smt else text("SystemCheck", "no hyper-threads")
    value = joined([*parts, smt])
    if found.usable and set(found.online) - set(found.usable):
        advice = text("SystemCheck", "This program may run on CPUs {cpus} only (taskset, or a control group's cpuset).")
        return Finding(
            "cores", _GROUP, title, Status.ADVICE, value, why, advice.format(cpus=cpu_list_text(found.usable))
        )
    return Finding("cores", _GROUP, title, Status.OK, value, why)


def caches(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Caches")
    why = text("SystemCheck", "A model that fits the last cache is not limited by memory; all others are.")
    found = [cache for cache in read_caches(inspection.files) if cache.kind != "Instruction"]
    if not found:
        return unavailable("caches", _GROUP, title, text("SystemCheck", "the system does not describe them"), why)
    value = verbatim(", ".join(f"L{cache.level} {cache.n_caches} x {binary_size(cache.n_bytes)}" for cache in found))
    return Finding("caches", _GROUP, title, Status.OK, value, why)


def nodes(inspection: Inspection) -> Finding:
    title = text("SystemCheck", "Memory nodes (NUMA)")
    why = text(
        "SystemCheck",
        "Each node's memory is near to its own cores. Colibri places nothing by node: a weight lies where the core is "
        "that unpacked it, so weights spread over all nodes whose cores work, and any core may read them later.",
    )
    found = read_nodes(inspection.files)
    if not found:
        return unavailable("numa", _GROUP, title, text("SystemCheck", "the kernel shows no nodes"), why)
    value = joined(
        [
            text("SystemCheck", "node {number}: {size}, CPUs {cpus}").format(
                number=node.number, size=size(node.total_bytes), cpus=cpu_list_text(node.cpus) or "-"
            )
            for node in found
        ]
    )
    if sum(1 for node in found if node.total_bytes) < 2:
        return Finding("numa", _GROUP, title, Status.OK, value, why)
    with_memory = [node for node in found if node.total_bytes]
    n_nodes, model = len(with_memory), inspection.model
    fits = model is not None and model.total_bytes < _NODE_SHARE * min(node.total_bytes for node in with_memory)
    if fits:
        advice = text(
            "SystemCheck",
            "About {share:.0f} % of all reads cross the link between the {n} nodes. The model fits into one of them: "
            "keep the program there.",
        )
        command = "numactl --cpunodebind=0 --membind=0 ./colibri"
    else:
        advice = text(
            "SystemCheck",
            "About {share:.0f} % of all reads cross the link between the {n} nodes. Spread the memory evenly, or keep "
            "a model that fits into one node there, with its cores.",
        )
        command = "numactl --interleave=all ./colibri"
    advice = advice.format(share=100 * (1 - 1 / n_nodes), n=n_nodes)
    return Finding("numa", _GROUP, title, Status.ADVICE, value, why, advice, command)


def joined(parts: list[Message]) -> Message:
    """Parts of one value, one after the other."""
    template = "; ".join(f"{{part{number}}}" for number in range(len(parts)))
    return Message(template, {f"part{number}": part for number, part in enumerate(parts)})
