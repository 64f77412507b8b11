"""A description says what a GGUF model holds, whatever its keys are."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.gguf import GGUFReader, GGUFWriter, TensorType, ValueType
from engine.gguf.inspect import ModelDescription, describe


def describe_model(path: Path, keys: dict[str, Any], tensors: dict[str, tuple[TensorType, tuple[int, ...]]]) -> Any:
    writer = GGUFWriter(path)
    for key, value in keys.items():
        writer.add(key, value)
    for name, (tensor_type, shape) in tensors.items():
        writer.add_tensor(name, tensor_type, shape, bytes(tensor_type.n_bytes(shape)))
    with GGUFReader.open(writer.write()) as reader:
        return describe(reader)


MOE_KEYS = {
    "general.architecture": "mixtral-like",
    "general.name": "Tiny",
    "general.license": "apache-2.0",
    "mixtral-like.block_count": 2,
    "mixtral-like.expert_count": 8,
    "mixtral-like.expert_used_count": 2,
    "mixtral-like.context_length": 4096,
    "tokenizer.ggml.tokens": [f"t{i}" for i in range(100)],
    "tokenizer.chat_template": "{{ messages }}" * 100,
    "floats": np.array([math.nan, 1.5], np.float32),
}
MOE_TENSORS = {
    "token_embd.weight": (TensorType.Q8_0, (100, 64)),
    "blk.0.attn_norm.weight": (TensorType.F32, (64,)),
    "blk.1.ffn_gate_inp.weight": (TensorType.F32, (8, 64)),
    "blk.1.ffn_up_exps.weight": (TensorType.Q8_0, (8, 32, 64)),
}


@pytest.fixture
def moe(tmp_path: Path) -> ModelDescription:
    return describe_model(tmp_path / "m.gguf", MOE_KEYS, MOE_TENSORS)


def test_facts_come_from_the_keys_of_the_architecture(moe: ModelDescription) -> None:
    assert (moe.architecture, moe.name, moe.licence) == ("mixtral-like", "Tiny", "apache-2.0")
    assert (moe.n_layers, moe.n_experts, moe.top_k, moe.context_length) == (2, 8, 2, 4096)
    assert moe.has_chat_template
    assert moe.n_parameters == 100 * 64 + 64 + 8 * 64 + 8 * 32 * 64
    assert moe.tensor_bytes == 100 * 68 + 64 * 4 + 8 * 64 * 4 + 8 * 32 * 68


def test_tensors_are_grouped_by_layer_with_their_routers(moe: ModelDescription) -> None:
    outside, first, second = moe.layers

    assert (outside.index, first.index, second.index) == (None, 0, 1)
    assert [tensor.name for tensor in outside.tensors] == ["token_embd.weight"]
    assert first.router is None
    assert second.router is not None
    assert (second.router.name, second.router.shape) == ("blk.1.ffn_gate_inp.weight", (8, 64))
    assert second.n_bytes == 8 * 64 * 4 + 8 * 32 * 68


def test_types_are_totalled_the_largest_first(moe: ModelDescription) -> None:
    assert [(total.type.name, total.n_tensors, total.n_bytes) for total in moe.types] == [
        ("Q8_0", 2, 100 * 68 + 8 * 32 * 68),
        ("F32", 2, 64 * 4 + 8 * 64 * 4),
    ]


def test_long_values_are_abbreviated_and_all_can_be_written_as_json(moe: ModelDescription) -> None:
    keys = {key.name: key for key in moe.keys}

    tokens = keys["tokenizer.ggml.tokens"]
    assert (tokens.value, tokens.n_items, tokens.is_abbreviated) == ([f"t{i}" for i in range(8)], 100, True)
    template = keys["tokenizer.chat_template"]
    assert (len(template.value), template.n_characters, template.is_abbreviated) == (400, 1400, True)
    assert keys["floats"].value == ["nan", 1.5]
    assert json.loads(json.dumps([key.value for key in moe.keys], allow_nan=False))


def test_keys_of_unexpected_types_are_no_facts(tmp_path: Path) -> None:
    keys = {
        "general.architecture": 7,
        "general.name": [1, 2],
        "general.license": True,
        "tokenizer.chat_template": 1,
        ".block_count": "two",
        ".expert_count": True,
    }

    model = describe_model(tmp_path / "m.gguf", keys, {})

    assert (model.architecture, model.name, model.licence, model.n_layers, model.n_experts) == (None,) * 5
    assert not model.has_chat_template
    assert (model.layers, model.types, model.n_parameters) == ((), (), 0)


def test_a_name_with_an_absurd_layer_number_stays_outside_the_layers(tmp_path: Path) -> None:
    model = describe_model(tmp_path / "m.gguf", {}, {f"blk.{'9' * 30}.ffn_gate_inp.weight": (TensorType.F32, (1,))})

    assert [(layer.index, layer.router) for layer in model.layers] == [(None, None)]


def test_an_empty_list_is_described_whole(tmp_path: Path) -> None:
    writer = GGUFWriter(tmp_path / "m.gguf")
    writer.add("empty", [], ValueType.STRING)

    with GGUFReader.open(writer.write()) as reader:
        keys = {key.name: key for key in describe(reader).keys}

    assert (keys["empty"].value, keys["empty"].n_items, keys["empty"].is_abbreviated) == ([], 0, False)
