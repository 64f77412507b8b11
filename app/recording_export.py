"""A recording for other programs: Chrome's trace format (chrome://tracing, Perfetto) and CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from app.recording import Recording

_PROCESS = 1
_TOKENS, _TIME, _WORKERS = 1, 2, 10  # numbers of tracks; workers' follow from the last on


def as_chrome_trace(recording: Recording) -> str:
    """One JSON object: a slice a step, its bands in order below it, each worker's busy time, and counters.

    Format: "Trace Event Format", Google, in which `ts` and `dur` are microseconds. Within a step the bands stand one
    after another, though the engine's operations take turns: their lengths are what was measured, their order is not.
    """
    steps, events = recording.steps, list[dict[str, Any]]()

    def name(track: int, text: str) -> None:
        arguments = {"name": text}
        events.append({"ph": "M", "name": "thread_name", "pid": _PROCESS, "tid": track, "args": arguments})

    events.append({"ph": "M", "name": "process_name", "pid": _PROCESS, "args": {"name": f"Colibri, {recording.model}"}})
    name(_TOKENS, "steps")
    name(_TIME, "where the time went")
    for worker in range(recording.n_workers):
        name(_WORKERS + worker, f"worker {worker}: busy")

    def slice_(track: int, text: str, began_us: float, length_us: float, **arguments: Any) -> None:
        events.append(
            {
                "ph": "X",
                "name": text,
                "pid": _PROCESS,
                "tid": track,
                "ts": round(began_us, 3),
                "dur": round(length_us, 3),
                "args": arguments,
            }
        )

    origin_s = float(steps.began_s[0]) if len(steps) else 0.0
    for row in range(len(steps)):
        began_us = (float(steps.began_s[row]) - origin_s) * 1e6
        is_prompt = bool(steps.n_prompt[row])
        slice_(
            _TOKENS,
            "prompt" if is_prompt else "token",
            began_us,
            float(steps.wall_us[row]),
            number=int(steps.numbers[row]),
            tokens=int(steps.n_tokens[row]),
            expert_calls=int(steps.expert_calls[row]),
            expert_loads=int(steps.expert_loads[row]),
            disk_bytes=int(steps.disk_bytes[row]),
            experts_asked=int(steps.experts_asked[row]),
            asked_used=int(steps.asked_used[row]),
        )
        place_us = began_us
        for band, length_us in zip(recording.bands, steps.bands_us[row].tolist(), strict=True):
            if length_us > 0:
                slice_(_TIME, band, place_us, length_us)
                place_us += length_us
        for worker, busy_us in enumerate(steps.busy_us[row].tolist()):
            slice_(_WORKERS + worker, "busy", began_us, min(busy_us, float(steps.wall_us[row])))
        run_us = float(steps.run_us[row])
        counters = {"KV positions": int(steps.kv_tokens[row])}
        if run_us > 0:
            counters["MB/s of weights"] = round(float(steps.weight_bytes[row]) / run_us)
        for counter, value in counters.items():
            event = {"ph": "C", "name": counter, "pid": _PROCESS, "ts": round(began_us, 3), "args": {counter: value}}
            events.append(event)
    about = {"model": recording.model, "label": recording.label, "machine": recording.machine.to_json()}
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}, ensure_ascii=False)


def as_csv(recording: Recording) -> str:
    """A line a step: its figures, its bands and each worker's busy time, all in microseconds."""
    from engine.steps import FORESIGHT  # noqa: PLC0415 - loading the engine takes a while

    steps = recording.steps
    figures = (
        "numbers",
        "began_s",
        "wall_us",
        "n_tokens",
        "n_prompt",
        "n_answered",
        "n_sequences",
        "ttft_us",
        "expert_calls",
        "experts_used",
        "expert_loads",
        "expert_evictions",
        "disk_bytes",
        *FORESIGHT,
        "weight_bytes",
        "kv_tokens",
    )
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    bands = [f"{band.replace(' ', '_')}_us" for band in recording.bands]
    workers = [f"worker_{number}_busy_us" for number in range(recording.n_workers)]
    writer.writerow(["number", *figures[1:], *bands, *workers])
    columns = [getattr(steps, figure).tolist() for figure in figures]
    for cells, band_us, busy_us in zip(
        zip(*columns, strict=True), steps.bands_us.tolist(), steps.busy_us.tolist(), strict=True
    ):
        writer.writerow([*cells, *(round(value, 3) for value in (*band_us, *busy_us))])
    return stream.getvalue()
