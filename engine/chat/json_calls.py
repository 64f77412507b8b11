"""Calls that are written as JSON: one object or several, and a name followed by an object."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.chat.call_values import json_value, json_values, tool_names
from engine.chat.pieces import CallSyntaxError, ToolCall
from engine.chat.spans import Parse

_EXPECTED = 'a JSON object with "name" and "arguments"'
_NAMES = ("name", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "kwargs")
_IDS = ("id", "tool_call_id", "call_id")


def parse_objects(text: str, tools: Sequence[Any]) -> list[ToolCall]:
    """`{"name": ..., "arguments": {...}}`, several of them, or a list of them; other names of the fields are known."""
    calls = []
    for value in json_values(text, _EXPECTED):
        for item in value if isinstance(value, list) else [value]:
            calls.append(_call(item, tools))
    if not calls:
        raise CallSyntaxError(_EXPECTED, text)
    return calls


def parse_bare_objects(text: str, tools: Sequence[Any]) -> list[ToolCall]:
    """The same where nothing marks them: only calls of tools that were offered count."""
    calls = parse_objects(text, tools)
    names = tool_names(tools)
    for call in calls:
        if call.name not in names:
            raise CallSyntaxError(f"one of the tools {', '.join(sorted(names))}", call.name)
    return calls


def named_objects(pattern: str, expected: str) -> Parse:
    """Calls whose name stands outside of the JSON. The pattern has the groups name and arguments, perhaps id."""
    compiled = re.compile(pattern, re.DOTALL)

    def parse(text: str, tools: Sequence[Any]) -> list[ToolCall]:
        del tools
        found = compiled.fullmatch(text.strip())
        if found is None:
            raise CallSyntaxError(expected, text)
        arguments = json_value(found["arguments"] or "{}", f"a JSON object with the arguments of {found['name']}")
        if not isinstance(arguments, dict):
            raise CallSyntaxError(f"a JSON object with the arguments of {found['name']}", found["arguments"])
        return [ToolCall.of(found["name"].strip(), arguments, found.groupdict().get("id"))]

    return parse


def either(*parsers: Parse) -> Parse:
    """The first parser that takes the text; the first one's error if none does."""

    def parse(text: str, tools: Sequence[Any]) -> list[ToolCall]:
        errors = []
        for parser in parsers:
            try:
                return parser(text, tools)
            except CallSyntaxError as error:
                errors.append(error)
        raise errors[0]

    return parse


def _call(item: Any, tools: Sequence[Any]) -> ToolCall:
    if not isinstance(item, dict):
        raise CallSyntaxError(_EXPECTED, str(item))
    nested = item.get("function")
    if isinstance(nested, Mapping):
        item = {**item, **nested, "function": nested.get("name")}
    name = next((item[key] for key in _NAMES if isinstance(item.get(key), str)), None)
    if name is None:
        if len(item) == 1:  # {"the_name": {its arguments}}
            ((name, arguments),) = item.items()
            if isinstance(arguments, dict):
                return ToolCall.of(name, arguments)
        raise CallSyntaxError(_EXPECTED, str(item))
    arguments = next((item[key] for key in _ARGUMENTS if item.get(key) is not None), {})
    if isinstance(arguments, str):
        arguments = json_value(arguments or "{}", f"a JSON object with the arguments of {name}")
    if not isinstance(arguments, dict):
        raise CallSyntaxError(f"a JSON object with the arguments of {name}", str(arguments))
    call_id = next((str(item[key]) for key in _IDS if item.get(key) is not None), None)
    return ToolCall.of(name, arguments, call_id)
