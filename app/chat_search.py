"""Search over titles and messages: the trigram index for words of three letters and more, a scan for shorter ones."""

from __future__ import annotations

import sqlite3
from typing import Any

from app.chat_records import SearchHit

_TRIGRAM = 3
_LONGEST_QUERY = 1000
_EXCERPT_BEFORE = 40
_EXCERPT_AFTER = 80


def find(connection: sqlite3.Connection, query: str, limit: int) -> list[SearchHit]:
    """Hits in titles, then in messages, newest first, of chats that are not deleted; [] for a blank query."""
    words = query[:_LONGEST_QUERY].split()
    if not words:
        return []
    hits = [
        SearchHit(chat_id, None, title, title, created_at)
        for chat_id, title, created_at in _in_titles(connection, words, limit)
    ]
    for chat_id, message_id, title, content, created_at in _in_messages(connection, words, limit - len(hits)):
        hits.append(SearchHit(chat_id, message_id, title, excerpt(content, words[0]), created_at))
    return hits


def excerpt(content: str, word: str) -> str:
    """The surroundings of the word's first occurrence, on one line, with an ellipsis where something is left out."""
    lowered = content.lower()
    at = lowered.find(word.lower()) if len(lowered) == len(content) else -1
    at = max(at, 0)
    start, stop = max(0, at - _EXCERPT_BEFORE), min(len(content), at + len(word) + _EXCERPT_AFTER)
    text = " ".join(content[start:stop].split())
    return ("… " if start > 0 else "") + text + (" …" if stop < len(content) else "")


def _in_titles(connection: sqlite3.Connection, words: list[str], limit: int) -> list[tuple[Any, ...]]:
    conditions = " AND ".join(["title LIKE ? ESCAPE '\\'"] * len(words))
    return connection.execute(
        f"SELECT id, title, updated_at FROM chats WHERE deleted_at IS NULL AND {conditions}"
        " ORDER BY updated_at DESC, id DESC LIMIT ?",
        (*map(_pattern, words), limit),
    ).fetchall()


def _in_messages(connection: sqlite3.Connection, words: list[str], limit: int) -> list[tuple[Any, ...]]:
    long_words = [word for word in words if len(word) >= _TRIGRAM]
    conditions, values = ["chats.deleted_at IS NULL", "messages.state <> 'streaming'"], []
    if long_words:
        conditions.append("messages.id IN (SELECT rowid FROM message_search WHERE message_search MATCH ?)")
        values.append(" AND ".join(f'"{word.replace(chr(34), chr(34) * 2)}"' for word in long_words))
    for word in words:
        if len(word) < _TRIGRAM:
            conditions.append("messages.content LIKE ? ESCAPE '\\'")
            values.append(_pattern(word))
    return connection.execute(
        "SELECT chats.id, messages.id, chats.title, messages.content, messages.created_at"
        f" FROM messages JOIN chats ON chats.id = messages.chat_id WHERE {' AND '.join(conditions)}"
        " ORDER BY messages.id DESC LIMIT ?",
        (*values, limit),
    ).fetchall()


def _pattern(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
