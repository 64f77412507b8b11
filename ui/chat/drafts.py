"""Keeps what was typed but not sent, per chat, across restarts."""

from __future__ import annotations

import json
import logging
from pathlib import Path

log = logging.getLogger(__name__)


class Drafts:
    """One small JSON file; the text of the chat that does not exist yet has the key "new"."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._texts: dict[str, str] = {}
        self._is_saved = True
        try:
            texts = json.loads(path.read_text(encoding="utf-8"))
            self._texts = {str(key): str(text) for key, text in texts.items()}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, AttributeError) as error:
            log.warning("%s: drafts cannot be read and start empty: %s", path, error)

    def text(self, chat_id: int | None) -> str:
        """The draft of a chat; "" when there is none."""
        return self._texts.get(self._key(chat_id), "")

    def put(self, chat_id: int | None, text: str) -> None:
        """Remember a draft; an empty one is forgotten."""
        key = self._key(chat_id)
        if text == self._texts.get(key, ""):
            return
        if text:
            self._texts[key] = text
        else:
            del self._texts[key]
        self._is_saved = False

    def save(self) -> None:
        """Write the file if anything has changed."""
        if self._is_saved:
            return
        temporary = self.path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(self._texts, ensure_ascii=False), encoding="utf-8")
            temporary.replace(self.path)
            self._is_saved = True
        except OSError as error:
            log.warning("%s: drafts cannot be saved: %s", self.path, error)

    def _key(self, chat_id: int | None) -> str:
        return "new" if chat_id is None else str(chat_id)
