"""Calls that are written like code: Python's (LFM2, Llama's built-in tools) and Gemma's."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

from engine.chat.pieces import CallSyntaxError, ToolCall

_LONGEST = 100_000  # characters; Python's parser takes memory for each
_DEEPEST = 64
_WORDS = {"true": True, "false": False, "null": None}
_GEMMA_CALL = re.compile(r"\s*call:([\w.:-]+)\s*(?=\{)")
_GEMMA_QUOTE = '<|"|>'
_GEMMA_BARE = re.compile(r"[^,{}\[\]]+")


def parse_python_calls(text: str, tools: Sequence[Any]) -> list[ToolCall]:
    """`[name(key="value", other=2), ...]`, with or without the brackets."""
    del tools
    expected = "calls written as in Python, [NAME(KEY=VALUE)]"
    if len(text) > _LONGEST:
        raise CallSyntaxError(f"at most {_LONGEST:,} characters", text)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        calls = tree.elts if isinstance(tree, (ast.List, ast.Tuple)) else [tree]
        return [_python_call(call, text) for call in calls]
    except CallSyntaxError:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CallSyntaxError(expected, text) from None


def _python_call(call: ast.expr, text: str) -> ToolCall:
    if not isinstance(call, ast.Call) or call.args:
        raise CallSyntaxError("a call with named arguments only", text)
    name = ast.unparse(call.func).removesuffix(".call")
    if not re.fullmatch(r"[\w.]+", name):
        raise CallSyntaxError("a call of a name", text)
    return ToolCall.of(name, {str(keyword.arg): _python_value(keyword.value) for keyword in call.keywords})


def _python_value(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    if isinstance(node, ast.List):
        return [_python_value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {str(ast.literal_eval(key or "")): _python_value(value) for key, value in zip(node.keys, node.values)}  # noqa: B905
    value = ast.literal_eval(node)
    if value is not None and not isinstance(value, (str, int, float, bool)):
        raise ValueError(f"{type(value).__name__} is no JSON value")
    return value


def parse_gemma_calls(text: str, tools: Sequence[Any]) -> list[ToolCall]:
    """`call:NAME{key:<|"|>text<|"|>,other:2}`."""
    del tools
    found = _GEMMA_CALL.match(text)
    if found is None:
        raise CallSyntaxError("call:NAME{KEY:VALUE}", text)
    reader = _GemmaReader(text, found.end())
    arguments = reader.value()
    if not isinstance(arguments, dict) or text[reader.place :].strip():
        raise CallSyntaxError(f"the arguments of {found[1]} as {{KEY:VALUE}}", text)
    return [ToolCall.of(found[1], arguments)]


class _GemmaReader:
    def __init__(self, text: str, place: int) -> None:
        self._text, self.place, self._depth = text, place, 0

    def value(self) -> Any:
        if self._takes(_GEMMA_QUOTE):
            return self._until(_GEMMA_QUOTE)
        if self._takes("{"):
            return self._items("}", is_mapping=True)
        if self._takes("["):
            return self._items("]", is_mapping=False)
        found = _GEMMA_BARE.match(self._text, self.place)
        if found is None:
            raise CallSyntaxError("a value", self._text[self.place :])
        self.place = found.end()
        return _bare_value(found[0].strip())

    def _items(self, end: str, *, is_mapping: bool) -> Any:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CallSyntaxError(f"at most {_DEEPEST} levels", self._text)
        keys, values = [], []
        while not self._takes(end):
            if is_mapping:
                keys.append(self._until(_GEMMA_QUOTE) if self._takes(_GEMMA_QUOTE) else self._until(":").strip())
                self._takes(":")
            values.append(self.value())
            if not self._takes(",") and not self._text.startswith(end, self.place):
                raise CallSyntaxError(f"a comma or {end}", self._text[self.place :])
        self._depth -= 1
        return dict(zip(keys, values, strict=True)) if is_mapping else values

    def _until(self, mark: str) -> str:
        end = self._text.find(mark, self.place)
        if end < 0:
            raise CallSyntaxError(mark, self._text[self.place :])
        text, self.place = self._text[self.place : end], end + len(mark)
        return text

    def _takes(self, mark: str) -> bool:
        if self._text.startswith(mark, self.place):
            self.place += len(mark)
            return True
        return False


def _bare_value(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
