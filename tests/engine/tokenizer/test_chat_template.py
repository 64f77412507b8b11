"""Templates render as their models expect, and faulty ones are explained."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Any

import pytest

from engine.errors import TemplateError
from engine.tokenizer import ChatTemplate, Tokenizer
from tests.engine.tokenizer.reference_data import compact_models

MESSAGES = [{"role": "user", "content": "Hi <b>é</b>"}]


@cache
def tokenizer_of(name: str) -> Tokenizer:
    return Tokenizer.from_metadata(compact_models()[name]["metadata"])


def template(source: str | None, tokenizer: str = "llama", **keys: str) -> ChatTemplate:
    metadata = {**compact_models()[tokenizer]["metadata"], **{f"tokenizer.{key}": value for key, value in keys.items()}}
    metadata["tokenizer.chat_template"] = source
    return ChatTemplate.from_metadata(metadata, tokenizer_of(tokenizer))


def render(source: str, messages: list[dict[str, Any]] | None = None, **extra: Any) -> str:
    return template(source).render(MESSAGES if messages is None else messages, **extra)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ bos_token }}|{{ eos_token }}|{{ unk_token }}|{{ pad_token }}", "<s>|</s>|<unk>|"),
        ("{{ messages[0].content }}", "Hi <b>é</b>"),
        ("{{ messages | tojson }}", '[{"role": "user", "content": "Hi <b>é</b>"}]'),
        ('{{ {"b": 1, "a": [2]} | tojson(indent=2, sort_keys=true) }}', '{\n  "a": [\n    2\n  ],\n  "b": 1\n}'),
        ('{{ {"a": 1} | tojson(separators=(",", ":")) }}', '{"a":1}'),
        ('{{ "é" | tojson(ensure_ascii=true) }}', '"\\u00e9"'),
        ("{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "6"),
        ("{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "02345678"),
        ("{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "012"),
        ("  {% if true %}\na\n  {% endif %}\nb", "a\nb"),
        ("{% generation %}x{% endgeneration %}", "x"),
        ("{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m('x') ~ m(1) }}", "[x][1]"),
        ("{{ tools is none }}{{ documents is none }}{{ enable_thinking is defined }}", "TrueTrueFalse"),
        ("{{ ['a', 'b'] | join(', ') }}{{ 'a\nb' | indent(2) }}{{ 'x-y' | replace('-', '+') }}", "a, ba\n  bx+y"),
        ("{{ messages | map(attribute='role') | join('/') }}", "user"),
        ("{{ messages | join('/', attribute='content') }}", "Hi <b>é</b>"),
        ("{{ '%s is %d' | format('x', 2) }}{{ '{} {:>3}'.format(1, 2) }}{{ 'a%sb' % 3 }}", "x is 21   2a3b"),
        ("{{ 'a,b'.split(',')[-1] }}{{ ' x '.strip() }}{{ ', '.join(['1', '2']) }}{{ 'ab'[::-1] }}", "bx1, 2ba"),
        ("{{ messages[0] | items | list }}", "[('role', 'user'), ('content', 'Hi <b>é</b>')]"),
        ("{{ 5 | string ~ 'a' * 3 }}{{ [1] + [2] }}{{ 2 ** 10 }}{{ 7 % 4 }}", "5aaa[1, 2]10243"),
        ("{% set x %}{{ 1 }}{{ 2 }}{% endset %}{{ x }}{{ dict(a=1).a }}", "121"),
        ("{% set x = [3, 4] %}{{ x.pop(0) }}{{ x }}", "3[4]"),
        ("{% set x = [] %}{% set _ = x.append('a') %}{{ x }}{{ messages[:0] + x }}", "['a']['a']"),
        ("{{ ('{\"a\": [1]}' | from_json).a }}", "[1]"),
        ("{{ messages | map(attribute='role') | tojson }}", '["user"]'),
        (
            "{{ [1, 2.5] | sum }}{{ messages | sum(attribute='n', start=3) if false else 'a b' | urlencode }}",
            "3.5a%20b",
        ),
        ("{% set j = joiner(', ') %}{% for i in range(3) %}{{ j() }}{{ i }}{% endfor %}", "0, 1, 2"),
        ("{{ (('a', 'b'),) | list }}{{ {'k': messages[0].role}.k }}", "[('a', 'b')]user"),
    ],
)
def test_templates_have_what_they_are_written_for(source: str, expected: str) -> None:
    assert render(source) == expected


def test_the_current_date_is_there() -> None:
    assert render("{{ strftime_now('%d %B %Y') }}") == datetime.now().strftime("%d %B %Y")


def test_further_variables_reach_the_template() -> None:
    source = "{{ enable_thinking }}{{ tools[0].name }}{{ add_generation_prompt }}{{ bos_token }}"
    tools = [{"name": "clock"}]
    extra = {"enable_thinking": False, "bos_token": "!"}
    assert render(source, tools=tools, add_generation_prompt=False, **extra) == "FalseclockFalse!"


def test_conversations_with_tools_use_the_template_for_them() -> None:
    both = template("plain", **{"chat_template.tool_use": "with {{ tools | length }}"})
    assert both.render(MESSAGES) == "plain"
    assert both.render(MESSAGES, tools=[{"name": "clock"}]) == "with 1"


def test_fields_that_are_none_are_as_good_as_missing() -> None:
    messages = [{"role": "assistant", "content": None, "tool_calls": None}]
    assert render("{{ messages[0].content is defined }}{{ 'tool_calls' in messages[0] }}", messages) == "FalseFalse"


@pytest.mark.parametrize("name", ["reasoning_content", "thinking", "reasoning"])
def test_reasoning_is_there_under_each_name_that_templates_read(name: str) -> None:
    messages = [{"role": "assistant", "content": "4", name: "2 + 2"}]
    assert render("{{ messages[0].reasoning_content }}, {{ messages[0].thinking }}", messages) == "2 + 2, 2 + 2"


@pytest.mark.parametrize("change", ["append", "pop"])
@pytest.mark.parametrize("place", ["messages", "messages[0].parts", "tools", "extra.list"])
def test_lists_of_the_callers_cannot_be_changed(place: str, change: str) -> None:
    messages = [{"role": "user", "content": "Hi", "parts": [1]}]
    with pytest.raises(TemplateError, match=change):
        render(f"{{{{ {place}.{change}(0) }}}}", messages, tools=[{}], extra={"list": [0]})


def test_the_callers_messages_stay_as_they_are() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    with pytest.raises(TemplateError, match="append"):
        render("{{ messages.append(1) }}", messages)
    assert messages == [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("a\n{% if x %}\nb", ["cannot be compiled", "line 3: b"]),
        ("a\n{{ x | swirl }}", ["cannot be compiled", "swirl", "line 2: {{ x | swirl }}"]),
        ("a\nb {{ x.y.z }}", ["failed", "'x' is undefined", "line 2: b {{ x.y.z }}"]),
        ("a\n{{ 1 + 'b' }}", ["failed", "TypeError", "line 2: {{ 1 + 'b' }}"]),
        ("a\n{{ raise_exception('roles must alternate') }}", ["does not take", "roles must alternate", "line 2"]),
        ("{% macro m() %}\n{{ nothing.at.all }}\n{% endmacro %}\n{{ m() }}", ["'nothing' is undefined", "line 2"]),
        ("{% include 'other' %}", ["failed", "line 1"]),
        ("{{ x.y }} {{ '" + "long" * 99 + "' }}", ["longlong", "…"]),
    ],
)
def test_a_faulty_template_is_quoted(source: str, parts: list[str]) -> None:
    with pytest.raises(TemplateError) as error:
        render(source)
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_bos_is_added_only_where_the_template_does_not_write_it() -> None:
    tokenizer = tokenizer_of("llama")
    assert tokenizer.adds_bos
    expected = [tokenizer.bos_id, *tokenizer.encode("Hi", add_special=False)]
    assert template("{{ bos_token }}Hi").encode(MESSAGES) == expected
    assert template("Hi").encode(MESSAGES) == expected
    assert template("Hi", "qwen2").encode(MESSAGES) == tokenizer_of("qwen2").encode("Hi")


def test_without_a_template_no_format_is_assumed() -> None:
    base = template(None)
    assert base.source is None
    with pytest.raises(TemplateError, match=r"expected a chat template in tokenizer\.chat_template, found none"):
        base.render(MESSAGES)


def test_without_a_template_a_base_model_can_be_asked_to_go_on() -> None:
    base = template(None)
    story = [{"role": "user", "content": "Once upon"}]
    assert base.render(story, allow_default=True) == "Once upon"
    assert base.encode(story, allow_default=True) == tokenizer_of("llama").encode("Once upon")
    story += [{"role": "assistant", "content": " a time."}, {"role": "user", "content": "Then"}]
    system = [{"role": "system", "content": "A tale."}]
    assert base.render(system + story, allow_default=True) == "A tale.\n\nOnce upon a time.\nThen"


def test_a_template_is_compiled_once() -> None:
    chat = template("{{ messages[0].content }}")
    assert chat.render(MESSAGES) == chat.render(MESSAGES)
    assert len(chat._compiled) == 1
