"""Whatever is wrong with a checkpoint, a request or a target: one named error, and the target is what it was."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.conversion import convert
from app.jobs import Job
from engine.convert import ConversionOptions, Mixture
from engine.errors import ColibriError
from tests.app.damaged_checkpoints import DAMAGED, Damaged
from tests.support.checkpoints import checkpoint_case

OLD = b"what stood there before"


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint_case("qwen3_moe").write(tmp_path_factory.mktemp("sound"), weights=False)


def refusal(source: Path, target: Path, options: ConversionOptions) -> str:
    with pytest.raises(ColibriError) as caught:
        Job("test").run_blocking(lambda job: convert(job, source, target, options, replace=True))
    return str(caught.value)


def test_the_sound_checkpoint_converts(sound: Path, tmp_path: Path) -> None:
    Job("test").run_blocking(lambda job: convert(job, sound, tmp_path / "model.gguf"))
    assert len(DAMAGED) + 5 >= 50
    assert len({damaged.name for damaged in DAMAGED}) == len(DAMAGED)


@pytest.mark.parametrize("damaged", DAMAGED, ids=lambda damaged: damaged.name)
def test_it_is_named_and_the_target_is_what_it_was(damaged: Damaged, sound: Path, tmp_path: Path) -> None:
    folder, target = tmp_path / "checkpoint", tmp_path / "out" / "model.gguf"
    shutil.copytree(sound, folder)
    target.parent.mkdir()
    target.write_bytes(OLD)
    damaged.damage(folder)

    said = refusal(folder, target, damaged.options)
    assert damaged.words in said, said
    assert len(said) < 1500
    assert target.read_bytes() == OLD
    assert list(target.parent.iterdir()) == [target]
    assert not (tmp_path / "pwned").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 MB, where this machine lets a test mount one."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_too_small_a_disk_is_found_before_anything_is_written(sound: Path, small_disk: Path) -> None:
    (small_disk / "film").write_bytes(bytes(30 << 20))
    (small_disk / "model.gguf").write_bytes(OLD)
    said = refusal(sound, small_disk / "model.gguf", ConversionOptions())
    assert "of free disk, found 0.04" in said
    assert (small_disk / "model.gguf").read_bytes() == OLD


def test_a_disk_that_fills_up_on_the_way_leaves_the_old_file(sound: Path, small_disk: Path) -> None:
    target = small_disk / "model.gguf"
    target.write_bytes(OLD)

    def fill(job: Job) -> None:
        if job.phase == "writing" and job.done_bytes == 0:
            with (small_disk / "film").open("wb", buffering=0) as film, pytest.raises(OSError, match="No space"):
                while film.write(bytes(1 << 20)):
                    pass

    job = Job("test")
    job.on_change(fill)
    with pytest.raises(ColibriError, match="could not be written: No space left on device"):
        job.run_blocking(lambda job: convert(job, sound, target, ConversionOptions(), replace=True))
    assert target.read_bytes() == OLD
    assert sorted(path.name for path in small_disk.iterdir()) == ["film", "model.gguf"]


def test_a_disk_that_cannot_be_written_to_is_named(sound: Path, small_disk: Path) -> None:
    target = small_disk / "model.gguf"
    target.write_bytes(OLD)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    said = refusal(sound, target, ConversionOptions(mixture=Mixture.Q8_0))
    assert "cannot be written to" in said or "Read-only" in said
    assert target.read_bytes() == OLD


def test_a_target_below_a_file_or_that_is_a_folder_is_named(sound: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(OLD)
    assert "file" in refusal(sound, tmp_path / "file" / "model.gguf", ConversionOptions())
    assert "found a folder" in refusal(sound, tmp_path, ConversionOptions())
    assert (tmp_path / "file").read_bytes() == OLD


def test_a_cut_model_file_as_source_is_named(sound: Path, tmp_path: Path) -> None:
    source, target = tmp_path / "source.gguf", tmp_path / "model.gguf"
    Job("test").run_blocking(lambda job: convert(job, sound, source))
    whole = source.read_bytes()
    target.write_bytes(OLD)
    for n_bytes in (0, 3, 100, 5000, len(whole) // 2, len(whole) - 1):
        source.write_bytes(whole[:n_bytes])
        assert "source.gguf" in refusal(source, target, ConversionOptions(mixture=Mixture.Q8_0))
        assert target.read_bytes() == OLD
