"""Which format a model answers in: found out from its chat template and its vocabulary."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Any

from engine.chat.answer_parser import AnswerParser, SpanParser
from engine.chat.families import CALLS, REASONING, THINK_WRAPPERS, CallFamily
from engine.chat.harmony import CHANNEL, MESSAGE, HarmonyParser
from engine.chat.marks import Spelling
from engine.chat.spans import Span, Wrapper

logger = logging.getLogger(__name__)


class ChatFormat:
    """The markers of one model. `calls` is the family of its calls' syntax, None where none is known."""

    def __init__(self, source: str | None, control_tokens: Collection[str], other_tokens: Collection[str] = ()) -> None:
        """`source`: the chat template. `other_tokens`: those that a user defined, `<think>` perhaps."""
        source = source or ""
        tokens = {*control_tokens, *other_tokens}
        self._spelling = Spelling(control_tokens)
        self.is_harmony = (CHANNEL in tokens and MESSAGE in tokens) or (CHANNEL in source and MESSAGE in source)
        self.reasoning: list[Span] = []
        self._wrappers: list[Wrapper] = []
        for family in REASONING:
            if any(text in source or text in tokens for text in family.evidence):
                self.reasoning += family.spans
                self._wrappers += family.wrappers
        if any(span.opener == "<think>" for span in self.reasoning):
            tags = [name for name in THINK_WRAPPERS if f"<{name}>" in source]
            self._wrappers += [Wrapper(f"<{name}>", f"</{name}>", only_first=True) for name in tags]
        self.calls = _call_family(source, tokens)
        logger.debug(
            "reasoning: %s; calls: %s", [span.opener for span in self.reasoning], self.calls and self.calls.name
        )

    @property
    def has_reasoning(self) -> bool:
        """Whether answers may hold reasoning."""
        return self.is_harmony or bool(self.reasoning)

    def parser(self, prompt_end: str = "", tools: Sequence[Any] | None = None) -> AnswerParser:
        """A parser for one answer.

        `prompt_end`: the last 100 or so characters of the prompt, with its control tokens: it may have begun the
        reasoning. Without `tools` nothing counts as a call, save in formats whose answers cannot be read otherwise.
        """
        if self.is_harmony:
            return HarmonyParser(self._spelling)
        end = prompt_end.rstrip()
        begun = next((span for span in self.reasoning if end.endswith(span.opener.rstrip())), None)
        calls, wrappers = self.calls if tools else None, [*self._wrappers]
        if calls is not None:
            wrappers += calls.wrappers
        return SpanParser(
            [span.spelled(self._spelling) for span in self.reasoning],
            [span.spelled(self._spelling) for span in (calls.spans if calls is not None else ())],
            [wrapper.spelled(self._spelling) for wrapper in wrappers],
            tools or (),
            begun=None if begun is None else begun.spelled(self._spelling),
        )


def _call_family(source: str, tokens: Collection[str]) -> CallFamily | None:
    in_template = (
        family for family in CALLS if any(all(text in source for text in texts) for texts in family.evidence)
    )
    in_vocabulary = (
        family for family in CALLS if any(len(texts) == 1 and texts[0] in tokens for texts in family.evidence)
    )
    return next(in_template, None) or next(in_vocabulary, None)
