"""The starter model's 49,152 tokens: conversations have the ids that an independent implementation gave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.gguf import GGUFReader
from engine.tokenizer import ChatTemplate, Tokenizer

REFERENCE = Path(__file__).parents[2] / "data" / "starter_reference.json"

pytestmark = pytest.mark.starter


@pytest.fixture(scope="module")
def starter(starter_model: Path) -> tuple[Tokenizer, ChatTemplate]:
    with GGUFReader.open(starter_model) as reader:
        tokenizer = Tokenizer.from_metadata(reader.metadata)
        tokenizer.prepare()
        return tokenizer, ChatTemplate.from_metadata(reader.metadata, tokenizer)


def test_conversations_have_the_reference_ids(starter: tuple[Tokenizer, ChatTemplate]) -> None:
    tokenizer, template = starter
    cases = json.loads(REFERENCE.read_text())["cases"]
    assert len(cases) >= 10
    for case in cases:
        assert template.render(case["messages"]) == case["rendered"]
        assert template.encode(case["messages"]) == case["prompt_ids"]
        assert tokenizer.decode(case["prompt_ids"], skip_special=False) == case["rendered"]


def test_the_template_adds_its_own_system_prompt_only_where_there_is_none(
    starter: tuple[Tokenizer, ChatTemplate],
) -> None:
    _, template = starter
    question = {"role": "user", "content": "Hi"}
    plain = template.render([question])
    assert plain.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face")
    assert plain.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    terse = template.render([{"role": "system", "content": "Be terse."}, question])
    assert terse.startswith("<|im_start|>system\nBe terse.<|im_end|>\n<|im_start|>user\nHi")
    assert "SmolLM" not in terse


def test_answers_end_with_im_end(starter: tuple[Tokenizer, ChatTemplate]) -> None:
    tokenizer, _ = starter
    assert {tokenizer.token_text(token_id) for token_id in tokenizer.end_ids} == {"<|im_end|>", "<|endoftext|>"}
    assert tokenizer.encode("Hello") == [19556]
