"""Recorded renderings of chat templates: how long each is, and its digest."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

DATA = Path(__file__).parents[1] / "data" / "tokenizer" / "chat_renderings.json"
REFUSED = "refused"  # the reference raised an error


def digest(text: str) -> str:
    """The length in characters and the first 64 bits of the text's SHA-256."""
    return f"{len(text)}:{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def recorded_renderings() -> dict[str, dict[str, str]]:
    """By template and conversation a digest or REFUSED; under "template" the digest of the template itself."""
    table: dict[str, dict[str, str]] = json.loads(DATA.read_text(encoding="utf-8"))
    return table
