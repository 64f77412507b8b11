"""The ids of special tokens, which of them are added to a text, and the chat templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The names in the checkpoint's files, and in GGUF's keys; the order is that of the keys.
NAMES = {
    "bos": "bos",
    "eos": "eos",
    "unk": "unknown",
    "sep": "seperator",  # spelled so in the format
    "pad": "padding",
    "cls": "cls",
    "mask": "mask",
}


@dataclass(slots=True)
class SpecialTokens:
    """`ids` by the checkpoint's names; `added`: whether a text gets it, for those of which it is known."""

    ids: dict[str, int] = field(default_factory=dict)
    added: dict[str, bool] = field(default_factory=dict)


def special_tokens(
    tokenizer: Mapping[str, Any],
    settings: Mapping[str, Any],
    config: Mapping[str, Any],
    id_of: Mapping[str, int],
    *,
    byte_level: bool,
) -> SpecialTokens:
    """From tokenizer.json, tokenizer_config.json (`settings`) and config.json; `id_of` has the added tokens' ids.

    tokenizer_config.json counts before config.json, and what it says of adding tokens before the template of
    tokenizer.json.
    """
    found = SpecialTokens()
    texts = {name: _text(settings.get(f"{name}_token")) for name in NAMES}
    found.added = _from_template(tokenizer.get("post_processor"), texts)
    for name, text in texts.items():
        said = settings.get(f"add_{name}_token")
        if isinstance(said, bool):
            found.added[name] = said
        token_id = id_of.get(text) if text is not None else None
        for candidate in (token_id, config.get(f"{name}_token_id")):
            if type(candidate) is int and candidate >= 0 and name not in found.ids:
                found.ids[name] = candidate
    if "eos" not in found.ids and isinstance(ends := config.get("eos_token_id"), list):
        found.ids |= {"eos": end} if ends and type(end := ends[0]) is int and end >= 0 else {}
    if tokenizer or byte_level:  # what no template adds is not added; sentencepiece has a usual of its own
        found.added.setdefault("bos", False)
        found.added.setdefault("eos", False)
    return found


def chat_templates(settings: Mapping[str, Any], separate: str | None) -> dict[str, str]:
    """The templates by name, the usual one under ``: from tokenizer_config.json, else a file of its own."""
    given = settings.get("chat_template", separate)
    if isinstance(given, str):
        return {"": given}
    found: dict[str, str] = {}
    for entry in given if isinstance(given, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("template"), str):
            name = str(entry.get("name", "default"))
            found["" if name == "default" else name] = entry["template"]
    return found


def _text(token: Any) -> str | None:
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _from_template(processor: Any, texts: Mapping[str, str | None]) -> dict[str, bool]:
    """What the post-processor of a tokenizer.json puts before, between and after texts."""
    if not isinstance(processor, dict):
        return {}
    added: dict[str, bool] = {}
    steps = processor.get("processors", [processor])
    for step in steps if isinstance(steps, list) else ():
        kind = step.get("type") if isinstance(step, dict) else None
        if kind == "RobertaProcessing":
            added |= {"bos": True, "eos": True, "sep": True}
        elif kind == "TemplateProcessing":
            single, pair = _pieces(step.get("single")), _pieces(step.get("pair"))
            first, last = (single[0], single[-1]) if len(single) > 1 else (None, None)
            if first is not None:
                added["bos"] = first in (texts["bos"], texts["cls"])
            if last is not None:
                added["eos"] = last == texts["eos"]
            pair = pair[1:] if first is not None and pair and pair[0] == first else pair
            pair = pair[:-1] if last is not None and pair and pair[-1] == last else pair
            between = [piece for piece in pair[1:-1] if piece is not None]
            if between:
                ends = (texts["sep"], texts["eos"])
                added["sep"] = (between[0] in ends and last is None) or (len(between) == 2 and between[1] in ends)
    return added


def _pieces(template: Any) -> list[str | None]:
    """The special tokens of a template in their places, None for a text."""
    if not isinstance(template, list):
        return []
    found: list[str | None] = []
    for piece in template:
        special = piece.get("SpecialToken") if isinstance(piece, dict) else None
        found.append(_text({"content": special.get("id")}) if isinstance(special, dict) else None)
    return found
