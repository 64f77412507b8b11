"""The head of a model's README.md on the Hub: licence, languages, tags, what it was made from."""

from __future__ import annotations

import re

_ENTRY = re.compile(r"^([A-Za-z_][\w-]*):(?:\s+(.*))?$")
_ITEM = re.compile(r"^\s*-\s+(.+)$")
_MAX_ITEMS = 64
_MAX_LENGTH = 1000


def read_card(text: str) -> dict[str, str | list[str]]:
    """The entries between the two lines `---` at the beginning: texts and lists of texts; others are left out."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return {}
    found: dict[str, str | list[str]] = {}
    key = ""
    for line in lines[1:]:
        if line.strip() == "---":
            return found
        if match := _ENTRY.match(line):
            key, value = match[1], _plain(match[2] or "")
            if value.startswith("[") and value.endswith("]"):
                found[key] = [item for part in value[1:-1].split(",") if (item := _plain(part))][:_MAX_ITEMS]
            elif value and value[0] not in "|>{&*":
                found[key] = value
        elif (match := _ITEM.match(line)) and key:
            items = found.setdefault(key, [])
            if isinstance(items, list) and len(items) < _MAX_ITEMS and ": " not in match[1]:
                items.append(_plain(match[1]))
        else:
            key = ""
    return {}  # the second line of dashes is missing: this is no head


def _plain(value: str) -> str:
    value = value.strip()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = value[1:-1]
    return value[:_MAX_LENGTH]
