"""A model's name, size and licence, as its folder, tensors and README.md say them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.convert import TensorPlan
from engine.convert.general_keys import general_keys, title_of
from engine.convert.matrices import Constant
from engine.convert.model_card import read_card
from engine.convert.size_label import size_label
from engine.gguf import TensorType

CARD = """---
license: other
license_name: 'tongyi-qianwen'
license_link: https://example.org/LICENSE
language:
- en
- zh
tags: [chat, "mixture of experts"]
base_model:
- Qwen/Qwen3-30B-A3B-Base
model-index:
- name: x
  results:
  - task: y
---
# A model
license: mit
"""


def planned(name: str, *shape: int) -> TensorPlan:
    return TensorPlan(name, shape, TensorType.F32, Constant(np.zeros((1, 1), np.float32)))


@pytest.mark.parametrize(
    ("folder", "title"),
    [
        ("Qwen3-30B-A3B-Instruct", "Qwen3 30B A3B Instruct"),
        ("granite-3.1-3b-a800m-v2", "Granite 3.1 3b A800M v2"),
        ("deepseek_v3", "Deepseek_V3"),
        ("OLMoE-1B-7B-0924", "OLMoE 1B 7B 0924"),
    ],
)
def test_a_folder_gives_a_readable_name(folder: str, title: str) -> None:
    assert title_of(folder) == title


@pytest.mark.parametrize(
    ("tensors", "label"),
    [
        ([planned("a.weight", 1000, 999)], "999K"),
        ([planned("a.weight", 1300, 1000)], "1.3M"),
        ([planned("a.weight", 12_345, 1000)], "12M"),
        ([planned("a.weight", 46_700, 10**6)], "47B"),
        ([planned("a.weight", 2, 10**12)], "2.0T"),
        ([planned("a.weight", 5, 10**8), planned("blk.0.ffn_up_exps.weight", 8, 7, 10**9)], "8x7.5B"),
        ([planned("blk.0.ffn_up_exps.bias", 8, 1000), planned("blk.0.ffn_up_exps.weight", 8, 99, 1000)], "8x100K"),
    ],
)
def test_a_size_counts_one_expert_in_each_layer(tensors: list[TensorPlan], label: str) -> None:
    assert size_label(tensors) == label


def test_a_model_card_gives_licence_languages_and_base(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(CARD)
    tensors = [planned("a.weight", 1300, 1000)]
    keys = {
        name: entry.value for name, entry in general_keys(tmp_path, "llama", None, TensorType.BF16, tensors).items()
    }

    assert keys["general.license"] == "other"
    assert keys["general.license.name"] == "tongyi-qianwen"
    assert keys["general.license.link"] == "https://example.org/LICENSE"
    assert keys["general.languages"] == ["en", "zh"]
    assert keys["general.tags"] == ["chat", "mixture of experts"]
    assert keys["general.base_model.count"] == 1
    assert keys["general.base_model.0.name"] == "Qwen3 30B A3B Base"
    assert keys["general.base_model.0.organization"] == "Qwen"
    assert keys["general.file_type"] == 32


@pytest.mark.parametrize(
    "text", ["", "# A model", "---\nlicense: mit\n", "---\n---\nlicense: mit", "text\n---\nlicense: mit\n---"]
)
def test_a_card_without_a_head_says_nothing(text: str) -> None:
    assert read_card(text) == {}


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    assert isinstance(read_card(f"---\n{text}\n---\n"), dict)
