"""`colibri inspect` prints what a model holds, and one clear message for what is no model."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from app.commands import inspect
from engine.gguf import GGUFWriter, TensorType
from tests.engine.compact import LLAMA, MIXTRAL, model_path


def run(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    inspect.add_parser(parser.add_subparsers())
    args = parser.parse_args(["inspect", *arguments])
    code: int = args.run(args)
    return code


@pytest.fixture
def model(tmp_path: Path) -> str:
    writer = GGUFWriter(tmp_path / "tiny.gguf")
    writer.add("general.architecture", "tiny")
    writer.add("general.name", "A [bold]name[/bold]\x1b[31m\nin two lines")
    writer.add("tiny.block_count", 3)
    writer.add("tiny.expert_count", 4)
    writer.add("tiny.expert_used_count", 2)
    writer.add("tokenizer.ggml.tokens", [f"token{i}" for i in range(50)])
    writer.add_tensor("output.weight", TensorType.Q8_0, (3, 32), bytes(102))
    for layer in range(3):
        writer.add_tensor(f"blk.{layer}.ffn_gate_inp.weight", TensorType.F32, (4, 32), bytes(512))
    return str(writer.write())


def test_facts_keys_types_and_tensors_are_printed(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(model) == 1  # its vocabulary is of no known kind

    text = capsys.readouterr().out
    for expected in (
        "4, 2 of them per token, in 3 layers",
        "tokenizer.ggml.tokens",
        '"token7", ...] (50 items)',
        "layers 0 to 2, each",
        "ffn_gate_inp.weight (router)",
        "4 x 32",
        "not said in the file",
    ):
        assert expected in text


def test_text_from_the_file_cannot_steer_the_terminal(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(model)

    text = capsys.readouterr().out
    assert r"A [bold]name[/bold]\x1b[31m\nin two lines" in text
    assert "\x1b" not in text


def test_keys_and_tensors_can_be_had_alone(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(model, "--keys")
    keys = capsys.readouterr().out
    run(model, "--tensors")
    tensors = capsys.readouterr().out

    assert "general.architecture" in keys
    assert "output.weight" not in keys
    assert "general.architecture" not in tensors
    for layer in range(3):
        assert f"blk.{layer}.ffn_gate_inp.weight" in tensors


def test_json_is_one_object_with_the_parts_asked_for(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(model, "--json")
    whole = json.loads(capsys.readouterr().out)
    run(model, "--json", "--keys")
    keys_only = json.loads(capsys.readouterr().out)

    assert (whole["architecture"], whole["n_experts"], whole["top_k"]) == ("tiny", 4, 2)
    assert whole["layers"][1]["router"] == "blk.0.ffn_gate_inp.weight"
    assert whole["layers"][1]["tensors"][0]["shape"] == [4, 32]
    assert whole["keys"]["tokenizer.ggml.tokens"]["n_items"] == 50
    assert "layers" not in keys_only
    assert keys_only["keys"] == whole["keys"]


def test_a_model_without_router_says_what_was_expected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    writer = GGUFWriter(tmp_path / "m.gguf")
    writer.add("general.architecture", "tiny")
    writer.add("tiny.expert_count", 4)

    assert run(str(writer.write())) == 1

    assert "no layer has a router (a tensor named blk.N.ffn_gate_inp.weight)" in capsys.readouterr().out


def test_what_is_no_model_gets_one_message_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text("{}")

    assert run(str(path)) == 1

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith(f"colibri inspect: {path}: expected a GGUF model, found a JSON document.")
    assert output.err.count("\n") == 1


def test_checks_are_printed_with_what_they_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(model_path(MIXTRAL)), "--checks") == 0

    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if line.strip()][2:]
    assert {mark for mark, _ in lines} == {"ok", "note"}
    assert any(found.startswith("tensors ") and "all that the architecture needs" in found for _, found in lines)


def test_a_check_that_fails_is_named_and_makes_the_exit_code_one(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(model, "--checks") == 1
    output = capsys.readouterr()
    assert "FAILED" in output.out
    assert output.err.startswith("colibri inspect: vocabulary: ")
    assert run(model, "--json") == 1
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["vocabulary"]["outcome"] == "failed" and checks["routers"]["outcome"] == "passed"


def test_router_precision_is_measured_and_given_as_json(capsys: pytest.CaptureFixture[str], colibri_home: Path) -> None:
    assert run("--router-precision", "--json", "--tokens", "100", str(model_path(MIXTRAL))) == 0

    report = json.loads(capsys.readouterr().out)
    assert report["n_tokens"] == 100 and report["layers"] == [0, 1]
    assert [difference["precision"] for difference in report["differences"]] == ["bf16", "fp16"]
    assert all(0 <= share <= 1 for difference in report["differences"] for share in difference["by_layer"])


def test_router_precision_is_shown_by_layer_and_in_all(capsys: pytest.CaptureFixture[str], colibri_home: Path) -> None:
    assert run("--router-precision", "--tokens", "100", str(model_path(MIXTRAL))) == 0

    lines = capsys.readouterr().out.splitlines()
    assert "2 of 8 experts, 100 tokens" in lines[0]
    assert [line.split()[0] for line in lines[3:] if line.strip()] == ["0", "1", "all", "tokens"]


def test_a_dense_model_has_no_router_to_measure(capsys: pytest.CaptureFixture[str], colibri_home: Path) -> None:
    assert run("--router-precision", str(model_path(LLAMA))) == 1
    assert "dense model" in capsys.readouterr().err


def test_a_configuration_beside_the_file_is_held_against_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "model.gguf"
    file.symlink_to(model_path(MIXTRAL))
    (tmp_path / "config.json").write_text('{"num_local_experts": 64, "num_experts_per_tok": 2}')
    assert run(str(file)) == 1
    assert "num_local_experts is 64 in config.json, but llama.expert_count is 8" in capsys.readouterr().err
    assert run(str(file), "--json") == 1
    assert len(json.loads(capsys.readouterr().out)["contradictions"]) == 1
    (tmp_path / "config.json").write_text('{"num_local_experts": 8}')
    assert run(str(file)) == 0
