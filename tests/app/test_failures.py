"""Every way in which a checkpoint or its target can be wrong has a cause that a page has advice for."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.conversion import convert
from app.failures import Cause, Failure, failure_of
from app.jobs import Job
from engine.convert import ConversionOptions
from engine.errors import ColibriError
from tests.support.checkpoints import checkpoint_case


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return checkpoint_case("qwen3_moe").write(tmp_path)


def fate(source: Path, target: Path, options: ConversionOptions | None = None) -> Failure:
    """How the conversion fails."""
    before = sorted(target.parent.iterdir())
    with pytest.raises((ColibriError, OSError)) as caught:
        Job("conversion").run_blocking(lambda job: convert(job, source, target, options))
    assert sorted(target.parent.iterdir()) == before
    return failure_of(caught.value, source)


def without_shard(folder: Path) -> None:
    index = {"weight_map": {"model.embed_tokens.weight": "model-00001-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def contradicting(folder: Path) -> None:
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "num_experts": 16}))


def truncated(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def of_another_kind(folder: Path) -> None:
    config = folder / "config.json"
    values = {**json.loads(config.read_text()), "architectures": ["Nobody"], "model_type": "nobody"}
    config.write_text(json.dumps(values))


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (without_shard, Cause.MISSING),
        (lambda folder: (folder / "config.json").unlink(), Cause.MISSING),
        (contradicting, Cause.CONTRADICTION),
        (truncated, Cause.DAMAGED),
        (pickled, Cause.UNSAFE),
        (of_another_kind, Cause.UNSUPPORTED),
    ],
)
def test_a_checkpoint_that_cannot_be_converted_has_a_cause(
    checkpoint: Path, tmp_path: Path, damage: Callable[[Path], None], cause: Cause
) -> None:
    damage(checkpoint)
    failure = fate(checkpoint, tmp_path / "out.gguf")
    assert failure.cause is cause and str(tmp_path) in failure.text


def test_a_target_that_cannot_be_written_has_a_cause(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "there.gguf"
    there.touch()
    assert fate(checkpoint, there).cause is Cause.TARGET
    assert fate(checkpoint, tmp_path / "x.gguf", ConversionOptions(expert_count=9)).cause is Cause.CONTRADICTION
    monkeypatch.setattr("app.target_errors.shutil.disk_usage", lambda _folder: _Usage())
    assert fate(checkpoint, tmp_path / "x.gguf").cause is Cause.DISK_FULL


class _Usage:
    free = 1_000_000


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (errno.ENOSPC, Cause.DISK_FULL),
        (errno.EACCES, Cause.UNREADABLE),
        (errno.EIO, Cause.UNREADABLE),
        (errno.ENOENT, Cause.MISSING),
        (errno.EBADF, Cause.OTHER),
    ],
)
def test_the_systems_own_errors_name_the_place(number: int, cause: Cause) -> None:
    failure = failure_of(OSError(number, os.strerror(number)), "/models/one")
    assert failure == Failure(cause, f"/models/one: {os.strerror(number)}")


def test_an_error_that_nobody_foresaw_is_a_fault() -> None:
    assert failure_of(KeyError("x")).cause is Cause.FAULT
    assert failure_of(ColibriError("Something.")) == Failure(Cause.OTHER, "Something.")
