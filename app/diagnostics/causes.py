"""What may make answers slow: each cause with its remedy and the gain that measured figures promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from app.diagnostics.finding import Finding, Fix, Status
from app.diagnostics.inspection import Inspection
from app.diagnostics.last_run import LastRun
from app.diagnostics.message import Message, gigahertz, size, text
from engine.hardware.capacity import read_load

LEAST_GAIN = 1.03
_SMALL_PAGES_SLOWER = 0.2  # reading through 4 KiB pages, measured: docs/engine.md, "The machine"
_TILES_FASTER = 2.1  # matrix products of a prompt with AMX, measured: the same place
_KEPT_FREE_BYTES = 1 << 30
_GOAL_BITS = 4.5  # of a weight in Q4_K
_MANY_BITS = 6.5
_NEAR_LIMIT = 0.7


@dataclass(frozen=True, slots=True)
class OpenModel:
    """The plan of the model that ran. weight_bits: of the type that most of its weights have; 0: not known."""

    name: str
    weight_bits: float
    expert_bytes: int  # slabs in memory
    all_experts_bytes: int  # if every expert were in memory
    small_page_share: float  # of its weights, on pages of 4 KiB


@dataclass(frozen=True)
class Facts:
    """The check, the plan and the last run together. model: None where only a recording is known."""

    inspection: Inspection
    findings: Mapping[str, Finding]
    run: LastRun
    model: OpenModel | None

    @property
    def memory_limit(self) -> float | None:
        """Measured bytes per second; None: not measured."""
        memory = self.inspection.speeds.memory
        return None if memory is None else memory.median

    def is_wrong(self, id_: str) -> bool:
        """Whether the check found something to do about `id_`."""
        found = self.findings.get(id_)
        return found is not None and found.status in (Status.ADVICE, Status.PROBLEM)


@dataclass(frozen=True, slots=True)
class Cause:
    """`gain`: how many times as fast answers would be; None where nothing was measured that would tell."""

    id: str
    sentence: Message
    gain: float | None = None
    command: str | None = None
    fix: Fix | None = None


def gain_words(gain: float) -> Message:
    """How much faster, for the end of a sentence."""
    if gain < 1.2:
        return text("SystemCheck", "about {percent:.0f} % faster").format(percent=100 * (gain - 1))
    return text("SystemCheck", "about {times:.1f} times as fast").format(times=gain)


def without(share: float) -> float:
    """How many times as fast it is when a share of the time falls away."""
    return 1.0 / (1.0 - min(max(share, 0.0), 0.95))


def faster_team(facts: Facts, factor: float) -> float:
    """The gain when the team's work gets `factor` times as fast, as far as memory lets it."""
    limit = facts.memory_limit
    if limit is not None:
        factor = min(factor, max(limit / max(facts.run.weight_bytes_per_s, 1.0), 1.0))
    return without(facts.run.team_share * (1 - 1 / max(factor, 1.0)))


def waiting_for_disk(facts: Facts) -> Cause | None:
    """Experts that are read while a token waits: for the first time, or again because they had to give way."""
    run, model = facts.run, facts.model
    share = run.shares["disk"]
    if run.evictions == 0:
        sentence = text(
            "SystemCheck",
            "{share:.0f} % of each token is waiting for experts that are read from the disk for the first time: this "
            "passes as the conversation goes on, {gain}.",
        )
        gain = without(share)
        return Cause("disk", sentence.format(share=100 * share, gain=gain_words(gain)), gain)
    missing_bytes = model.all_experts_bytes - model.expert_bytes if model else 0
    memory = facts.inspection.memory
    free_bytes = max(memory.available_bytes - _KEPT_FREE_BYTES, 0) if memory else 0
    if missing_bytes and free_bytes >= missing_bytes:
        sentence = text(
            "SystemCheck",
            "{share:.0f} % of each token is waiting for experts that had to leave memory and are read again: give the "
            "expert cache {size} more, which is free, {gain}.",
        )
        gain = without(share)
        values = {"share": 100 * share, "size": size(missing_bytes), "gain": gain_words(gain)}
        return Cause("disk", sentence.format(**values), gain)
    sentence = text(
        "SystemCheck",
        "{share:.0f} % of each token is waiting for experts that do not fit into memory: choose a model of fewer bytes "
        "or convert it to Q4_K_M, up to {gain}.",
    )
    gain = without(share)
    return Cause("disk", sentence.format(share=100 * share, gain=gain_words(gain)), gain)


def processor_quota(facts: Facts) -> Cause | None:
    """More workers than the control group's quota of processor time keeps going."""
    run, n_cpus = facts.run, facts.inspection.control_group.n_cpus
    if n_cpus is None or n_cpus >= run.n_workers:
        return None
    n_threads = max(int(n_cpus), 1)
    gain = without(run.shares["waiting"])
    sentence = text(
        "SystemCheck",
        "{workers} workers share processor time of {cpus:g} CPUs and wait {share:.0f} % of each token for each other: "
        "set Threads to {n} (Settings), up to {gain}.",
    ).format(workers=run.n_workers, cpus=n_cpus, share=100 * run.shares["waiting"], n=n_threads, gain=gain_words(gain))
    return Cause("quota", sentence, gain)


def other_programs(facts: Facts) -> Cause | None:
    """Tokens that came late because others computed: what the quietest tenth of them took is within reach."""
    run, found = facts.run, read_load(facts.inspection.files)
    n_cpus = len(facts.inspection.cores.usable or facts.inspection.cores.online)
    if found.average is None or not n_cpus or found.average <= 0.5 * n_cpus or processor_quota(facts):
        return None
    gain = run.ms_per_token / max(run.quiet_ms, 1e-6)
    sentence = text(
        "SystemCheck",
        "Tokens take {mean:.1f} ms on average and {quiet:.1f} ms when nothing disturbs them, and {load:.1f} processes "
        "ran on {cpus} CPUs: close programs that compute, {gain}.",
    ).format(mean=run.ms_per_token, quiet=run.quiet_ms, load=found.average, cpus=n_cpus, gain=gain_words(gain))
    return Cause("other-programs", sentence, gain, "top -o %CPU")


def heat(facts: Facts) -> Cause | None:
    """Throttling makes some tokens slow and not others; the quiet ones show what the machine can do."""
    if not facts.is_wrong("throttling") or other_programs(facts):
        return None
    run = facts.run
    gain = run.ms_per_token / max(run.quiet_ms, 1e-6)
    sentence = text(
        "SystemCheck",
        "The processor slowed itself down because of heat, and tokens take {mean:.1f} ms on average, the quickest "
        "tenth {quiet:.1f}: give it air, {gain}.",
    ).format(mean=run.ms_per_token, quiet=run.quiet_ms, gain=gain_words(gain))
    return Cause("heat", sentence, gain)


def idle_cores(facts: Facts) -> Cause | None:
    """Fewer workers than physical cores that may be used."""
    run, n_cores = facts.run, facts.inspection.cores.n_usable_cores
    quota = facts.inspection.control_group.n_cpus
    n_cores = min(n_cores, int(quota)) if quota else n_cores
    if run.n_workers >= n_cores:
        return None
    gain = faster_team(facts, n_cores / run.n_workers)
    sentence = text(
        "SystemCheck",
        "Only {workers} of {cores} cores work for the model: set Threads to automatic (Settings), up to {gain}.",
    ).format(workers=run.n_workers, cores=n_cores, gain=gain_words(gain))
    return Cause("threads", sentence, gain)


def too_many_workers(facts: Facts) -> Cause | None:
    """More workers than physical cores: they take each other's core away."""
    run, n_cores = facts.run, facts.inspection.cores.n_usable_cores
    if not facts.inspection.cores.online or run.n_workers <= n_cores:
        return None
    gain = without(run.shares["waiting"])
    sentence = text(
        "SystemCheck",
        "{workers} workers share {cores} physical cores and wait {share:.0f} % of each token for each other: set "
        "Threads to automatic (Settings), up to {gain}.",
    ).format(workers=run.n_workers, cores=n_cores, share=100 * run.shares["waiting"], gain=gain_words(gain))
    return Cause("threads", sentence, gain)


def low_frequency(facts: Facts) -> Cause | None:
    """A cap, or a governor that keeps cores at their lowest: the work goes as much slower, unless memory is slower."""
    frequency = facts.inspection.frequency
    highest_khz = max(frequency.highest_khz.values(), default=0)
    allowed_khz = min(frequency.limit_khz.values(), default=0) if facts.is_wrong("frequency") else highest_khz
    lowest_khz = min(frequency.lowest_khz.values(), default=highest_khz)
    is_governor = facts.is_wrong("governor") and set(frequency.governors.values()) == {"powersave"}
    if is_governor:
        allowed_khz = min(allowed_khz, lowest_khz)
        sentence = text(
            "SystemCheck",
            "The governor powersave holds the cores at {now} though they can do {highest}: choose the governor "
            "performance, up to {gain}.",
        )
    else:
        sentence = text(
            "SystemCheck",
            "A limit holds the cores at {now} though they can do {highest}: lift the limit, up to {gain}.",
        )
    if not 0 < allowed_khz < highest_khz:
        return None
    gain = faster_team(facts, highest_khz / allowed_khz)
    finding = facts.findings["governor" if is_governor else "frequency"]
    values = {"now": gigahertz(allowed_khz), "highest": gigahertz(highest_khz), "gain": gain_words(gain)}
    return Cause("frequency", sentence.format(**values), gain, finding.command, finding.fix)


def small_pages(facts: Facts) -> Cause | None:
    """Weights on pages of 4 KiB are read more slowly than on huge ones."""
    model, finding = facts.model, facts.findings.get("transparent-pages")
    if model is None:
        return None
    is_never = facts.inspection.transparent_pages.mode == "never"
    gain = without(_SMALL_PAGES_SLOWER * model.small_page_share * facts.run.team_share)
    sentence = text(
        "SystemCheck",
        "{share:.0f} % of the model lies on pages of 4 KiB, which are read 20 % slower: allow huge pages and load the "
        "model again, {gain}.",
    ).format(share=100 * model.small_page_share, gain=gain_words(gain))
    if is_never and finding is not None:
        return Cause("pages", sentence, gain, finding.command, finding.fix)
    pool = facts.findings.get("huge-pages")
    return Cause("pages", sentence, gain, pool.command if pool else None, pool.fix if pool else None)


def waiting_for_memory(facts: Facts) -> Cause | None:
    """The kernel says how long programs waited for pages to come back."""
    percent = read_load(facts.inspection.files).memory_pressure
    if percent is None:
        return None
    gain = without(percent / 100)
    sentence = text(
        "SystemCheck", "Programs waited for memory {percent:.0f} % of the last minute: close some, up to {gain}."
    ).format(percent=percent, gain=gain_words(gain))
    return Cause("memory-pressure", sentence, gain)


def refused_tiles(facts: Facts) -> Cause | None:
    """Prompts without AMX on a processor that has it."""
    run = facts.run
    is_forced = facts.is_wrong("instructions") and facts.inspection.host.forced_tier not in ("", "amx")
    has_tiles = "amx_tile" in facts.inspection.processor.flags
    if not has_tiles or not (facts.is_wrong("amx") or is_forced) or not run.prompt_s:
        return None
    share = run.prompt_s / (run.prompt_s + run.answer_s)
    gain = without(share * (1 - 1 / _TILES_FASTER))
    if is_forced:
        sentence = text(
            "SystemCheck",
            "Reading the prompt took {share:.0f} % of the last answer's time, and COLIBRI_ISA forbids the processor's "
            "matrix unit (AMX): start Colibri without it, up to {gain}.",
        )
    else:
        sentence = text(
            "SystemCheck",
            "Reading the prompt took {share:.0f} % of the last answer's time, and the kernel refuses the processor's "
            "matrix unit (AMX): use Linux 5.16 or newer, outside a container that forbids it, up to {gain}.",
        )
    command = "unset COLIBRI_ISA" if is_forced else None
    return Cause("amx", sentence.format(share=100 * share, gain=gain_words(gain)), gain, command)


def long_prompt(facts: Facts) -> Cause | None:
    """Most of the last answer's time went into reading what was asked."""
    run = facts.run
    if run.prompt_s <= run.answer_s:
        return None
    gain = without(0.5 * run.prompt_s / (run.prompt_s + run.answer_s))
    sentence = text(
        "SystemCheck",
        "Reading {tokens:,} tokens of the prompt took {seconds:.1f} of {all:.1f} s: with half as much text, or what "
        "was read before at its beginning, the answer is there {gain}.",
    ).format(tokens=run.prompt_tokens, seconds=run.prompt_s, all=run.prompt_s + run.answer_s, gain=gain_words(gain))
    return Cause("prompt", sentence, gain)


def long_conversation(facts: Facts) -> Cause | None:
    """What the conversation's length costs each token."""
    run = facts.run
    if run.attention_growth is None:
        return None
    share = run.attention_growth * run.shares["attention"]
    gain = without(share)
    sentence = text(
        "SystemCheck",
        "Looking back over {n:,} positions takes {share:.0f} % of each token: begin a new chat when the subject "
        "changes, {gain}.",
    ).format(n=run.kv_tokens, share=100 * share, gain=gain_words(gain))
    return Cause("conversation", sentence, gain)


def many_bits(facts: Facts) -> Cause | None:
    """Near the memory's limit only fewer bytes help; wide weights can be converted."""
    run, limit, model = facts.run, facts.memory_limit, facts.model
    if limit is None or model is None or run.weight_bytes_per_s < _NEAR_LIMIT * limit or model.weight_bits < _MANY_BITS:
        return None
    gain = without(run.team_share * (1 - _GOAL_BITS / model.weight_bits))
    sentence = text(
        "SystemCheck",
        "Each token reads {size} of weights at {rate:.1f} of the {limit:.1f} GB/s that this memory gives: convert the "
        "model from {bits:.1f} to {goal} bits a weight (Convert, Q4_K_M), {gain}.",
    ).format(
        size=size(run.weight_bytes),
        rate=run.weight_bytes_per_s / 1e9,
        limit=limit / 1e9,
        bits=model.weight_bits,
        goal=_GOAL_BITS,
        gain=gain_words(gain),
    )
    return Cause("bits", sentence, gain)


CAUSES: tuple[Callable[[Facts], Cause | None], ...] = (
    waiting_for_disk,
    processor_quota,
    other_programs,
    heat,
    idle_cores,
    too_many_workers,
    low_frequency,
    small_pages,
    waiting_for_memory,
    refused_tiles,
    long_prompt,
    long_conversation,
    many_bits,
)
