"""The checks of a model file: sound files pass, and each contradiction is found by the check that is named for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from engine.checks import Check, Outcome, check_model
from engine.gguf import GGUFReader
from tests.engine.compact import LLAMA, MIXTRAL, NAMES, model_path
from tests.engine.test_hostile_models import rewritten, vocabulary_cut

TEMPLATE = "tokenizer.chat_template"


def checks_of(path: Path) -> dict[str, Check]:
    with GGUFReader.open(path) as reader:
        return {check.name: check for check in check_model(reader)}


def failed(path: Path) -> set[str]:
    return {check.name for check in checks_of(path).values() if check.outcome is Outcome.FAILED}


@pytest.mark.parametrize("name", NAMES)
def test_every_check_of_a_sound_file_passes(name: str) -> None:
    checks = checks_of(model_path(name))
    assert {check.outcome for check in checks.values() if check.name != "licence"} == {Outcome.PASSED}
    assert {"architecture", "heads", "layers", "tensors", "vocabulary", "chat template", "alignment"} <= checks.keys()


def test_a_dense_model_is_not_asked_about_experts() -> None:
    assert not {"experts", "routers", "router precision"} & checks_of(model_path(LLAMA)).keys()
    assert {"experts", "routers", "router precision"} <= checks_of(model_path(MIXTRAL)).keys()


@pytest.mark.parametrize(
    ("keys", "check", "finding"),
    [
        ({"arch.attention.head_count_kv": 3}, "heads", "not a multiple"),
        ({"arch.block_count": 5}, "layers", "layer 2, 3, 4"),
        ({"arch.block_count": 1}, "layers", "layer 1"),
        ({"arch.feed_forward_length": 4096, "arch.expert_feed_forward_length": 4096}, "tensors", "shape"),
        ({"arch.expert_count": 16}, "experts", "expert_count is 16, but .* holds 8"),
        ({"arch.expert_count": 16}, "routers", "chooses among 8"),
        ({"arch.expert_used_count": 9}, "experts", "expert_used_count is 9"),
        ({"tokenizer.ggml.eos_token_id": 600}, "end of an answer", "600"),
        ({TEMPLATE: "{{ messages | unheard_of }}"}, "chat template", "unheard_of"),
        ({"tokenizer.ggml.model": "unheard of"}, "vocabulary", "unheard of"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_a_contradiction_is_found_by_name(tmp_path: Path, keys: dict[str, Any], check: str, finding: str) -> None:
    found = checks_of(rewritten(tmp_path / "model.gguf", MIXTRAL, keys))[check]
    assert found.outcome is Outcome.FAILED
    assert re.search(finding, found.finding)


def test_missing_tensors_and_routers_are_named(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "model.gguf", MIXTRAL, missing=("blk.1.ffn_gate_inp.weight",))
    checks = checks_of(path)
    assert "blk.1.ffn_gate_inp.weight is missing" in checks["tensors"].finding
    assert "no router (blk.N.ffn_gate_inp.weight), in layer 1" in checks["routers"].finding
    assert failed(path) == {"tensors", "routers"}


def test_a_vocabulary_of_another_length_than_the_embedding_is_found(tmp_path: Path) -> None:
    found = checks_of(vocabulary_cut(100)(tmp_path / "model.gguf"))["vocabulary"]
    assert found.finding == "700 tokens, but token_embd.weight has 600 rows"


def test_what_may_be_intended_is_only_noted(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "model.gguf", MIXTRAL, {"general.license": "mit"}, drop=(TEMPLATE,))
    checks = checks_of(path)
    assert checks["chat template"].outcome is Outcome.NOTED and checks["licence"].finding == "mit"
    assert not failed(path)


def test_an_architecture_that_is_not_known_is_noted_and_the_rest_is_looked_at(tmp_path: Path) -> None:
    checks = checks_of(rewritten(tmp_path / "model.gguf", MIXTRAL, {"general.architecture": "mamba"}))
    assert checks["architecture"].outcome is Outcome.NOTED and "mamba" in checks["architecture"].finding
    assert checks["vocabulary"].outcome is Outcome.PASSED and "tensors" not in checks


def test_a_configuration_beside_the_file_is_held_against_it(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.symlink_to(model_path(MIXTRAL))
    (tmp_path / "config.json").write_text('{"num_local_experts": 64}')
    found = checks_of(path)["config.json"]
    assert found.outcome is Outcome.FAILED and "num_local_experts is 64" in found.finding
    (tmp_path / "config.json").write_text('{"num_local_experts": 8}')
    assert checks_of(path)["config.json"].outcome is Outcome.PASSED
