"""Calls that published templates write are read back as they were.

Runs over the folder that COLIBRI_TEMPLATES names. What a template writes for an assistant's message is what the model
writes: here it is read as if it were the answer.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from engine.chat.chat_format import ChatFormat
from engine.chat.pieces import ToolCall
from engine.chat.template_traits import TemplateTraits, probe
from engine.errors import TemplateError
from engine.tokenizer import ChatTemplate, Tokenizer
from tests.engine.chat.reading import collected, feed
from tests.engine.tokenizer.reference_data import compact_models
from tests.support.conversations import ARGUMENTS, SPECIAL_TOKENS, TOOLS

# These write calls in a way of their own, and Colibri runs none of their models; after the last one's a prompt follows.
UNKNOWN = {
    "GigaChat3-10B-A1.8B",
    "meetkai-functionary-medium-v3.2",
    "muse-glimmer",
    "CohereForAI-c4ai-command-r-plus-tool_use",
}
ENDS = re.compile(r"(<EOS>|<\|eot_id\|>|<\|message_sep\|>)\s*$")  # they end the answer and are not part of it
QUESTION = {"role": "user", "content": "How warm is it?"}
CALLS = [ToolCall("get_weather", text, f"call0000{number}") for number, (_, text) in enumerate(ARGUMENTS)]


def templates() -> list[Path]:
    folder = os.environ.get("COLIBRI_TEMPLATES")
    return sorted(Path(folder).glob("*.jinja")) if folder else []


def what_the_model_wrote(template: ChatTemplate, traits: TemplateTraits, n_calls: int) -> tuple[str, str]:
    """The prompt's end and what follows it in the rendering of the next message."""
    message = {"role": "assistant", "content": "", "reasoning_content": "I look it up."}
    answer = traits.adapted(message, CALLS[:n_calls])
    prompt = template.render([QUESTION], tools=TOOLS)
    whole = template.render([QUESTION, *answer], tools=TOOLS, add_generation_prompt=False)
    begin = next((place for place, (a, b) in enumerate(zip(prompt, whole, strict=False)) if a != b), len(prompt))
    if begin < len(prompt):  # the prompt opens or closes the reasoning, and the message does the other
        begin = max(whole.rfind("<", 0, begin), whole.rfind("\n", 0, begin) + 1)
    return whole[:begin], whole[begin:]


if PATHS := templates():

    @pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
    def test_calls_that_a_template_writes_are_read(path: Path) -> None:
        source = path.read_text(encoding="utf-8")
        tokenizer = Tokenizer.from_metadata(compact_models()["llama"]["metadata"])
        template = ChatTemplate(source, tokenizer, variables=SPECIAL_TOKENS, tools=None)
        traits = probe(template)
        if not traits.shows_calls:
            pytest.skip("the template writes no calls")
        if path.stem in UNKNOWN:
            pytest.skip("a syntax that is not known")
        form = ChatFormat(source + traits.renderings, ())
        try:
            before, written = what_the_model_wrote(template, traits, 2)
        except TemplateError:  # it takes one call at a time
            before, written = what_the_model_wrote(template, traits, 1)
        n_calls = written.count("get_weather")  # or it leaves the second one out
        found = collected(feed(form.parser(before[-100:], TOOLS), ENDS.sub("", written), ()))
        assert n_calls >= 1
        assert found.calls == [("get_weather", arguments) for arguments, _ in ARGUMENTS[:n_calls]], written
        assert found.reasoning in ("", "I look it up.")
        assert not found.problems
