"""Why is it slow? The check, the plan and the last run in at most three sentences, the most important first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from app.diagnostics.causes import CAUSES, LEAST_GAIN, Cause, Facts, OpenModel
from app.diagnostics.finding import Finding, Status
from app.diagnostics.inspection import Inspection
from app.diagnostics.last_run import LEAST_TOKENS, LastRun
from app.diagnostics.message import size, text

if TYPE_CHECKING:
    from engine import MemoryPlan, ModelInfo
    from engine.steps import Steps
    from engine.telemetry import Telemetry

MOST_SENTENCES = 3


def explain(
    inspection: Inspection, findings: Iterable[Finding], steps: Steps | None, model: OpenModel | None
) -> list[Cause]:
    """One to MOST_SENTENCES causes, the largest gain first. steps: of the last run, newest last; None: nothing ran.

    Without a run nothing is measured: then come the check's problems, and what to do to learn more.
    """
    found = {finding.id: finding for finding in findings}
    run = None if steps is None else LastRun.of(steps)
    if run is None:
        return _without_a_run(found)
    facts = Facts(inspection, found, run, model)
    causes = [cause for find in CAUSES if (cause := find(facts)) is not None and (cause.gain or 0.0) >= LEAST_GAIN]
    causes.sort(key=lambda cause: -(cause.gain or 0.0))
    return causes[:MOST_SENTENCES] or [_nothing(facts)]


def _without_a_run(findings: Mapping[str, Finding]) -> list[Cause]:
    asked = text(
        "SystemCheck",
        "No answer of {n} tokens or more was measured yet: ask the model something, then ask again here, and the "
        "expected gains will be computed.",
    ).format(n=LEAST_TOKENS)
    problems = [finding for finding in findings.values() if finding.status is Status.PROBLEM]
    if not problems:
        return [Cause("no-run", asked)]
    first = problems[0]
    sentence = text("SystemCheck", "The check found {n} problems, the first of them: {title}, {value}.").format(
        n=len(problems), title=first.title, value=first.value
    )
    return [Cause(first.id, sentence, None, first.command, first.fix), Cause("no-run", asked)]


def _nothing(facts: Facts) -> Cause:
    """Nothing to gain was found: say what sets the pace then."""
    run, limit = facts.run, facts.memory_limit
    values = {"size": size(run.weight_bytes), "rate": run.weight_bytes_per_s / 1e9, "ms": run.ms_per_token}
    if limit is None:
        sentence = text(
            "SystemCheck",
            "Nothing was found that slows the model down: a token takes {ms:.1f} ms and reads {size} of weights at "
            "{rate:.1f} GB/s; measure the memory (System check) to learn whether that is its limit.",
        )
    elif run.weight_bytes_per_s > limit:
        sentence = text(
            "SystemCheck",
            "Nothing slows the model down: a token takes {ms:.1f} ms and reads {size} of weights at {rate:.1f} GB/s, "
            "more than the memory's {limit:.1f}, because much of it stays in the processor's cache.",
        )
    else:
        sentence = text(
            "SystemCheck",
            "Nothing slows the model down: a token takes {ms:.1f} ms and reads {size} of weights at {rate:.1f} of the "
            "{limit:.1f} GB/s that this memory gives; only a smaller model or faster memory would change that.",
        )
    return Cause("nothing", sentence.format(**values, limit=(limit or 0.0) / 1e9))


def open_model(info: ModelInfo, plan: MemoryPlan, telemetry: Telemetry, inspection: Inspection) -> OpenModel:
    """What the causes need of a model that is open."""
    from engine.gguf.tensor_types import TensorType  # noqa: PLC0415  (not needed for the first paint of the window)

    known = TensorType.__members__.get(info.type_name)
    n_experts = int(telemetry.expert_counts.shape[1]) if len(telemetry.moe_layers) else 0
    small = plan.page_kinds.get("4 KiB pages", 0)
    if inspection.transparent_pages.mode == "never":  # then the pages that were asked for were not given
        small += plan.page_kinds.get("transparent huge pages", 0)
    return OpenModel(
        name=info.name,
        weight_bits=8 * known.block_bytes / known.block_size if known is not None else 0.0,
        expert_bytes=plan.expert_bytes,
        all_experts_bytes=n_experts * sum(telemetry.slab_bytes),
        small_page_share=small / max(sum(plan.page_kinds.values()), 1),
    )
