"""`colibri prove` compares a model with its source, keeps the figures in its file, and others show them."""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import pytest

from app import library
from app.commands import inspect, prove
from app.jobs import Job, JobCancelledError
from app.proving import ProofError
from app.proving import prove as prove_job
from engine.gguf import GGUFReader
from tests.engine.compact import OLMOE, model_path


def run(command: object, *arguments: object) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())  # type: ignore[attr-defined]
    options = parser.parse_args([str(argument) for argument in arguments])
    code: int = options.run(options)
    return code


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copy(model_path(OLMOE), tmp_path / "model.gguf"))


def test_the_figures_are_said_kept_and_shown(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(prove, "prove", model_path(OLMOE), model, "--passages", 1) == 0
    said = capsys.readouterr().out
    assert "same next token as its source at 100.0 % of the positions" in said
    assert "layer by layer: 100.0 %, 100.0 %" in said
    sentence = said.splitlines()[0]
    assert library.describe(model).comparison == sentence
    assert run(inspect, "inspect", model) == 0
    assert sentence[:60] in capsys.readouterr().out
    assert run(inspect, "inspect", model, "--json") == 0
    assert json.loads(capsys.readouterr().out)["comparison"] == sentence


def test_figures_can_be_shown_without_keeping_them(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = model.read_bytes()
    assert run(prove, "prove", model_path(OLMOE), model, "--passages", 1, "--no-store", "--json") == 0
    assert json.loads(capsys.readouterr().out)["divergence"] == 0
    assert model.read_bytes() == before


def test_a_cancel_leaves_the_model_as_it_was(model: Path) -> None:
    before = model.read_bytes()

    def cancel_when_writing(job: Job) -> None:
        job.on_change(lambda job: job.cancel() if not job.cancelled and job.phase.startswith("writing") else None)
        prove_job(job, model_path(OLMOE), model, passages=1)

    with pytest.raises(JobCancelledError):
        Job("proof").run_blocking(cancel_when_writing)
    assert model.read_bytes() == before
    assert list(model.parent.iterdir()) == [model]


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProofError, match=r"none\.gguf"):
        run(prove, "prove", model_path(OLMOE), tmp_path / "none.gguf")


def test_a_model_without_figures_says_so(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(inspect, "inspect", model) == 0
    assert "not compared" in capsys.readouterr().out
    assert library.describe(model).comparison == ""
    with GGUFReader.open(model) as reader:
        assert not [key for key in reader.metadata if key.startswith("colibri.proof")]
