"""Texts and conversations become the ids that each model's own tokenizer gives."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from engine.tokenizer import ChatTemplate, Tokenizer
from tests.engine.tokenizer.reference_data import as_reader_gives, compact_models, model_in


def reference_models() -> list[Any]:
    """The models that the project keeps, and those of the folder that COLIBRI_FIXTURES names."""
    models = [pytest.param(model, id=name) for name, model in compact_models().items()]
    if folder := os.environ.get("COLIBRI_FIXTURES"):
        found = sorted(path.parent for path in Path(folder).glob("*/expected.json"))
        models += [pytest.param(model_in(path), id=f"folder-{path.name}") for path in found]
    return models


@pytest.fixture(params=reference_models())
def model(request: pytest.FixtureRequest) -> dict[str, Any]:
    chosen: dict[str, Any] = request.param
    return chosen


@pytest.fixture
def tokenizer(model: dict[str, Any]) -> Tokenizer:
    return Tokenizer.from_metadata(as_reader_gives(model["metadata"]))


def test_prompts_have_the_models_own_ids(model: dict[str, Any], tokenizer: Tokenizer) -> None:
    for prompt in model["prompts"]:
        assert tokenizer.encode(prompt["text"]) == prompt["input_ids"]


def test_prompts_come_back_from_their_ids(model: dict[str, Any], tokenizer: Tokenizer) -> None:
    for prompt in model["prompts"]:
        assert tokenizer.decode(prompt["input_ids"]) == prompt["text"]


def test_generated_ids_give_the_recorded_text(model: dict[str, Any], tokenizer: Tokenizer) -> None:
    for prompt in model["prompts"]:
        if "\ufffd" not in prompt["greedy_text"]:  # the recording's library replaces whole runs of damaged bytes
            assert tokenizer.decode(prompt["greedy_ids"], skip_special=False) == prompt["greedy_text"]


def test_conversations_render_and_encode_as_recorded(model: dict[str, Any], tokenizer: Tokenizer) -> None:
    template = ChatTemplate.from_metadata(model["metadata"], tokenizer)
    for chat in model["chats"].values():
        prompting = chat["add_generation_prompt"]
        assert template.render(chat["messages"], add_generation_prompt=prompting) == chat["rendered"]
        assert template.encode(chat["messages"], add_generation_prompt=prompting) == chat["input_ids"]


def test_answers_end_where_the_template_ends_them(model: dict[str, Any], tokenizer: Tokenizer) -> None:
    assert tokenizer.eos_id in tokenizer.end_ids
    assert all(tokenizer.is_special(token_id) for token_id in tokenizer.end_ids)
    answered = model["chats"]["chat_no_generation_prompt"]["rendered"].split("It is 4.")[1]
    ids = tokenizer.encode(answered, add_special=False, parse_special=True)
    closing = next(token_id for token_id in ids if tokenizer.is_special(token_id))
    if "<|return|>" in model["metadata"]["tokenizer.ggml.tokens"]:
        assert tokenizer.token_text(closing) == "<|end|>"  # closes each of an answer's messages, so it ends no answer
        assert closing not in tokenizer.end_ids
    else:
        assert closing in tokenizer.end_ids
