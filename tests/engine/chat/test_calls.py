"""Calls of tools are read in each family's syntax, and what cannot be read is explained."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.chat import ChatFormat
from tests.engine.chat.reading import feed, read
from tests.support.conversations import TOOLS

COLOGNE, OSLO = {"city": "Köln", "days": 2, "unit": "C"}, {"city": "Oslo"}
BOTH = [("get_weather", COLOGNE), ("get_weather", OSLO)]
FIRST, SECOND = json.dumps(COLOGNE, ensure_ascii=False), json.dumps(OSLO)


def objects(arguments: str = "arguments", name: str = "name") -> list[str]:
    return [f'{{"{name}": "get_weather", "{arguments}": {text}}}' for text in (FIRST, SECOND)]


def parameters(tag: str, names: tuple[str, str], *, own_lines: bool = False) -> list[str]:
    """Both calls with a tag for each argument; `names`: how the tags of a call and of an argument begin."""
    written = []
    for arguments in (COLOGNE, OSLO):
        inner = "".join(
            f"<{names[1].format(key)}>{chr(10) if own_lines else ''}{value}{chr(10) if own_lines else ''}"
            f"</{names[1].split('=')[0].split(' ')[0]}>\n"
            for key, value in arguments.items()
        )
        written.append(f"<{names[0].format('get_weather')}>\n{inner}</{tag}>")
    return written


def pairs(suffix: str = "") -> list[str]:
    return [
        "get_weather\n"
        + "".join(
            f"<arg_key{suffix}>{key}</arg_key{suffix}>\n<arg_value{suffix}>{value}</arg_value{suffix}>\n"
            for key, value in arguments.items()
        )
        for arguments in (COLOGNE, OSLO)
    ]


def between(opener: str, closer: str, parts: list[str]) -> str:
    return "\n".join(f"{opener}{part}{closer}" for part in parts)


CODER = parameters("function", ("function={}", "parameter={}"), own_lines=True)
INVOKE = parameters("invoke", ('invoke name="{}"', 'parameter name="{}"'))
DSML = (
    '<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">{}</｜DSML｜parameter>\n{}'
    "</｜DSML｜invoke>\n"
)
DAYS = (
    '<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n'
    '<｜DSML｜parameter name="unit" string="true">C</｜DSML｜parameter>\n'
)
K3 = '<|open|>call tool="get_weather" index="{}"<|sep|>{}<|close|>call<|sep|>'
K3_ARGUMENT = '<|open|>argument key="{}" type="{}"<|sep|>{}<|close|>argument<|sep|>'

# What gives the family away, and both calls as the family writes them.
WRITTEN: dict[str, tuple[str, str]] = {
    "hermes": ("<tool_call>", between("<tool_call>\n", "\n</tool_call>", objects())),
    "qwen-coder": ("<tool_call> <function=", between("<tool_call>\n", "\n</tool_call>", CODER)),
    "qwen-coder, JSON": ("<tool_call> <function=", between("<tool_call>\n", "\n</tool_call>", objects())),
    "mistral, list": ("[TOOL_CALLS]", f"[TOOL_CALLS][{', '.join(objects())}]"),
    "mistral, names": ("[TOOL_CALLS]", f"[TOOL_CALLS]get_weather[ARGS]{FIRST}[TOOL_CALLS]get_weather[ARGS]{SECOND}"),
    "mistral, ids": (
        "[TOOL_CALLS]",
        f"[TOOL_CALLS]get_weather[CALL_ID]abcdefghi[ARGS]{FIRST}[TOOL_CALLS]get_weather[CALL_ID]123456789[ARGS]{SECOND}",
    ),
    "llama": ("<|python_tag|>", "; ".join(objects("parameters"))),
    "llama, tag": ("<|python_tag|>", "<|python_tag|>" + "; ".join(objects("parameters"))),
    "llama, built in": (
        "<|python_tag|>",
        "<|python_tag|>[get_weather.call(city='Köln', days=2, unit='C'), get_weather.call(city='Oslo')]",
    ),
    "deepseek 2 and 3": (
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁begin｜>"
        + between(
            "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n```json\n",
            "\n```<｜tool▁call▁end｜>",
            [FIRST, SECOND],
        )
        + "<｜tool▁calls▁end｜>",
    ),
    "deepseek 3.1": (
        "<｜tool▁calls▁begin｜>",
        "<｜tool▁calls▁begin｜>"
        + between("<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>", "<｜tool▁call▁end｜>", [FIRST, SECOND])
        + "<｜tool▁calls▁end｜>",
    ),
    "deepseek 3.2": (
        "｜DSML｜",
        f"<｜DSML｜function_calls>\n{DSML.format('Köln', DAYS)}{DSML.format('Oslo', '')}</｜DSML｜function_calls>",
    ),
    "glm": ("<arg_key>", between("<tool_call>", "</tool_call>", pairs())),
    "hunyuan 3": (
        "<tool_call:opensource>",
        "<tool_calls:opensource>\n"
        + between("<tool_call:opensource>", "</tool_call:opensource>", pairs(":opensource"))
        + "\n</tool_calls:opensource>",
    ),
    "hunyuan": ("<tool_calls>", f"<tool_calls>[{', '.join(objects())}]</tool_calls>"),
    "hunyuan, fenced": (
        "<tool_calls> <tool_call>",
        "<tool_calls>\n"
        + between("<tool_call>get_weather\n```json\n", "\n```\n</tool_call>", [FIRST, SECOND])
        + "\n</tool_calls>",
    ),
    "granite": ("<|tool_call|>", f"<|tool_call|>[{', '.join(objects())}]"),
    "phi 4": ("<|tool_call|> <|/tool_call|>", f"<|tool_call|>[{', '.join(objects())}]<|/tool_call|>"),
    "kimi": (
        "<|tool_call_argument_begin|>",
        "<|tool_calls_section_begin|>"
        + "".join(
            f"<|tool_call_begin|>functions.get_weather:{number}<|tool_call_argument_begin|>{text}<|tool_call_end|>"
            for number, text in enumerate((FIRST, SECOND))
        )
        + "<|tool_calls_section_end|>",
    ),
    "kimi 3": (
        "<|open|> <|close|>",
        "<|open|>tools<|sep|>"
        + K3.format(
            1,
            K3_ARGUMENT.format("city", "string", "Köln")
            + K3_ARGUMENT.format("days", "number", 2)
            + K3_ARGUMENT.format("unit", "string", "C"),
        )
        + K3.format(2, K3_ARGUMENT.format("city", "string", "Oslo"))
        + "<|close|>tools<|sep|>",
    ),
    "minimax 1": ("<tool_calls>\n{", "<tool_calls>\n" + "\n".join(objects()) + "\n</tool_calls>"),
    "minimax 2": ("<minimax:tool_call>", "<minimax:tool_call>\n" + "\n".join(INVOKE) + "\n</minimax:tool_call>"),
    "minimax 3": (
        "]<]minimax[>[",
        ']<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Köln]<]minimax[>[</city>'
        "]<]minimax[>[<days>2]<]minimax[>[</days>]<]minimax[>[<unit>C]<]minimax[>[</unit>]<]minimax[>[</invoke>\n"
        ']<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Oslo]<]minimax[>[</city>]<]minimax[>[</invoke>\n'
        "]<]minimax[>[</tool_call>",
    ),
    "seed": ("<seed:tool_call>", between("<seed:tool_call>\n", "\n</seed:tool_call>", CODER)),
    "lfm2": (
        "<|tool_call_start|>",
        '<|tool_call_start|>[get_weather(city="Köln", days=2, unit="C"), get_weather(city="Oslo")]<|tool_call_end|>',
    ),
    "ernie": ("<tool_call>", between("<tool_call>\n", "\n</tool_call>\n", objects())),
    "gemma 4": (
        "<|tool_call>",
        '<|tool_call>call:get_weather{city:<|"|>Köln<|"|>,days:2,unit:<|"|>C<|"|>}<tool_call|>'
        '<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>',
    ),
    "apertus": (
        "<|tools_prefix|>",
        f'<|tools_prefix|>[{{"get_weather": {FIRST}}}, {{"get_weather": {SECOND}}}]<|tools_suffix|>',
    ),
    "cohere": ("<|START_ACTION|>", f"<|START_ACTION|>[{', '.join(objects('parameters', 'tool_name'))}]<|END_ACTION|>"),
    "command-r": ("Action: directly-answer", f"Action:\n```json\n[{', '.join(objects('parameters', 'tool_name'))}]```"),
    "nemotron": ("<TOOLCALL>", f"<TOOLCALL>[{', '.join(objects())}]</TOOLCALL>"),
    "functionary": ("<function=</function>", between("<function=get_weather>", "</function>", [FIRST, SECOND])),
    "minicpm": (
        "<function name=",
        "\n".join(parameters("function", ('function name="{}"', 'param name="{}"'))),
    ),
}


@pytest.mark.parametrize("family", WRITTEN)
def test_the_calls_of_each_family_are_read(family: str) -> None:
    source, text = WRITTEN[family]
    found = read(source, text, tools=TOOLS)
    assert (found.calls, found.answer, found.problems) == (BOTH, "", [])


@pytest.mark.parametrize("family", WRITTEN)
@given(cuts=st.lists(st.integers(1, 300), min_size=1))
def test_calls_are_the_same_however_they_are_cut(family: str, cuts: list[int]) -> None:
    source, text = WRITTEN[family]
    assert read(source, text, tools=TOOLS, cuts=cuts).calls == BOTH


@pytest.mark.parametrize("family", [name for name in WRITTEN if name not in ("llama", "command-r")])
def test_text_before_calls_is_the_answer(family: str) -> None:
    source, text = WRITTEN[family]
    found = read(source, f"I look it up.\n\n{text}\n", tools=TOOLS)
    assert (found.answer, found.calls) == ("I look it up.", BOTH)


@pytest.mark.parametrize("family", WRITTEN)
def test_without_tools_nothing_is_a_call(family: str) -> None:
    source, text = WRITTEN[family]
    if source != "<|open|> <|close|>":
        assert read(source, text).answer == text


def test_a_call_is_there_as_soon_as_it_is_written() -> None:
    source, text = WRITTEN["hermes"]
    parser = ChatFormat(source, ()).parser("", TOOLS)
    first = text[: text.index("</tool_call>") + len("</tool_call>")]
    assert [piece.call.name for piece in parser.push(first) if piece.call is not None] == ["get_weather"]


def test_ids_are_kept_or_made_and_differ() -> None:
    parser = ChatFormat("[TOOL_CALLS]", ()).parser("", TOOLS)
    pieces = feed(parser, WRITTEN["mistral, ids"][1], ())
    assert [piece.call.id for piece in pieces if piece.call is not None] == ["abcdefghi", "123456789"]
    pieces = feed(ChatFormat("<tool_call>", ()).parser("", TOOLS), WRITTEN["hermes"][1], ())
    made = [piece.call.id for piece in pieces if piece.call is not None]
    assert len(set(made)) == 2 and all(len(name) == 9 and name.isalnum() for name in made)


@pytest.mark.parametrize(
    ("source", "text", "reason"),
    [
        ("<tool_call>", "<tool_call>\n{get_weather}\n</tool_call>", 'a JSON object with "name" and "arguments"'),
        (
            "<tool_call>",
            '<tool_call>{"name": "f", "arguments": 3}</tool_call>',
            "a JSON object with the arguments of f",
        ),
        ("<tool_call>", "<tool_call>{", 'a JSON object with "name"'),
        ("<tool_call>", "<tool_call>" + "[" * 5000 + "</tool_call>", "a JSON object"),
        ("<tool_call> <function=", "<tool_call>nothing</tool_call>", "<function=NAME>"),
        ("<arg_key>", "<tool_call>f<arg_key>city</arg_key>x</tool_call>", "<arg_key> and <arg_value>"),
        ("[TOOL_CALLS]", "[TOOL_CALLS]f[ARGS]{x", "a JSON object with the arguments of f"),
        ("<|tool_call_start|>", "<|tool_call_start|>[f(1)]<|tool_call_end|>", "a call with named arguments only"),
        ("<|tool_call_start|>", "<|tool_call_start|>[__import__('os')]<|tool_call_end|>", "named arguments only"),
        ("<|tool_call_start|>", "<|tool_call_start|>" + "(" * 5000 + "<|tool_call_end|>", "as in Python"),
        ("<|tool_call>", "<|tool_call>call:f{a:" + "{a:" * 90 + "<tool_call|>", "levels"),
        ("<|tool_call>", '<|tool_call>call:f{a:<|"|>x}<tool_call|>', '<|"|>'),
        ("<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{<｜tool▁call▁end｜>", "the arguments of f"),
    ],
)
def test_what_is_no_call_stays_text_and_says_why(source: str, text: str, reason: str) -> None:
    found = read(source, text, tools=TOOLS)
    assert found.calls == []
    assert found.answer == text
    assert len(found.problems) == 1 and "expected" in found.problems[0] and reason in found.problems[0]


def test_an_answer_in_json_that_calls_no_tool_is_an_answer() -> None:
    for text in ('{"name": "Ada", "age": 36}', '{"name": "unknown_tool", "parameters": {}}', "{not json"):
        found = read("<|python_tag|>", text, tools=TOOLS)
        assert (found.answer, found.calls, found.problems) == (text, [], [])


def test_reasoning_may_come_before_a_call_and_is_ended_by_one() -> None:
    source = "<think></think><|tool_call_argument_begin|>"
    call = WRITTEN["kimi"][1]
    control = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>", "<|tool_call_end|>")
    for text in (f"<think>Hm.</think>{call}", f"<think>Hm.{call}"):
        found = read(source, text, tools=TOOLS, control=control)
        assert (found.reasoning, found.answer, found.calls) == ("Hm.", "", BOTH)


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, "12", "12"),
        ({"type": "string"}, " a\nb ", " a\nb "),
        ({"type": "integer"}, "12", 12),
        ({"type": "number"}, " 1.5\n", 1.5),
        ({"type": "boolean"}, "True", True),
        ({"type": "array"}, '["a", {"b": 1}]', ["a", {"b": 1}]),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "7", "7"),
        ({}, "12", 12),
        ({}, "twelve", "twelve"),
        ({"type": "integer"}, "twelve", "twelve"),
    ],
)
def test_values_without_quotes_have_the_type_that_the_tool_says(schema: Any, text: str, value: Any) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"x": schema}}}}]
    written = f"<tool_call>\n<function=f>\n<parameter=x>\n{text}\n</parameter>\n</function>\n</tool_call>"
    assert read("<tool_call> <function=", written, tools=tools).calls == [("f", {"x": value})]


def test_values_may_hold_tags_of_their_own() -> None:
    code = "<p>if (a < b) {</p>\n</parameter> is no end here"
    written = f"<tool_call><function=f><parameter=x>\n{code}\n</parameter></function></tool_call>"
    assert read("<tool_call> <function=", written, tools=TOOLS).calls == [("f", {"x": code})]
