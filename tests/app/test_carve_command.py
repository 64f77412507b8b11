"""`colibri carve` shows the table before it writes, and writes a file whole or not at all."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from app.carving import carve
from app.commands import carve as command
from app.jobs import Job, JobCancelledError
from app.target_errors import TargetError
from engine.carve import Carving
from engine.gguf import GGUFReader
from tests.support.dense_model import write_dense_model

ARGUMENTS = ("--experts", 8, "--shared", 2, "--dense-layers", 0, "--passages", 1)


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dense_model(tmp_path_factory.mktemp("dense"))


def run(*arguments: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    options = parser.parse_args(["carve", *map(str, arguments)])
    code: int = options.run(options)
    return code


def test_the_table_is_shown_and_kept_in_the_file(
    dense: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "moe.gguf"
    assert run(dense, "-o", target, *ARGUMENTS, "--top-k", 4) == 0
    said = capsys.readouterr().out
    assert "dense" in said
    assert said.count("in the file") == 1
    with GGUFReader.open(target) as reader:
        assert reader.metadata["deepseek.expert_used_count"] == 4
        assert reader.metadata["colibri.carve.top_k"].tolist() == [6, 5, 4, 3, 2, 1]
        assert len(reader.metadata["colibri.carve.divergence"]) == 6
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(TargetError, match="--replace"):
        run(dense, "-o", target, *ARGUMENTS)


def test_a_trial_writes_nothing(dense: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(dense, "-o", tmp_path / "moe.gguf", *ARGUMENTS, "--dry-run") == 0
    assert "routed experts" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_cancel_leaves_nothing_behind(dense: Path, tmp_path: Path) -> None:
    def cancelled(job: Job) -> None:
        job.on_change(lambda job: job.cancel() if not job.cancelled and job.phase.startswith("measuring") else None)
        carve(job, dense, tmp_path / "moe.gguf", Carving(8, 2, 0), passages=1)

    with pytest.raises(JobCancelledError):
        Job("carving").run_blocking(cancelled)
    assert not list(tmp_path.iterdir())
