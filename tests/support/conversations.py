"""Standard conversations that chat templates are rendered with: plain, many turns, tools, reasoning."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

NOW = datetime(2026, 3, 9, 14, 5, 6)  # what `strftime_now` is to show
SPECIAL_TOKENS = {"bos_token": "<BOS>", "eos_token": "<EOS>", "unk_token": "<UNK>", "pad_token": "<PAD>"}

SYSTEM = {"role": "system", "content": "You are terse."}
QUESTION = {"role": "user", "content": 'Is 3 < 4 & "é" a letter? 你好 🙂'}
ANSWER = {"role": "assistant", "content": "Yes.\n\n- both"}
SECOND = {"role": "user", "content": "  And again?\n"}
REASONED = {"role": "assistant", "content": "4 > 3.", "reasoning_content": "Compare.\nDone."}
WEATHER = {"role": "user", "content": "How warm is it in Köln and Oslo?"}
RESULTS = (
    {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": '{"temperature": 21.5}'},
    {"role": "tool", "tool_call_id": "call00002", "name": "get_weather", "content": "4 degrees"},
)
REPORT = {"role": "assistant", "content": "21.5 and 4."}

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a place <now>.",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "A town's name, é."},
                    "days": {"type": "integer", "description": "How many days.", "default": 1},
                    "unit": {"type": "string", "enum": ["C", "F"], "description": "The scale."},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "tell_time",
            "description": "The time.",
            "parameters": {"type": "object", "properties": {}},
        },
    },
]
ARGUMENTS: tuple[tuple[dict[str, Any], str], ...] = (
    ({"city": "Köln", "days": 2, "unit": "C"}, '{"city": "Köln", "days": 2, "unit": "C"}'),
    ({"city": "Oslo"}, '{"city": "Oslo"}'),
)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a template is given."""

    messages: tuple[dict[str, Any], ...]
    tools: list[dict[str, Any]] | None = None
    add_generation_prompt: bool = True
    extra: dict[str, Any] = field(default_factory=dict)


def calling(*, as_text: bool, n_calls: int = 2, **more: Any) -> dict[str, Any]:
    """An assistant's message that calls tools, its arguments as a mapping or as JSON text."""
    calls = [
        {
            "id": f"call0000{number}",
            "type": "function",
            "function": {"name": "get_weather", "arguments": text if as_text else mapping},
        }
        for number, (mapping, text) in enumerate(ARGUMENTS[:n_calls], start=1)
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls, **more}


def _with_calls(*, as_text: bool) -> dict[str, Conversation]:
    kind = "text" if as_text else "mapping"
    one, two = calling(as_text=as_text, n_calls=1), calling(as_text=as_text)
    thought = calling(as_text=as_text, n_calls=1, reasoning_content="I should look.")
    none = {**one, "content": None}
    return {
        f"call/{kind}": Conversation((WEATHER, one, RESULTS[0]), TOOLS),
        f"calls/{kind}": Conversation((SYSTEM, WEATHER, two, *RESULTS), TOOLS),
        f"call-after-thought/{kind}": Conversation((WEATHER, thought, RESULTS[0]), TOOLS),
        f"call-without-content/{kind}": Conversation((WEATHER, none, RESULTS[0]), TOOLS),
        f"call-then-answer/{kind}": Conversation((WEATHER, one, RESULTS[0], REPORT, SECOND), TOOLS),
    }


CONVERSATIONS: dict[str, Conversation] = {
    "plain": Conversation((QUESTION,)),
    "plain/closed": Conversation((QUESTION, ANSWER), add_generation_prompt=False),
    "system": Conversation((SYSTEM, QUESTION)),
    "turns": Conversation((QUESTION, ANSWER, SECOND)),
    "turns/system": Conversation((SYSTEM, QUESTION, ANSWER, SECOND, ANSWER, QUESTION)),
    "thinking-on": Conversation((SYSTEM, QUESTION), extra={"enable_thinking": True, "thinking": True}),
    "thinking-off": Conversation((SYSTEM, QUESTION), extra={"enable_thinking": False, "thinking": False}),
    "effort": Conversation((QUESTION,), extra={"reasoning_effort": "high"}),
    "reasoned": Conversation((QUESTION, REASONED, SECOND)),
    "reasoned/closed": Conversation((QUESTION, REASONED), add_generation_prompt=False),
    "parts": Conversation(({"role": "user", "content": [{"type": "text", "text": "Hi <there>"}]},)),
    "documents": Conversation((QUESTION,), extra={"documents": [{"title": "Letters", "text": "é is one."}]}),
    "tools": Conversation((QUESTION,), TOOLS),
    "tools/system": Conversation((SYSTEM, QUESTION, ANSWER, SECOND), TOOLS),
    **_with_calls(as_text=False),
    **_with_calls(as_text=True),
}
