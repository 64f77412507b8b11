"""The chat database's tables: how they are made, and how an older file becomes a newer one."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

from engine.errors import ColibriError

logger = logging.getLogger(__name__)


class ChatStoreError(ColibriError):
    """Chats could not be read or saved; the text says where and what to do."""


_FIRST = """
CREATE TABLE chats (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    title          TEXT NOT NULL,
    created_at     REAL NOT NULL,
    updated_at     REAL NOT NULL,
    pinned         INTEGER NOT NULL DEFAULT 0,
    folder         TEXT NOT NULL DEFAULT '',
    system_prompt  TEXT NOT NULL DEFAULT '',
    model          TEXT NOT NULL DEFAULT '',
    sampling       TEXT NOT NULL DEFAULT '{}',
    active_leaf_id INTEGER,
    deleted_at     REAL
);
CREATE TABLE messages (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    chat_id    INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    parent_id  INTEGER REFERENCES messages (id) ON DELETE CASCADE,
    role       TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
    content    TEXT NOT NULL,
    created_at REAL NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('complete', 'streaming', 'stopped', 'error')),
    metrics    TEXT NOT NULL DEFAULT '{}'
);
CREATE INDEX messages_by_chat ON messages (chat_id, parent_id);
CREATE INDEX messages_by_parent ON messages (parent_id);
CREATE INDEX messages_streaming ON messages (state) WHERE state = 'streaming';

-- A message enters the index when it is finished: an answer that grows by a few tokens costs no re-indexing.
CREATE VIRTUAL TABLE message_search USING fts5 (
    content, content = 'messages', content_rowid = 'id', tokenize = 'trigram'
);
CREATE TRIGGER message_added AFTER INSERT ON messages WHEN new.state <> 'streaming' BEGIN
    INSERT INTO message_search (rowid, content) VALUES (new.id, new.content);
END;
CREATE TRIGGER message_removed AFTER DELETE ON messages WHEN old.state <> 'streaming' BEGIN
    INSERT INTO message_search (message_search, rowid, content) VALUES ('delete', old.id, old.content);
END;
CREATE TRIGGER message_changed AFTER UPDATE OF content, state ON messages BEGIN
    INSERT INTO message_search (message_search, rowid, content)
        SELECT 'delete', old.id, old.content WHERE old.state <> 'streaming';
    INSERT INTO message_search (rowid, content)
        SELECT new.id, new.content WHERE new.state <> 'streaming';
END;
"""

_REASONING = "ALTER TABLE messages ADD COLUMN reasoning TEXT NOT NULL DEFAULT '';"

# The n-th script turns version n - 1 into version n. A published one never changes.
MIGRATIONS: tuple[str, ...] = (_FIRST, _REASONING)


def migrate(connection: sqlite3.Connection, path: Path, migrations: tuple[str, ...] = MIGRATIONS) -> None:
    """Bring the file to the newest version, one whole step at a time; an older file is copied beside itself first."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > len(migrations):
        raise ChatStoreError(
            f"{path}: expected chats of version {len(migrations)} or older, found version {version}. "
            "They were last used by a newer Colibri: update this one, or move the file away to start anew."
        )
    if 0 < version < len(migrations):
        _back_up(connection, path.with_name(f"{path.name}.version-{version}.backup"))
    for number in range(version, len(migrations)):
        script = f"BEGIN IMMEDIATE;\n{migrations[number]}\nPRAGMA user_version = {number + 1};\nCOMMIT;"
        try:
            connection.executescript(script)
        except sqlite3.Error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if connection.execute("PRAGMA user_version").fetchone()[0] <= number:
                raise
            logger.info("%s: another process made version %d meanwhile", path, number + 1)


def _back_up(connection: sqlite3.Connection, copy: Path) -> None:
    logger.info("copying the chats to %s before they are brought to a newer version", copy)
    with closing(sqlite3.connect(copy)) as target:
        connection.backup(target)
