"""Calls as the model would have written them, for templates that do not write them themselves."""

from __future__ import annotations

import json
from collections.abc import Sequence

from engine.chat.pieces import ToolCall


def write_hermes(calls: Sequence[ToolCall]) -> str:
    """One JSON object between tags for each call."""
    return "\n".join(f"<tool_call>\n{_object(call)}\n</tool_call>" for call in calls)


def write_granite(calls: Sequence[ToolCall]) -> str:
    """A list of JSON objects after one token."""
    return f"<|tool_call|>[{', '.join(map(_object, calls))}]"


def write_lfm2(calls: Sequence[ToolCall]) -> str:
    """A list of calls as in Python between two tokens."""
    written = (
        f"{call.name}({', '.join(f'{key}={value!r}' for key, value in json.loads(call.arguments).items())})"
        for call in calls
    )
    return f"<|tool_call_start|>[{', '.join(written)}]<|tool_call_end|>"


def _object(call: ToolCall) -> str:
    return f'{{"name": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {call.arguments}}}'
