"""The arguments of calls: what the tools' schemas say of them, and their values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.chat.pieces import CallSyntaxError

_WORDS = {"True": True, "False": False, "None": None}


def tool_names(tools: Sequence[Any]) -> set[str]:
    """The functions that were offered."""
    return {str(function.get("name")) for function in map(_function, tools)}


def properties_of(tools: Sequence[Any], name: str) -> Mapping[str, Any]:
    """The schemas of a function's parameters, by name; {} where nothing is known."""
    for function in map(_function, tools):
        if function.get("name") == name:
            parameters = function.get("parameters")
            properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
            return properties if isinstance(properties, Mapping) else {}
    return {}


def value_of(text: str, schema: Any) -> Any:
    """A value that was written without quotes: as its schema says, else as JSON where it is some."""
    types = schema.get("type") if isinstance(schema, Mapping) else None
    wanted = set(types) if isinstance(types, list) else {types}
    if wanted == {"string"}:
        return text
    word = text.strip()
    if word in _WORDS:
        return _WORDS[word]
    try:
        value = json.loads(word)
    except (ValueError, RecursionError):
        return text
    return text if "string" in wanted and not isinstance(value, (dict, list)) and value is not None else value


def json_value(text: str, expected: str) -> Any:
    """The JSON in a text, which may stand in a fence of backticks; raises CallSyntaxError."""
    try:
        return json.loads(unfenced(text))
    except (ValueError, RecursionError):
        raise CallSyntaxError(expected, text) from None


def json_values(text: str, expected: str) -> list[Any]:
    """All JSON values that stand one after the other, between commas, semicolons or nothing."""
    values: list[Any] = []
    text, place = unfenced(text), 0
    decoder = json.JSONDecoder()
    while True:
        while place < len(text) and text[place] in " \t\r\n,;":
            place += 1
        if place == len(text):
            return values
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            raise CallSyntaxError(expected, text[place:]) from None
        values.append(value)


def unfenced(text: str) -> str:
    """The text without white space around it, and without ``` around that."""
    text = text.strip()
    if text.startswith("```"):
        text = text[3:].removeprefix("json").removesuffix("```").strip()
    return text


def _function(tool: Any) -> Mapping[str, Any]:
    function = tool.get("function", tool) if isinstance(tool, Mapping) else {}
    return function if isinstance(function, Mapping) else {}
