"""Which settings of thinking a chat template knows, and what is rendered for each."""

from __future__ import annotations

import pytest

from engine.chat.thinking import Thinking
from engine.errors import InvalidRequestError
from tests.engine.chat.test_chat_prompts import HERMES, THINKING, prompts, text

SAYS = "{% for m in messages %}{{ m.content }}{% endfor %}"
SWITCH = SAYS + "{% if thinking is defined and thinking %}<think>{% else %}</think>{% endif %}"
EFFORT = "{% if reasoning_effort is not defined %}{% set reasoning_effort = 'medium' %}{% endif %}" + (
    "Reasoning: {{ reasoning_effort }}." + SAYS
)
NEEDED = SAYS + "{% if enable_thinking is not defined %}{{ raise_exception('say it') }}{% endif %}{{ enable_thinking }}"
QUESTION = {"role": "user", "content": "2 + 2?"}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (THINKING, Thinking(("on", "off"), "on", "enable_thinking")),
        (SWITCH, Thinking(("on", "off"), "off", "thinking")),
        (EFFORT, Thinking(("low", "medium", "high"), "medium", "reasoning_effort")),
        (NEEDED, Thinking(("on", "off"), None, "enable_thinking")),
        (HERMES, Thinking()),
    ],
    ids=["on-unless-off", "off-unless-on", "effort", "must-be-said", "none"],
)
def test_the_settings_that_a_template_knows_are_found(template: str, expected: Thinking) -> None:
    assert prompts(template).thinking == expected


@pytest.mark.parametrize(("choice", "expected"), [("low", "low"), ("high", "high"), (None, "medium")])
def test_an_effort_reaches_the_model(choice: str | None, expected: str) -> None:
    variables = prompts(EFFORT).thinking.variables(choice)

    assert text(EFFORT, [QUESTION], **variables) == f"Reasoning: {expected}.2 + 2?"


@pytest.mark.parametrize(("choice", "opens"), [("on", True), ("off", False), (None, True)])
def test_a_switch_reaches_the_model(choice: str | None, opens: bool) -> None:
    variables = prompts(THINKING).thinking.variables(choice)

    assert text(THINKING, [QUESTION], **variables).endswith("<think>\n") is opens


def test_a_choice_that_a_model_lacks_is_refused_with_those_that_it_has() -> None:
    with pytest.raises(InvalidRequestError, match="'low' for this model: expected on or off"):
        prompts(THINKING).thinking.variables("low")
    with pytest.raises(InvalidRequestError, match="no such setting"):
        prompts(HERMES).thinking.variables("on")
