"""A request's tokens become deltas: reasoning, answer and calls, special tokens hidden."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import pytest

from engine import Delta, SamplingParams
from engine.chat import AnswerParser, ChatFormat
from engine.request import Request
from engine.sampling import Sampler
from engine.scheduler import Sequence
from engine.tokenizer import Tokenizer
from tests.engine.tokenizer.reference_data import compact_models
from tests.support.conversations import TOOLS


@cache
def tokenizer(name: str) -> Tokenizer:
    return Tokenizer.from_metadata(compact_models()[name]["metadata"])


def deltas(name: str, text: str, parser: AnswerParser | None, *, ended: bool = True, **params: Any) -> list[Delta]:
    """What a request gives for a model's tokens: those of the text, then an end token. No sampler takes part."""
    vocabulary = tokenizer(name)
    request = Request(Sequence(7, [1], 1), SamplingParams(**params), cast(Sampler, None), vocabulary, 4096, parser)
    ids = vocabulary.encode(text, add_special=False, parse_special=True)
    found: list[Delta] = []
    for token in [*ids, *sorted(vocabulary.end_ids)[:1]] if ended else ids:
        found += request.accept(token)
        if found[-1].finish_reason is not None:
            return found
    return found + request.end("cancelled")


def texts(found: list[Delta]) -> dict[str, str]:
    kinds = {delta.kind for delta in found if delta.text}
    return {kind: "".join(delta.text for delta in found if delta.kind == kind) for kind in kinds}


def think_parser(name: str, prompt_end: str = "") -> AnswerParser:
    return ChatFormat("</think><tool_call>", tokenizer(name).control_tokens()).parser(prompt_end, TOOLS)


@pytest.mark.parametrize("name", ["llama", "qwen3_moe", "deepseek_v3", "lfm2_moe", "ernie4_5_moe"])
def test_reasoning_is_a_kind_of_its_own_in_vocabularies_without_such_tokens(name: str) -> None:
    found = deltas(name, "<think>\nHm é 你.\n</think>\n\nYes.", think_parser(name))
    assert texts(found) == {"reasoning": "Hm é 你.", "answer": "Yes."}
    assert found[-1].finish_reason == "stop" and all(delta.finish_reason is None for delta in found[:-1])


def test_harmony_is_read_by_its_control_tokens() -> None:
    name = "gpt_oss"
    text = "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>Yes, <|x|>."
    found = deltas(name, text, ChatFormat("", tokenizer(name).control_tokens()).parser())
    assert texts(found) == {"reasoning": "Hm.", "answer": "Yes, <|x|>."}
    call = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}'
    found = deltas(name, call, ChatFormat("", tokenizer(name).control_tokens()).parser())
    assert [(delta.call.name, delta.call.arguments) for delta in found if delta.call is not None] == [
        ("get_weather", '{"city": "Oslo"}')
    ]
    assert (texts(found), found[-1].finish_reason) == ({}, "tool_calls")


def test_each_token_is_counted_once() -> None:
    name, text = "qwen3_moe", '<think>a</think>b<tool_call>{"name": "f"}</tool_call>'
    found = deltas(name, text, think_parser(name))
    ids = tokenizer(name).encode(text, add_special=False)
    assert [delta.token_id for delta in found if delta.token_id is not None][:-1] == ids
    assert [delta.call.name for delta in found if delta.call is not None] == ["f"]
    assert found[-1].finish_reason == "tool_calls"


def test_a_call_that_is_cut_off_is_text() -> None:
    found = deltas("llama", '<tool_call>{"name": "get_w', think_parser("llama"), max_tokens=400)
    assert texts(found) == {"answer": '<tool_call>{"name": "get_w'}
    assert "could not be read" in "".join(delta.problem for delta in found)
    cancelled = deltas("llama", '<tool_call>{"name": "get_w', think_parser("llama"), ended=False)
    assert (texts(cancelled), cancelled[-1].finish_reason) == ({"answer": '<tool_call>{"name": "get_w'}, "cancelled")
    assert not any(delta.problem for delta in cancelled)


def test_stop_strings_hold_in_every_part() -> None:
    found = deltas("llama", "<think>Hm STOP more</think>Yes", think_parser("llama"), stop=("STOP",))
    assert (texts(found), found[-1].finish_reason) == ({"reasoning": "Hm"}, "stop")
    found = deltas("llama", "<think>Hm</think>Yes STOP more", think_parser("llama"), stop=("STOP",))
    assert texts(found) == {"reasoning": "Hm", "answer": "Yes "}


def test_a_control_token_parts_stop_strings_only_where_it_is_read() -> None:
    """Hidden, it is nothing: a stop string goes on behind it. Read as a marker, it may begin another kind of text."""
    name, text = "qwen3_moe", "Yes ST<|im_start|>OP more"

    assert texts(deltas(name, text, None, stop=("STOP",))) == {"answer": "Yes "}
    assert texts(deltas(name, text, think_parser(name), stop=("STOP",))) == {"answer": "Yes STOP more"}


def test_without_a_parser_all_text_is_the_answer() -> None:
    assert texts(deltas("llama", "<think>Hm</think>Yes", None)) == {"answer": "<think>Hm</think>Yes"}
