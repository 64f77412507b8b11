"""What a chat template does with reasoning, tools and calls: found out by rendering short conversations with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.chat.pieces import ToolCall
from engine.errors import TemplateError
from engine.tokenizer import ChatTemplate

_QUESTION = {"role": "user", "content": "A question."}
_CALL = ToolCall("probe_tool", '{"probe_key": "probe value"}', "probe0000")
_RESULT = {"role": "tool", "tool_call_id": _CALL.id, "name": _CALL.name, "content": "A result."}
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "other_tool",
            "description": "A tool.",
            "parameters": {"type": "object", "properties": {"other_key": {"type": "string", "description": "A text."}}},
        },
    }
]


@dataclass(frozen=True, slots=True)
class TemplateTraits:
    """`shows_tools`: tools that are given reach the model. `shows_calls`: so do calls in a message's `tool_calls`,
    their arguments as JSON text or as a mapping, in a message without content (None) where `calls_alone`.
    `renderings`: what the probes gave, for whoever looks for markers.
    """

    shows_tools: bool
    shows_calls: bool
    arguments_as_text: bool
    calls_alone: bool
    renderings: str

    def adapted(self, message: Mapping[str, Any], calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
        """The message with these calls as the template takes them: one message, or two where calls stand alone."""
        entries = [call.as_message(arguments_as_text=self.arguments_as_text) for call in calls]
        rest = {name: value for name, value in message.items() if name != "tool_calls"}
        if not self.calls_alone:
            return [{**rest, "content": rest.get("content") or "", "tool_calls": entries}]
        said = [rest] if rest.get("content") else []
        return [*said, {"role": rest.get("role", "assistant"), "content": None, "tool_calls": entries}]


def probe(template: ChatTemplate) -> TemplateTraits:
    """Render conversations that nobody held, and see what becomes of them."""
    tools_text = _rendering(template, [_QUESTION], _TOOLS)
    renderings = [tools_text, _rendering(template, [_QUESTION], None)]
    traits = None
    for as_text in (False, True):
        for is_alone in (False, True):
            message = {
                "role": "assistant",
                "content": None if is_alone else "",
                "reasoning_content": "A thought.",
                "tool_calls": [_CALL.as_message(arguments_as_text=as_text)],
            }
            text = _rendering(template, [_QUESTION, message, _RESULT], _TOOLS)
            renderings.append(text)
            if traits is None and _shows_call(text):
                traits = (as_text, is_alone)
    answer = {"role": "assistant", "content": "An answer.", "reasoning_content": "A thought."}
    renderings.append(_rendering(template, [_QUESTION, answer], None, add_generation_prompt=False))
    as_text, is_alone = traits or (False, False)
    return TemplateTraits("other_tool" in tools_text, traits is not None, as_text, is_alone, "\n".join(renderings))


def _rendering(template: ChatTemplate, messages: list[Any], tools: list[Any] | None, **options: Any) -> str:
    try:
        return template.render(messages, tools=tools, **options)
    except TemplateError:
        return ""


def _shows_call(text: str) -> bool:
    """Whether name and argument are there, and not as JSON within JSON, nor as Python writes a dict."""
    is_whole = _CALL.name in text and "probe_key" in text and "probe value" in text
    return is_whole and '\\"probe_key' not in text and "{'probe_key'" not in text
