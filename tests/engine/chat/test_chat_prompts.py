"""Conversations with reasoning, tools and calls become prompts that the template and the model understand."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from engine.chat.chat_prompts import ChatPrompts
from engine.errors import InvalidRequestError, TemplateError
from engine.tokenizer import ChatTemplate, Tokenizer
from tests.engine.chat.reading import collected, feed
from tests.engine.tokenizer.reference_data import compact_models
from tests.support.conversations import TOOLS

QUESTION = {"role": "user", "content": "How warm?"}
HERMES = (
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>"
    '{"name": "{{ c.function.name }}", "arguments": {{ ARGUMENTS }}}</tool_call>{% endfor %}{% endfor %}'
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
MAPPING = HERMES.replace("ARGUMENTS", "c.function.arguments | tojson")
TEXT = HERMES.replace("ARGUMENTS", "c.function.arguments")
ALONE = "{% if tools %}{{ tools | tojson }}{% endif %}" + (
    "{% for m in messages %}{% if m.role == 'assistant' and m['content'] is none %}"
    "{% for c in m.tool_calls %}<tool_call>{{ c.function.name }} {{ c.function.arguments }}</tool_call>{% endfor %}"
    "{% else %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
)
TOOLS_ONLY = "<tool_call>{% if tools %}{{ tools | tojson }}{% endif %}" + (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
)
THINKING = (
    "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content is defined and loop.last %}"
    "<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% if enable_thinking is not defined or enable_thinking %}<think>\n"
    "{% endif %}{% endif %}"
)


@cache
def tokenizer(name: str = "llama") -> Tokenizer:
    return Tokenizer.from_metadata(compact_models()[name]["metadata"])


def prompts(source: str | None, name: str = "llama") -> ChatPrompts:
    return ChatPrompts(ChatTemplate(source, tokenizer(name), variables={}, tools=None), tokenizer(name))


def text(source: str, messages: list[dict[str, Any]], **options: Any) -> str:
    return tokenizer().decode(prompts(source).prompt(messages, **options).ids)


def calling(arguments: Any, content: str = "") -> dict[str, Any]:
    function = {"name": "get_weather", "arguments": arguments}
    return {
        "role": "assistant",
        "content": content,
        "tool_calls": [{"id": "call00001", "type": "function", "function": function}],
    }


@pytest.mark.parametrize("source", [MAPPING, TEXT])
@pytest.mark.parametrize("arguments", [{"city": "Oslo"}, '{"city": "Oslo"}'])
def test_arguments_reach_the_template_in_the_form_that_it_takes(source: str, arguments: Any) -> None:
    rendered = text(source, [QUESTION, calling(arguments)])
    assert '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>' in rendered


def test_calls_stand_alone_where_the_template_wants_that() -> None:
    rendered = text(ALONE, [QUESTION, calling({"city": "Oslo"}, "I look.")])
    assert '<assistant>I look.<tool_call>get_weather {"city": "Oslo"}</tool_call>' in rendered


def test_calls_that_the_template_would_leave_out_are_written_into_the_message() -> None:
    rendered = text(TOOLS_ONLY, [QUESTION, calling({"city": "Oslo"}, "I look.")], tools=TOOLS)
    written = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
    assert f"<assistant>I look.\n{written}" in rendered


@pytest.mark.parametrize("message", ["Hello", ["user", "Hello"], None])
def test_a_message_that_is_none_is_refused(message: Any) -> None:
    with pytest.raises(InvalidRequestError, match=r'must have the form \{"role"'):
        prompts(TEXT).prompt([QUESTION, message])


def test_values_that_are_endlessly_deep_are_refused() -> None:
    itself: dict[str, Any] = {}
    itself["properties"] = itself
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for value in (itself, deep):
        tool = {"type": "function", "function": {"name": "f", "parameters": value}}
        with pytest.raises(InvalidRequestError, match="nested 100 deep"):
            prompts(TOOLS_ONLY).prompt([QUESTION], tools=[tool])
        with pytest.raises(InvalidRequestError, match="nested 100 deep"):
            prompts(TEXT).prompt([QUESTION], mood=value)


def test_tools_are_refused_where_the_model_would_never_see_them() -> None:
    with pytest.raises(InvalidRequestError, match=r"get_weather, tell_time.*no place for them"):
        prompts("{{ messages[0].content }}").prompt([QUESTION], tools=TOOLS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"name": "f"}, "must have the form"),
        ("f", "must have the form"),
        ({"function": {"name": "f", "arguments": "{"}}, r"arguments of the call of f must be a JSON object, not \{"),
        ({"function": {"name": "f", "arguments": "[1]"}}, "must be a JSON object"),
    ],
)
def test_calls_in_a_request_that_are_none_are_refused(call: Any, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        prompts(MAPPING).prompt([QUESTION, {"role": "assistant", "tool_calls": [call]}])


def test_the_template_decides_which_reasoning_stays() -> None:
    thought = {"role": "assistant", "content": "4", "reasoning_content": "2 + 2"}
    assert "2 + 2" in text(THINKING, [QUESTION, thought])
    assert "2 + 2" not in text(THINKING, [QUESTION, thought, QUESTION])


def test_reasoning_begins_in_the_prompt_where_the_template_opens_it() -> None:
    chat = prompts(THINKING)
    opened = collected(feed(chat.prompt([QUESTION]).parser, "Hm.\n</think>\n\n4", ()))
    assert (opened.reasoning, opened.answer) == ("Hm.", "4")
    without = collected(feed(chat.prompt([QUESTION], enable_thinking=False).parser, "4 </think>", ()))
    assert (without.reasoning, without.answer) == ("", "4 </think>")


def test_the_vocabulary_of_gpt_oss_is_known_by_its_control_tokens() -> None:
    assert prompts("{{ messages }}", "gpt_oss").format.is_harmony
    assert not prompts("{{ messages }}", "llama").format.is_harmony


def test_markers_that_a_template_puts_together_are_found() -> None:
    source = (
        "{% set open = '<' ~ 'think:' ~ 'opensource>' %}{% for m in messages %}{{ open }}{{ m.content }}{% endfor %}"
    )
    assert [span.opener for span in prompts(source).format.reasoning] == ["<think:opensource>"]


def test_a_model_without_a_template_is_refused() -> None:
    with pytest.raises(TemplateError, match="base model"):
        prompts(None).prompt([QUESTION])
