"""`colibri doctor` prints findings as text or JSON, and tells by its exit code whether there is a problem."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from app.commands import doctor
from app.diagnostics import Host, Inspection, ModelNeeds
from engine.errors import InvalidRequestError
from engine.hardware.system_files import SystemFiles
from tests.app.test_recording import made
from tests.support.made_up_run import MadeUpRun
from tests.support.made_up_steps import MadeUpTelemetry
from tests.support.recorded_machines import write_machine

DATA = Path(__file__).resolve().parents[1] / "data" / "fixtures"


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    doctor.add_parser(parser.add_subparsers())
    options = parser.parse_args(["doctor", *arguments])
    code: int = options.run(options)
    return code


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    root = write_machine(request.param, tmp_path / "root").root
    host = Host("Linux", "x86_64", "glibc 2.36", None)
    recorded = Inspection(SystemFiles(root), host, tmp_path, tmp_path / "kernels")

    def inspect(model: ModelNeeds | None, folder: Path | None) -> Inspection:
        return replace(recorded, model=model, model_folder=folder or tmp_path)

    monkeypatch.setattr(doctor, "inspect_here", inspect)


@pytest.mark.parametrize("machine", ["amd-desktop"], indirect=True)
def test_a_problem_is_printed_with_its_command_and_sets_the_exit_code(
    machine: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == doctor.PROBLEM_FOUND
    text = " ".join(capsys.readouterr().out.split())
    assert "problem Frequency governor powersave (driver acpi-cpufreq)" in text
    assert "$ echo performance | sudo tee" in text
    assert "3 problems" in text


@pytest.mark.parametrize("machine", ["epyc-zen4"], indirect=True)
def test_a_machine_in_order_exits_with_0(machine: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--all") == 0
    assert "0 problems" in capsys.readouterr().out


@pytest.mark.parametrize("machine", ["amd-desktop"], indirect=True)
def test_json_has_every_finding_whole(machine: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = tmp_path / "model.gguf"
    model.write_bytes(bytes(4 << 20))
    assert run("--json", "-m", str(model)) == doctor.PROBLEM_FOUND
    findings = {finding["id"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["governor"]["fix"] == {"verb": "set-governor", "values": ["performance"]}
    assert "model.gguf would fill 3" in findings["huge-pages"]["advice"]
    assert findings["disk-speed"]["status"] == "unavailable"
    assert set(findings["swap"]) == {"id", "group", "title", "status", "value", "why", "advice", "command", "fix"}


@pytest.mark.parametrize("machine", ["amd-desktop"], indirect=True)
def test_why_reads_a_recording_and_answers_in_at_most_three_sentences(
    machine: None, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "slow.colibri-recording"
    recording = made(MadeUpTelemetry(2, 8, 2, 8))
    replace(recording, steps=MadeUpRun(n_workers=8).steps(), moe_layers=(0,)).save(path)
    assert run("--why", "--recording", str(path)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1. The governor powersave holds the cores at ") and lines[0].endswith(" as fast.")
    assert lines[1] == "   $ echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    assert run("--why", "--recording", str(path), "--json") == 0
    (cause,) = json.loads(capsys.readouterr().out)["why"]
    assert cause["id"] == "frequency" and cause["gain"] > 1.5 and cause["fix"]["verb"] == "set-governor"


def test_why_runs_a_short_answer_of_a_model(capsys: pytest.CaptureFixture[str], colibri_home: Path) -> None:
    model = DATA / "qwen2_moe-Q4_K_M.gguf"
    assert run("--why", "--json", "-m", str(model)) == 0
    causes = json.loads(capsys.readouterr().out)["why"]
    assert 1 <= len(causes) <= 3 and causes[0]["id"] != "no-run"
    assert all(cause["sentence"] for cause in causes)


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"gone\.gguf: expected a model file"):
        run("-m", str(tmp_path / "gone.gguf"))


def test_this_very_machine_is_checked_without_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json") in (0, doctor.PROBLEM_FOUND)
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert len(findings) > 25
