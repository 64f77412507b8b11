"""Where the time of an answer went, kind by kind of work, with advice: what `colibri chat --perf` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.steps import Steps

_LEAST_SHARE = 0.0005  # shown
_ROUTER_SHARE, _EXPERTS_SHARE, _DISK_SHARE = 0.4, 0.5, 0.1  # from which on advice is given


def perf_report(steps: Steps) -> list[str]:
    """Lines for the steps that generated; those that read a prompt count only where there are no others."""
    from engine.steps import BANDS  # noqa: PLC0415 - loading the engine takes a while

    tokens = steps.chosen(steps.is_decode) if steps.is_decode.any() else steps
    if not len(tokens):
        return ["Nothing was computed, so there is nothing to tell."]
    total_us = float(tokens.bands_us.sum())
    shares = {band: float(us) / total_us for band, us in zip(BANDS, tokens.bands_us.sum(0), strict=True)}
    ms_per_step = total_us / len(tokens) / 1e3
    lines = [f"Where the time went ({len(tokens)} steps, {ms_per_step:.2f} ms each)"]
    lines += [
        f"  {band:12} {100 * share:5.1f} % {share * ms_per_step:9.3f} ms"
        for band, share in sorted(shares.items(), key=lambda item: -item[1])
        if share >= _LEAST_SHARE
    ]
    return lines + _cache(tokens) + _advice(shares)


def _cache(steps: Steps) -> list[str]:
    used, read = int(steps.experts_used.sum()), int(steps.expert_loads.sum())
    if not used:
        return []
    found = 100 * (1 - min(read, used) / used)
    lines = [
        f"Experts: {used} needed, {found:.1f} % found in memory, {read} read ({steps.disk_bytes.sum() / 1e6:.0f} MB)"
    ]
    asked = int(steps.experts_asked.sum())
    if asked:
        recall = 100 * int(steps.experts_foreseen.sum()) / max(1, int(steps.experts_foreseeable.sum()))
        in_vain = int(steps.asked_unused.sum())
        megabytes = int(steps.asked_bytes.sum()) / 1e6
        lines.append(
            f"Ahead: {recall:.0f} % foreseen, {asked} asked for ({megabytes:.0f} MB), {in_vain} of them in vain"
        )
    return lines


def _advice(shares: dict[str, float]) -> list[str]:
    advice = []
    if shares["disk"] >= _DISK_SHARE:
        advice.append("It waits for the disk: let more experts stay in memory (a larger --cache-size).")
    if shares["router"] > _ROUTER_SHARE:
        advice.append(
            "Choosing experts takes most of it: answer several conversations together, which share that work."
        )
    if shares["experts"] + shares["feed forward"] >= _EXPERTS_SHARE:
        advice.append(
            "The experts or feed-forward networks dominate: memory bandwidth is the limit, or a prompt's computing."
        )
    return [f"  > {line}" for line in advice]
