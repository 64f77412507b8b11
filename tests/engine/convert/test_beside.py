"""A config.json beside a model file is held against it, value by value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.convert import planned
from engine.convert.beside import contradictions
from engine.errors import ModelFormatError
from tests.support.checkpoints import CheckpointCase, checkpoint_case, checkpoint_cases


def found(case: CheckpointCase, parent: Path, **changes: Any) -> list[str]:
    """What a changed configuration contradicts in the conversion of the sound one."""
    folder = case.write(parent, weights=False)
    with planned(folder) as plan:
        metadata = {key: entry.value for key, entry in plan.metadata.items()}
    (folder / "config.json").write_text(json.dumps({**case.config, **changes}))
    return [str(message) for message in contradictions(folder / "model.gguf", metadata)]


@pytest.mark.parametrize("case", checkpoint_cases(), ids=lambda case: case.name)
def test_a_model_s_own_configuration_contradicts_nothing(case: CheckpointCase, tmp_path: Path) -> None:
    assert found(case, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        ("hidden_size", 512, "qwen3moe.embedding_length is 256"),
        ("num_hidden_layers", 3, "qwen3moe.block_count is 2"),
        ("num_attention_heads", 8, "qwen3moe.attention.head_count is 4"),
        ("num_key_value_heads", 4, "qwen3moe.attention.head_count_kv is 2"),
        ("num_experts", 16, "qwen3moe.expert_count is 8"),
        ("num_experts_per_tok", 2, "qwen3moe.expert_used_count is 3"),
        ("moe_intermediate_size", 512, "qwen3moe.expert_feed_forward_length is 256"),
        ("rms_norm_eps", 1e-5, "qwen3moe.attention.layer_norm_rms_epsilon is"),
        ("vocab_size", 1000, "the file has 608 tokens"),
        ("architectures", ["MixtralForCausalLM"], "the file is qwen3moe"),
    ],
)
def test_each_value_that_contradicts_the_file_is_named(name: str, value: Any, key: str, tmp_path: Path) -> None:
    changes = {name: value}
    if name == "num_experts":
        changes["num_local_experts"] = value
    (said,) = found(checkpoint_case("qwen3_moe"), tmp_path, **changes)
    assert name in said or "num_local_experts" in said
    assert key in said


def test_no_configuration_contradicts_nothing_and_a_broken_one_is_named(tmp_path: Path) -> None:
    assert contradictions(tmp_path / "model.gguf", {"general.architecture": "llama"}) == []
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ModelFormatError, match="expected JSON"):
        contradictions(tmp_path / "model.gguf", {"general.architecture": "llama"})
