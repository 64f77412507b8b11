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
from tests.support.recorded_machines import write_machine


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


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"gone\.gguf: expected a model file"):
        run("-m", str(tmp_path / "gone.gguf"))


def test_this_very_machine_is_checked_without_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--json") in (0, doctor.PROBLEM_FOUND)
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert len(findings) > 25
