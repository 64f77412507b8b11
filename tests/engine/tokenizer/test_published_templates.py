"""Published chat templates render the standard conversations as transformers does.

Runs over the folder that COLIBRI_TEMPLATES names: `NAME.jinja`, as recorded in tests/data/tokenizer.
"""

from __future__ import annotations

import os
from datetime import datetime, tzinfo
from functools import cache
from pathlib import Path

import pytest

from engine.errors import TemplateError
from engine.tokenizer import ChatTemplate, Tokenizer, sandbox
from tests.engine.tokenizer.reference_data import compact_models
from tests.support.conversations import CONVERSATIONS, NOW, SPECIAL_TOKENS
from tests.support.renderings import REFUSED, digest, recorded_renderings

# Templates that call what transformers' sandbox lacks or forbids, and that work here.
WORKS_HERE_ONLY = {
    "Kimi-K2-Instruct",  # takes from a list of its own
    "Kimi-K2-Thinking",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",  # content that is none
    "deepseek-ai-DeepSeek-V3.2",  # from_json
    "deepseek-ai-DeepSeek-V4",
    "deepseek-ai-DeepSeek-V4-Flash-0731",
    "llama-cpp-deepseek-r1",  # tojson of a filter's result
}


class Clock(datetime):
    """The hour at which the renderings were recorded."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return NOW


@cache
def tokenizer() -> Tokenizer:
    return Tokenizer.from_metadata(compact_models()["llama"]["metadata"])


def templates() -> dict[str, str]:
    """The folder's templates by name."""
    folder = os.environ.get("COLIBRI_TEMPLATES")
    paths = sorted(Path(folder).glob("*.jinja")) if folder else []
    return {path.stem: path.read_text(encoding="utf-8") for path in paths}


TEMPLATES = templates()


def test_every_recorded_template_has_every_conversation() -> None:
    table = recorded_renderings()
    assert len(table) >= 70
    for name, found in table.items():
        assert found.keys() == {"template", *CONVERSATIONS}, name
    n_refused = sum(value == REFUSED for found in table.values() for value in found.values())
    assert n_refused < 0.2 * len(table) * len(CONVERSATIONS)


if TEMPLATES:

    @pytest.mark.parametrize("name", [name for name in recorded_renderings() if name in TEMPLATES])
    def test_published_templates_render_as_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sandbox, "datetime", Clock)
        recorded, source = recorded_renderings()[name], TEMPLATES[name]
        if recorded["template"] != digest(source):
            pytest.skip("the folder has another version of this template")
        template = ChatTemplate(source, tokenizer(), variables=SPECIAL_TOKENS, tools=None)
        for case, conversation in CONVERSATIONS.items():
            try:
                text = template.render(
                    conversation.messages,
                    add_generation_prompt=conversation.add_generation_prompt,
                    tools=conversation.tools,
                    **conversation.extra,
                )
            except TemplateError as error:
                assert recorded[case] == REFUSED, f"{case}: {error}"
                assert "(line " in str(error), error
            else:
                assert digest(text) == recorded[case] or (recorded[case] == REFUSED and name in WORKS_HERE_ONLY), case
