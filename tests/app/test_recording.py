"""Recordings: taken from the real engine, written to one file, read again, refused when damaged, exported."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from app.machine_state import MachineState
from app.recording import Recorder, Recording, RecordingError
from app.recording_export import as_chrome_trace, as_csv
from engine import Engine, EngineConfig, SamplingParams
from engine.steps import BANDS, FORESIGHT, Steps
from tests.support.made_up_steps import MadeUpTelemetry

MODEL = Path(__file__).resolve().parents[1] / "data" / "fixtures" / "qwen3_moe-Q4_K_M.gguf"
MACHINE = MachineState("A CPU", "powersave", 2400.0, 61.5, 0, "madvise", 8 << 30, 0.5)
PARAMS = SamplingParams(temperature=0.0, max_tokens=15, ignore_eos=True)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with Engine.open(MODEL, EngineConfig(context_length=128, threads=2)) as engine:
        yield engine


@pytest.fixture
def recording() -> Recording:
    telemetry = MadeUpTelemetry(3, 8, 2, 2)
    telemetry.advance(40)
    return made(telemetry)


def made(telemetry: MadeUpTelemetry) -> Recording:
    return Recording(
        label="before",
        model="Tiny",
        started_at=datetime(2026, 11, 29, 23, 0).astimezone(),
        machine=MACHINE,
        settings={"threads": 2},
        bands=BANDS,
        moe_layers=tuple(telemetry.moe_layers),
        n_experts=8,
        weight_limit_bytes_per_s=2e10,
        steps=telemetry.steps(),
    )


def test_what_the_engine_does_between_start_and_stop_is_recorded(engine: Engine) -> None:
    list(engine.generate([1, 2, 3], PARAMS))
    recorder = Recorder(engine.telemetry, "Tiny", {"threads": 2}, machine=MACHINE)
    list(engine.generate([4, 5, 6, 7], PARAMS))
    recorder.collect()
    list(engine.generate([8, 9], PARAMS))
    assert recorder.n_steps == 15  # as of the last collection
    recording = recorder.finish("a label")
    steps = recording.steps
    assert len(steps) == 30 and list(steps.numbers) == list(range(16, 46))
    assert steps.n_prompt.sum() == 6 and steps.n_answered.sum() == 30
    assert (steps.expert_calls == steps.n_tokens * engine.info.n_moe_layers * engine.info.top_k).all()
    assert recording.n_experts == engine.info.n_experts and len(recording.moe_layers) == engine.info.n_moe_layers


def test_a_recording_of_nothing_says_what_to_do(engine: Engine) -> None:
    with pytest.raises(RecordingError, match="ask the model something"):
        Recorder(engine.telemetry, "Tiny", {}, machine=MACHINE).finish("")


def test_a_recording_is_read_as_it_was_written(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "one.colibri-recording"
    recording.save(path)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]
    again = Recording.load(path)
    assert replace(again, steps=recording.steps) == recording
    for field in fields(Steps):
        one, other = getattr(again.steps, field.name), getattr(recording.steps, field.name)
        assert one.dtype == other.dtype and np.array_equal(one, other)
    assert again.n_steps == 40 and len(again.steps_after(30)) == 10


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not really", b"hello" * 100])
def test_what_is_no_recording_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.txt"
    path.write_bytes(content)
    with pytest.raises(RecordingError, match=r"other\.txt: expected a recording of Colibri"):
        Recording.load(path)


def test_a_truncated_recording_is_refused(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    recording.save(path)
    whole = path.read_bytes()
    for n_bytes in (len(whole) // 3, len(whole) - 30):
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(RecordingError):
            Recording.load(path)


def rewritten(path: Path, **changes: object) -> None:
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    about = json.loads(str(arrays.pop("about")))
    for name, value in changes.items():
        if name in arrays:
            arrays[name] = value  # type: ignore[assignment]
        else:
            about[name] = value
    with path.open("wb") as target:
        np.savez(target, about=np.array(json.dumps(about)), **arrays)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 99}, "of version 99, this program knows versions up to 1. Update"),
        ({"wall_us": np.zeros(3)}, "do not fit each other"),
        ({"bands": ["one"]}, "do not fit each other"),
        ({"moe_layers": [1, 2]}, "for 2 layers with experts"),
        ({"machine": 7}, "damaged"),
        ({"started_at": "yesterday"}, "damaged"),
    ],
)
def test_a_recording_that_contradicts_itself_is_refused(
    recording: Recording, tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    path = tmp_path / "changed"
    recording.save(path)
    rewritten(path, **changes)
    with pytest.raises(RecordingError, match=said):
        Recording.load(path)


def test_objects_are_never_unpacked(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "pickled"
    recording.save(path)
    rewritten(path, wall_us=np.array([print] * 40, object))
    with pytest.raises(RecordingError):
        Recording.load(path)


def test_a_file_that_would_unpack_to_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("about.npy", "w") as target:
        for _ in range(1100):
            target.write(bytes(1 << 20))
    assert path.stat().st_size < 4 << 20
    with pytest.raises(RecordingError, match="more than"):
        Recording.load(path)


def test_a_chrome_trace_holds_every_step_and_its_bands_one_after_another(recording: Recording) -> None:
    trace = json.loads(as_chrome_trace(recording))
    events = trace["traceEvents"]
    steps = [event for event in events if event["ph"] == "X" and event["tid"] == 1]
    assert len(steps) == 40
    assert [event["name"] for event in steps[:2]] == ["prompt", "token"]
    assert steps[0]["ts"] == 0 and steps[0]["dur"] == pytest.approx(recording.steps.wall_us[0], abs=0.01)
    bands = [event for event in events if event["ph"] == "X" and event["tid"] == 2]
    assert {event["name"] for event in bands} <= set(BANDS)
    assert sum(event["dur"] for event in bands) == pytest.approx(recording.steps.bands_us.sum(), rel=1e-4)
    for one, next_one in pairwise(bands):
        assert next_one["ts"] >= one["ts"] + one["dur"] - 0.5
    named = {event["args"]["name"] for event in events if event["ph"] == "M"}
    assert {"Colibri, Tiny", "steps", "worker 0: busy", "worker 1: busy"} <= named
    assert {event["name"] for event in events if event["ph"] == "C"} == {"KV positions", "MB/s of weights"}
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in events if event["ph"] == "X")


def test_csv_has_a_line_a_step_with_all_its_figures(recording: Recording) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(recording))))
    assert len(rows) == 40
    last, steps = rows[-1], recording.steps
    assert int(last["number"]) == 40 and int(last["expert_calls"]) == steps.expert_calls[-1]
    assert float(last["experts_us"]) == pytest.approx(steps.bands_us[-1, BANDS.index("experts")], abs=0.001)
    assert float(last["worker_1_busy_us"]) == pytest.approx(steps.busy_us[-1, 1], abs=0.001)
    assert "feed_forward_us" in last


def test_a_recording_from_before_experts_were_asked_for_ahead_is_opened(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "older"
    recording.save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if name not in FORESIGHT}
    with path.open("wb") as target:
        np.savez(target, **arrays)

    steps = Recording.load(path).steps

    assert np.array_equal(steps.disk_bytes, recording.steps.disk_bytes)
    assert not any(getattr(steps, name).any() for name in FORESIGHT)


def test_an_older_recording_that_lacks_something_else_is_refused(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "damaged"
    recording.save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if name != "kv_tokens"}
    with path.open("wb") as target:
        np.savez(target, **arrays)

    with pytest.raises(RecordingError):
        Recording.load(path)
