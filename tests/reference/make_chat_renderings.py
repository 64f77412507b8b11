"""Write tests/data/tokenizer/chat_renderings.json: what transformers makes of the standard conversations.

    python -m tests.reference.make_chat_renderings FOLDER            the digests, for every FOLDER/*.jinja
    python -m tests.reference.make_chat_renderings FOLDER NAME CASE  one rendering's text, to compare by eye

Needs transformers. Only lengths and digests are kept: the templates and the prompts in them belong to their authors.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime, tzinfo
from pathlib import Path

from transformers.utils import chat_template_utils

from tests.support.conversations import CONVERSATIONS, NOW, SPECIAL_TOKENS, Conversation
from tests.support.renderings import DATA, REFUSED, digest


class _Clock(datetime):
    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return NOW


def rendering(source: str, conversation: Conversation) -> str:
    """The text that transformers makes; raises what the template raises."""
    messages = chat_template_utils._normalize_chat_messages(list(conversation.messages))
    extra = {"documents": None, **conversation.extra}
    (text,), _ = chat_template_utils.render_jinja_template(
        conversations=[messages],
        tools=conversation.tools,
        chat_template=source,
        add_generation_prompt=conversation.add_generation_prompt,
        **SPECIAL_TOKENS,
        **extra,
    )
    return text


def main(folder: Path, *chosen: str) -> None:
    chat_template_utils.datetime = _Clock
    if chosen:
        name, case = chosen
        print(rendering((folder / f"{name}.jinja").read_text(encoding="utf-8"), CONVERSATIONS[case]))
        return
    table = {}
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        found = table[path.stem] = {"template": digest(source)}
        for name, conversation in CONVERSATIONS.items():
            try:
                found[name] = digest(rendering(source, conversation))
            except Exception as error:
                found[name] = REFUSED
                print(f"{path.stem} {name}: {type(error).__name__}: {error}"[:200])
    DATA.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
