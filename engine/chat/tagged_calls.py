"""Calls that are written with a tag around each argument."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from engine.chat.call_values import properties_of, value_of
from engine.chat.pieces import CallSyntaxError, ToolCall

_PREFIX = r"(?:｜DSML｜|atem:)?"
_NAME = r'(?:=|\s+name=)"?(?P<name>[^">\s]+)"?[^>]*>'
_INVOKE = re.compile(
    rf"<{_PREFIX}(?P<tag>function|invoke){_NAME}(?P<body>.*?)(?:</{_PREFIX}(?P=tag)>|(?=<{_PREFIX}(?P=tag)[= ])|$)",
    re.DOTALL,
)
_PARAMETER = re.compile(
    rf'<{_PREFIX}(?P<tag>parameter|param)(?:=|\s+name=)"?(?P<key>[^">]+?)"?(?:\s+string="(?P<string>true|false)")?>'
    rf"(?P<value>.*?)</{_PREFIX}(?P=tag)>(?=\s*(?:<{_PREFIX}(?P=tag)\b|</|$))",
    re.DOTALL,
)
_ELEMENT = re.compile(r"<(?P<key>[\w.-]+)>(?P<value>.*?)</(?P=key)>", re.DOTALL)
_PAIR = re.compile(r"<arg_key[^>]*>(.*?)</arg_key[^>]*>\s*<arg_value[^>]*>(.*?)</arg_value[^>]*>", re.DOTALL)
_PAIRS_NAME = re.compile(r"\s*([^\s<>]+)\s*(?:<tool_sep[^>]*>)?\s*(?=<arg_key|$)")
_OPEN_CALL = re.compile(r'\s*tool="([^"]+)"[^<]*<\|sep\|>(.*)', re.DOTALL)
_OPEN_ARGUMENT = re.compile(
    r'<\|open\|>argument key="([^"]*)"(?: type="([^"]*)")?[^<]*<\|sep\|>(.*?)<\|close\|>argument<\|sep\|>', re.DOTALL
)
_MINIMAX_SIGN = "]<]minimax[>["


def parse_parameters(text: str, tools: Sequence[Any]) -> list[ToolCall]:
    """`<function=NAME><parameter=KEY>VALUE</parameter></function>`, or `<invoke name="NAME">` and the like."""
    calls = []
    for found in _INVOKE.finditer(text):
        properties, body = properties_of(tools, found["name"]), found["body"]
        arguments = {}
        for parameter in _PARAMETER.finditer(body):
            key = parameter["key"]
            schema = {"type": "string"} if parameter["string"] == "true" else properties.get(key)
            arguments[key] = value_of(_without_line_ends(parameter["value"]), schema)
        if not arguments and body.strip():
            raise CallSyntaxError(f"<parameter=...> tags with the arguments of {found['name']}", body)
        calls.append(ToolCall.of(found["name"], arguments))
    if not calls:
        raise CallSyntaxError("<function=NAME> with <parameter=KEY> tags in it", text)
    return calls


def parse_elements(text: str, tools: Sequence[Any]) -> list[ToolCall]:
    """`<invoke name="NAME"><KEY>VALUE</KEY></invoke>`, a sign of MiniMax's before each tag."""
    text = text.replace(_MINIMAX_SIGN, "")
    found = _INVOKE.search(text)
    if found is None:
        raise CallSyntaxError('<invoke name="NAME"> with one tag for each argument', text)
    properties = properties_of(tools, found["name"])
    pairs = {element["key"]: element["value"] for element in _ELEMENT.finditer(found["body"])}
    return [ToolCall.of(found["name"], {key: value_of(value, properties.get(key)) for key, value in pairs.items()})]


def parse_pairs(text: str, tools: Sequence[Any]) -> list[ToolCall]:
    """`NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>`, and so on."""
    name = _PAIRS_NAME.match(text)
    if name is None:
        raise CallSyntaxError("a tool's name, then <arg_key> and <arg_value> tags", text)
    properties, rest = properties_of(tools, name[1]), text[name.end() :]
    arguments = {key.strip(): value_of(value, properties.get(key.strip())) for key, value in _PAIR.findall(rest)}
    if _PAIR.sub("", rest).strip():
        raise CallSyntaxError(f"<arg_key> and <arg_value> tags with the arguments of {name[1]}", rest)
    return [ToolCall.of(name[1], arguments)]


def parse_open_close(text: str, tools: Sequence[Any]) -> list[ToolCall]:
    """` tool="NAME" index="1"<|sep|>` and arguments between <|open|> and <|close|>, each with its JSON type."""
    found = _OPEN_CALL.match(text)
    if found is None:
        raise CallSyntaxError('tool="NAME" and arguments between <|open|> and <|close|>', text)
    properties = properties_of(tools, found[1])
    return [
        ToolCall.of(
            found[1],
            {
                key: value_of(value, {"type": kind} if kind else properties.get(key))
                for key, kind, value in _OPEN_ARGUMENT.findall(found[2])
            },
        )
    ]


def _without_line_ends(text: str) -> str:
    return text.removeprefix("\n").removesuffix("\n")
