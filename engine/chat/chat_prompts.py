"""From a conversation to a prompt, and to the parser of the answer that it will have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from engine.chat.answer_parser import AnswerParser
from engine.chat.call_values import tool_names
from engine.chat.chat_format import ChatFormat
from engine.chat.pieces import ToolCall
from engine.chat.template_traits import TemplateTraits, probe
from engine.chat.thinking import Thinking, find_thinking
from engine.errors import InvalidRequestError
from engine.tokenizer import ChatTemplate, Tokenizer
from engine.tokenizer.marks import TrustedText, require_shallow

_END_TOKENS = 40  # of the prompt, in which an opened reasoning is looked for


@dataclass(frozen=True, slots=True)
class ChatPrompt:
    """Token ids, and what takes the answer apart (None: nothing does). A prompt is for one answer."""

    ids: list[int]
    parser: AnswerParser | None


class ChatPrompts:
    """Makes the prompts of one model. What is known of its template is found out when the first one is made."""

    def __init__(self, template: ChatTemplate, tokenizer: Tokenizer) -> None:
        self._template, self._tokenizer = template, tokenizer

    @cached_property
    def traits(self) -> TemplateTraits:
        """What the template does with tools and calls."""
        return probe(self._template)

    @cached_property
    def thinking(self) -> Thinking:
        """What may be said about how long the model thinks."""
        return find_thinking(self._template)

    @cached_property
    def format(self) -> ChatFormat:
        """The markers of the model's answers."""
        source = "\n".join((self._template.source or "", self._template.tools_source or "", self.traits.renderings))
        return ChatFormat(source, self._tokenizer.control_tokens(), self._tokenizer.user_defined_tokens())

    def prompt(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Any] | None = None, **variables: Any
    ) -> ChatPrompt:
        """The prompt for the next answer.

        `messages`: role and content; an assistant's perhaps `reasoning_content` and `tool_calls` (as OpenAI has them,
        arguments as JSON text or as a mapping), a tool's `tool_call_id`. `tools`: functions with JSON schemas.
        `variables`: the template's own (`enable_thinking`, ...). Raises TemplateError, and InvalidRequestError where
        the template shows the model no tools.
        """
        if tools and not self.traits.shows_tools:
            raise InvalidRequestError(
                f"The request offers tools ({', '.join(sorted(tool_names(tools)))}), but this model's chat template "
                "has no place for them, so that it would never see them. Ask without tools, or use another model."
            )
        for message in messages:
            if not isinstance(message, Mapping):
                raise InvalidRequestError(
                    f'A message must have the form {{"role": "...", "content": "..."}}, not {str(message)[:200]}.'
                )
        require_shallow(list(messages))  # before anything walks through them
        adapted = [part for message in messages for part in self._adapted(message)]
        ids = self._template.encode(adapted, tools=tools or None, **variables)
        end = self._tokenizer.decode(ids[-_END_TOKENS:], skip_special=False, continues=True)
        return ChatPrompt(ids, self.format.parser(end, tools))

    def _adapted(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        calls = [_call(entry) for entry in message.get("tool_calls") or ()]
        if not calls:
            return [dict(message)]
        family = self.format.calls
        if self.traits.shows_calls or family is None or family.write is None:
            return self.traits.adapted(message, calls)
        content = message.get("content") or ""
        written = f"{content}\n{family.write(calls)}" if content else family.write(calls)
        if not self._template.marks.stands_in([content, *((call.name, call.arguments) for call in calls)]):
            written = TrustedText(written)  # the family's markers are control tokens
        return [{**{name: value for name, value in message.items() if name != "tool_calls"}, "content": written}]


def _call(entry: Any) -> ToolCall:
    function = entry.get("function") if isinstance(entry, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str):
        raise InvalidRequestError(
            'A call in tool_calls must have the form {"id": "...", "type": "function", "function": {"name": "...", '
            f'"arguments": "..."}}}}, not {str(entry)[:200]}.'
        )
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = None
    if not isinstance(arguments, Mapping):
        raise InvalidRequestError(
            f"The arguments of the call of {name} must be a JSON object, not {str(function.get('arguments'))[:200]}."
        )
    return ToolCall.of(name, arguments, entry.get("id"))
