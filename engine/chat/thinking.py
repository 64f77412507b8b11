"""How long a model thinks before it answers, where its chat template lets one say so: found out by rendering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.errors import InvalidRequestError, TemplateError
from engine.tokenizer import ChatTemplate

_SWITCHES = ("enable_thinking", "thinking")  # true or false: Qwen3, GLM, SmolLM3; DeepSeek V3.1, Kimi
_EFFORT, _EFFORTS = "reasoning_effort", ("low", "medium", "high")  # gpt-oss
_QUESTION = [{"role": "user", "content": "A question."}]


@dataclass(frozen=True, slots=True)
class Thinking:
    """`choices`: "on" and "off", or efforts from low to high; () where the template knows no such thing.

    `usual`: the choice that is the same as none; None if that is none of them. `variable`: the template's name for it.
    """

    choices: tuple[str, ...] = ()
    usual: str | None = None
    variable: str = ""

    def first_of(self, wanted: Sequence[str]) -> str | None:
        """The first of the `wanted` choices that this model has."""
        return next((choice for choice in wanted if choice in self.choices), None)

    def variables(self, choice: str | None) -> dict[str, Any]:
        """What `ChatPrompts.prompt` is to be given for a choice; None leaves it to the template.

        Raises InvalidRequestError for a choice that this model does not have.
        """
        if choice is None:
            return {}
        if choice not in self.choices:
            known = f"expected {' or '.join(self.choices)}" if self.choices else "its chat template has no such setting"
            raise InvalidRequestError(f"Thinking cannot be set to {choice!r} for this model: {known}.")
        return {self.variable: choice if self.variable == _EFFORT else choice == "on"}


def find_thinking(template: ChatTemplate) -> Thinking:
    """Render one question with each of the variables that templates know, and see which of them matters."""
    usual = _rendering(template)
    for name in _SWITCHES:
        on, off = _rendering(template, **{name: True}), _rendering(template, **{name: False})
        if on != off and on and off:
            return Thinking(("on", "off"), "on" if on == usual else "off" if off == usual else None, name)
    efforts = {effort: _rendering(template, **{_EFFORT: effort}) for effort in _EFFORTS}
    if len(set(efforts.values())) == len(_EFFORTS) and all(efforts.values()):
        default = next((effort for effort, text in efforts.items() if text == usual), None)
        return Thinking(_EFFORTS, default, _EFFORT)
    return Thinking()


def _rendering(template: ChatTemplate, **variables: Any) -> str:
    try:
        return template.render(_QUESTION, **variables)
    except TemplateError:
        return ""
