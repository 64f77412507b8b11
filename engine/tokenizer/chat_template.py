"""A model's own chat template: turns a conversation into the text, and the token ids, that the model expects."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from jinja2 import Template, TemplateSyntaxError

from engine.errors import TemplateError
from engine.tokenizer.limits import LimitError, run_bounded
from engine.tokenizer.marks import ControlMarks, marked, require_shallow, take_out, texts_in, unused_mark
from engine.tokenizer.sandbox import BoundedEnvironment, RefusedByTemplate, given
from engine.tokenizer.tokenizer import Tokenizer
from engine.tokenizer.vocabulary import token_id_under

logger = logging.getLogger(__name__)

TEMPLATE_KEY = "tokenizer.chat_template"
MAX_SOURCE_CHARACTERS = 1_000_000
_FILENAME = "<template>"  # what jinja2 calls a template that comes from no file
_NAMED_TOKENS = {"unk_token": "unknown", "pad_token": "padding", "sep_token": "seperator", "cls_token": "cls"}
_REASONING_FIELDS = ("reasoning_content", "thinking", "reasoning")
_ASKS_FOR_NONE = re.compile(r"""assistant['"] and \w+\[['"]content['"]\] is none""")

Message = Mapping[str, Any]


class ChatTemplate:
    """Renders conversations for one model.

    `source` is the template's text, or None: base models have none. Then `render` raises TemplateError, unless
    `allow_default=True` asks for plain text, in which the model simply goes on: see `render`.
    No other model's format is ever assumed, since a model answers badly, and silently so, in a foreign one.
    """

    def __init__(self, source: str | None, tokenizer: Tokenizer, *, variables: Mapping[str, str], tools: str | None):
        """Use `from_metadata`. `tools`: another template, for conversations with tools."""
        self.source = source
        self.tools_source = tools
        self._tokenizer = tokenizer
        self._variables = dict(variables)
        self._compiled: dict[str, Template] = {}

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], tokenizer: Tokenizer) -> ChatTemplate:
        """The template of a GGUF file. It is compiled when it is first used, so that a faulty one does not
        keep a model from being opened."""
        ids = {"bos_token": tokenizer.bos_id, "eos_token": tokenizer.eos_id}
        for name, key in _NAMED_TOKENS.items():
            ids[name] = token_id_under(metadata, f"tokenizer.ggml.{key}_token_id", tokenizer.n_vocab)
        variables = {name: "" if token_id is None else tokenizer.token_text(token_id) for name, token_id in ids.items()}
        source = metadata.get(TEMPLATE_KEY)
        tools = metadata.get(f"{TEMPLATE_KEY}.tool_use")
        return cls(source or None, tokenizer, variables=variables, tools=tools or None)

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        allow_default: bool = False,
        tools: Sequence[Any] | None = None,
        **extra: Any,
    ) -> str:
        """The prompt for a conversation.

        `messages`: mappings with at least `role` and `content`. `extra`: further variables of the template
        (`enable_thinking`, `documents`, ...). Without a template and with `allow_default`, the text is the system
        message and an empty line, if there is one, then all further contents; a line break stands before each
        user's message but the first, and nothing between a user's message and the model's continuation of it.

        Raises TemplateError, quoting the template's line, where it cannot be compiled, fails, refuses
        the conversation or exceeds the limits of time and size.
        """
        source = self.tools_source if tools and self.tools_source is not None else self.source
        if source is None:
            if allow_default:
                return _plain_text(messages)
            raise TemplateError(
                f"expected a chat template in {TEMPLATE_KEY}, found none: this is a base model, made to continue "
                "a text; give it a text to continue, or use a model tuned for conversations"
            )
        variables = {
            **self._variables,
            "messages": given([_fields(message, source) for message in messages]),
            "add_generation_prompt": add_generation_prompt,
            "tools": given(tools),
            "documents": None,
            **given(extra),
        }
        try:
            return run_bounded(lambda: self._compile(source).render(variables), filename=_FILENAME)
        except RefusedByTemplate as error:
            raise TemplateError(
                f"the model's chat template does not take this conversation: {error} ({_place(source, error)})"
            ) from error
        except LimitError as error:
            raise TemplateError(
                f"the model's chat template was stopped, {error} ({_place(source, error)}); no sound template does that"
            ) from error
        except TemplateSyntaxError as error:
            raise TemplateError(
                f"the model's chat template cannot be compiled: {error.message} ({_place(source, error)}); "
                "the file's template is faulty or newer than this version"
            ) from error
        except (Exception, RecursionError, MemoryError) as error:  # whatever the template's own code may run into
            raise TemplateError(
                f"the model's chat template failed: {type(error).__name__}: {str(error)[:500]} "
                f"({_place(source, error)})"
            ) from error

    def encode(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        allow_default: bool = False,
        tools: Sequence[Any] | None = None,
        **extra: Any,
    ) -> list[int]:
        """The prompt's token ids: `render`, with special tokens recognised, and with BOS before it if the model
        wants one and the template does not write it.

        Control tokens are the template's own: what looks like one in the messages, `tools` or `extra` stays text.
        """
        values = {"messages": messages, "tools": tools, "extra": extra}
        require_shallow(values)
        text, marks = self._render_marked(values, add_generation_prompt, allow_default)
        ids = self._tokenizer.encode(text, add_special=False, parse_special=True, marks=marks)
        bos_id = self._tokenizer.bos_id
        if self._tokenizer.adds_bos and bos_id is not None and ids[:1] != [bos_id]:
            ids.insert(0, bos_id)
        return ids

    @cached_property
    def marks(self) -> ControlMarks:
        """What tells the template's control tokens from text that looks like one."""
        return ControlMarks(self._tokenizer.sign_tokens())

    def _render_marked(
        self, values: Mapping[str, Any], add_generation_prompt: bool, allow_default: bool
    ) -> tuple[str, list[int]]:
        """The rendered text and the places in it where no control token may begin or go on.

        As many marks are set as change nothing else in what the template makes. If even the fewest change it, what
        the template makes of the marked conversation counts.
        """

        def render(given: Mapping[str, Any]) -> str:
            return self.render(
                given["messages"],
                add_generation_prompt=add_generation_prompt,
                allow_default=allow_default,
                tools=given["tools"],
                **given["extra"],
            )

        text, marks = render(values), self.marks
        if not marks.needed(values):
            return text, []
        mark = unused_mark([*texts_in(values), self.source or "", self.tools_source or ""])
        if mark is None:
            raise TemplateError(
                "expected a conversation that leaves one of Unicode's private characters (U+E000 to U+F8FF) unused, so "
                "that its text can be told from control tokens; found all of them in it. Remove one of them"
            )
        try:
            found, places = take_out(render(marked(values, marks.wherever_one_may_begin, mark)), mark)
        except TemplateError:
            found, places = "", []
        if found != text:
            found, places = take_out(render(marked(values, marks.where_one_stands, mark)), mark)
        return found, places

    def _compile(self, source: str) -> Template:
        if source not in self._compiled:
            if len(source) > MAX_SOURCE_CHARACTERS:
                raise LimitError(f"it is {len(source):,} characters long; the limit is {MAX_SOURCE_CHARACTERS:,}")
            self._compiled[source] = BoundedEnvironment().from_string(source)
        return self._compiled[source]


def _fields(message: Message, source: str) -> dict[str, Any]:
    """The message without the fields that are None, its reasoning under each name that templates read.

    A message that only calls tools keeps the content None for templates that know it by that.
    """
    fields = {name: value for name, value in message.items() if value is not None}
    if "tool_calls" in fields and "content" not in fields and _ASKS_FOR_NONE.search(source):
        fields["content"] = None
    reasoning = next((fields[name] for name in _REASONING_FIELDS if name in fields), None)
    if reasoning is not None:
        fields.setdefault("thinking", reasoning)
        fields["reasoning_content"] = reasoning
    return fields


def _plain_text(messages: Sequence[Message]) -> str:
    text = ""
    for message in messages:
        content = str(message.get("content") or "")
        if message.get("role") in ("system", "developer"):
            text += content + "\n\n" if content else ""
        elif message.get("role") == "assistant" or text == "" or text.endswith("\n\n"):
            text += content
        else:
            text += "\n" + content
    return text


def _place(source: str, error: BaseException) -> str:
    """The line of the template that the error came from, with its text."""
    line_number = error.lineno if isinstance(error, TemplateSyntaxError) else None
    trace = error.__traceback__
    while trace is not None and not isinstance(error, TemplateSyntaxError):
        if trace.tb_frame.f_code.co_filename == _FILENAME:
            line_number = trace.tb_lineno
        trace = trace.tb_next
    lines = source.splitlines()
    if line_number is None or not 0 < line_number <= len(lines):
        return "the line is unknown"
    line = lines[line_number - 1].strip()
    return f"line {line_number}: {line if len(line) <= 160 else line[:160] + '…'}"
