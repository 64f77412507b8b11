"""Every chat, kept in one SQLite file that survives a kill at any moment.

Messages form a tree, so that a regenerated answer or an edited question stands beside the earlier one instead of
replacing it; each chat remembers the leaf that is shown. Every method is quick enough for an event loop's thread.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from app.chat_records import Chat, Message, MessageState, Role, SearchHit
from app.chat_schema import ChatStoreError, migrate
from app.chat_search import find
from app.locks import FileLock

__all__ = ["Chat", "ChatStore", "ChatStoreError", "Message", "MessageState", "Role", "SearchHit"]

logger = logging.getLogger(__name__)

_CHAT_COLUMNS = "id, title, created_at, updated_at, pinned, folder, system_prompt, model, sampling, active_leaf_id"
_MESSAGE_COLUMNS = "id, chat_id, parent_id, role, content, created_at, state, metrics, reasoning"
_BUSY_MS = 2000
# Checkpoints wait for the disk, so `sync` makes them in its thread; this many pages (16 MB) are the safety net.
_AUTOMATIC_CHECKPOINT_PAGES = 4000


class ChatStore:
    """The chats in the SQLite file at `path`. Belongs to the thread that opened it; only `sync` may run in another.

    Answers that a killed program left unfinished are marked `stopped` when the file is opened again.
    Every method raises ChatStoreError when the file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = FileLock(path.with_name(f"{path.name}.lock"))
        self._syncing = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, isolation_level=None)
            path.chmod(0o600)
            self._prepare()
        except (sqlite3.Error, OSError) as error:
            raise ChatStoreError(
                f"{path}: the chats cannot be opened: {error}. "
                "If the file is damaged, move it away (Colibri then starts a new one) and restore a copy of it."
            ) from error

    def _prepare(self) -> None:
        for pragma in (
            "journal_mode = WAL",
            "synchronous = NORMAL",
            f"busy_timeout = {_BUSY_MS}",
            "foreign_keys = ON",
            f"wal_autocheckpoint = {_AUTOMATIC_CHECKPOINT_PAGES}",
        ):
            self._connection.execute(f"PRAGMA {pragma}")
        migrate(self._connection, self.path)
        if self._lock.try_acquire():  # nobody else is streaming into this file
            self._connection.execute("UPDATE messages SET state = 'stopped' WHERE state = 'streaming'")

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        with self._syncing:
            self._connection.close()
            self._lock.release()

    def sync(self) -> None:
        """Return when everything written so far is on the disk, not only in the system's memory.

        Waits for the disk: call it in another thread, never in the event loop's.
        """
        with self._syncing, self._errors("written to the disk"):
            try:
                descriptor = os.open(self.path.with_name(f"{self.path.name}-wal"), os.O_RDONLY)
            except FileNotFoundError:  # closed, and thereby written in full
                return
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    # Chats.

    def create_chat(
        self, title: str = "", *, system_prompt: str = "", model: str = "", sampling: Mapping[str, Any] | None = None
    ) -> Chat:
        """Make an empty chat."""
        now = time.time()
        with self._transaction() as connection:
            cursor = connection.execute(
                "INSERT INTO chats (title, created_at, updated_at, system_prompt, model, sampling)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (_clean(title), now, now, _clean(system_prompt), _clean(model), json.dumps(dict(sampling or {}))),
            )
        return self.chat(_row_id(cursor))

    def chat(self, chat_id: int) -> Chat:
        """One chat; a deleted one too."""
        rows = self._read(f"SELECT {_CHAT_COLUMNS} FROM chats WHERE id = ?", (chat_id,))
        if not rows:
            raise ChatStoreError(f"{self.path}: there is no chat {chat_id}; it may have been purged.")
        return _chat(rows[0])

    def list_chats(self) -> list[Chat]:
        """All chats that are not deleted: pinned ones first, then the newest."""
        order = "ORDER BY pinned DESC, updated_at DESC, id DESC"
        return [_chat(row) for row in self._read(f"SELECT {_CHAT_COLUMNS} FROM chats WHERE deleted_at IS NULL {order}")]

    def rename(self, chat_id: int, title: str) -> None:
        """Give a chat another title."""
        self.update(chat_id, title=title)

    def update(
        self,
        chat_id: int,
        *,
        title: str | None = None,
        pinned: bool | None = None,
        folder: str | None = None,
        system_prompt: str | None = None,
        model: str | None = None,
        sampling: Mapping[str, Any] | None = None,
    ) -> Chat:
        """Change the given fields of a chat; its place in the list stays (a chat moves up when somebody speaks)."""
        texts = {"title": title, "folder": folder, "system_prompt": system_prompt, "model": model}
        changes: dict[str, Any] = {name: _clean(text) for name, text in texts.items() if text is not None}
        if pinned is not None:
            changes["pinned"] = int(pinned)
        if sampling is not None:
            changes["sampling"] = json.dumps(dict(sampling))
        if changes:
            assignments = ", ".join(f"{name} = ?" for name in changes)
            with self._transaction() as connection:
                connection.execute(f"UPDATE chats SET {assignments} WHERE id = ?", (*changes.values(), chat_id))
        return self.chat(chat_id)

    def delete(self, chat_id: int) -> None:
        """Take a chat out of the list; `restore` brings it back until it is purged."""
        with self._transaction() as connection:
            connection.execute("UPDATE chats SET deleted_at = ? WHERE id = ?", (time.time(), chat_id))

    def restore(self, chat_id: int) -> Chat:
        """Undo `delete`."""
        with self._transaction() as connection:
            connection.execute("UPDATE chats SET deleted_at = NULL WHERE id = ?", (chat_id,))
        return self.chat(chat_id)

    def purge_one(self, older_than_s: float) -> bool:
        """Remove for good one chat that was deleted longer ago than this; False when there is none left."""
        rows = self._read("SELECT id FROM chats WHERE deleted_at < ? LIMIT 1", (time.time() - older_than_s,))
        if not rows:
            return False
        with self._transaction() as connection:
            connection.execute("DELETE FROM chats WHERE id = ?", rows[0])
        return True

    # Messages.

    def add_message(
        self,
        chat_id: int,
        parent_id: int | None,
        role: Role | str,
        content: str = "",
        *,
        state: MessageState | str = MessageState.COMPLETE,
    ) -> Message:
        """Append a message below `parent_id` (None: a first message) and show the branch that ends with it."""
        now = time.time()
        with self._transaction() as connection:
            if parent_id is not None:
                parent = connection.execute("SELECT chat_id FROM messages WHERE id = ?", (parent_id,)).fetchone()
                if parent != (chat_id,):
                    raise ChatStoreError(f"{self.path}: message {parent_id} does not belong to chat {chat_id}.")
            cursor = connection.execute(
                "INSERT INTO messages (chat_id, parent_id, role, content, created_at, state) VALUES (?, ?, ?, ?, ?, ?)",
                (chat_id, parent_id, Role(role), _clean(content), now, MessageState(state)),
            )
            message_id = _row_id(cursor)
            connection.execute(
                "UPDATE chats SET active_leaf_id = ?, updated_at = ? WHERE id = ?", (message_id, now, chat_id)
            )
        return self.message(message_id)

    def append_text(self, message_id: int, text: str, *, reasoning: str = "") -> None:
        """Add a piece to an answer, or to the reasoning before it, while it streams."""
        columns = [(column, _clean(piece)) for column, piece in (("content", text), ("reasoning", reasoning)) if piece]
        if columns:
            changes = ", ".join(f"{column} = {column} || ?" for column, _ in columns)
            pieces = [piece for _, piece in columns]
            with self._transaction() as connection:
                connection.execute(f"UPDATE messages SET {changes} WHERE id = ?", (*pieces, message_id))

    def finish_message(
        self,
        message_id: int,
        state: MessageState | str = MessageState.COMPLETE,
        *,
        metrics: Mapping[str, Any] | None = None,
        content: str | None = None,
    ) -> Message:
        """End an answer: its state, its figures and, where given, its whole text. From now on searches find it."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE messages SET state = ?, metrics = ?, content = coalesce(?, content) WHERE id = ?",
                (
                    MessageState(state),
                    json.dumps(dict(metrics or {})),
                    None if content is None else _clean(content),
                    message_id,
                ),
            )
            connection.execute(
                "UPDATE chats SET updated_at = ? WHERE id = (SELECT chat_id FROM messages WHERE id = ?)",
                (time.time(), message_id),
            )
        return self.message(message_id)

    def message(self, message_id: int) -> Message:
        """One message."""
        rows = self._read(f"SELECT {_MESSAGE_COLUMNS} FROM messages WHERE id = ?", (message_id,))
        if not rows:
            raise ChatStoreError(f"{self.path}: there is no message {message_id}; its chat may have been purged.")
        return _message(rows[0])

    def thread(self, chat_id: int) -> list[Message]:
        """The messages of the branch that is shown, first to last."""
        return self._ancestry(self.chat(chat_id).active_leaf_id)

    def path_to(self, message_id: int) -> list[Message]:
        """The messages from the first one down to this one."""
        return self._ancestry(message_id)

    def siblings(self, message: Message) -> list[Message]:
        """All messages that stand in this one's place (itself among them), oldest first."""
        rows = self._read(
            f"SELECT {_MESSAGE_COLUMNS} FROM messages WHERE chat_id = ? AND parent_id IS ? AND role = ? ORDER BY id",
            (message.chat_id, message.parent_id, message.role),
        )
        return [_message(row) for row in rows]

    def select(self, message_id: int) -> list[Message]:
        """Show the branch that goes through this message, down to its newest leaf; returns the new thread."""
        chat_id = self.message(message_id).chat_id
        with self._transaction() as connection:
            connection.execute(
                "WITH RECURSIVE below (id) AS (VALUES (?) UNION ALL"
                " SELECT messages.id FROM messages JOIN below ON messages.parent_id = below.id)"
                " UPDATE chats SET active_leaf_id = (SELECT max(id) FROM below) WHERE id = ?",
                (message_id, chat_id),
            )
        return self.thread(chat_id)

    def search(self, query: str, limit: int = 50) -> list[SearchHit]:
        """Find the chats whose titles, then the messages whose texts, hold every word of the query, newest first.

        Words are separated by spaces, may be parts of words, and upper and lower case are the same.
        """
        with self._errors("searched"):
            return find(self._connection, _clean(query), limit)

    # Within.

    def _ancestry(self, message_id: int | None) -> list[Message]:
        rows = self._read(
            f"WITH RECURSIVE above (id, parent_id) AS (SELECT id, parent_id FROM messages WHERE id = ? UNION ALL"
            " SELECT messages.id, messages.parent_id FROM messages JOIN above ON messages.id = above.parent_id)"
            f" SELECT {_MESSAGE_COLUMNS} FROM messages WHERE id IN (SELECT id FROM above) ORDER BY id",
            (message_id,),
        )
        return [_message(row) for row in rows]

    def _read(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with self._errors("read"):
            return self._connection.execute(sql, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._errors("saved"):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError as error:
            raise ChatStoreError(f"{self.path}: the chat or message does not exist ({error}).") from error
        except (sqlite3.Error, OSError) as error:
            raise ChatStoreError(
                f"{self.path}: chats could not be {what}: {error}. Check that the disk is there and not full."
            ) from error


def _chat(row: tuple[Any, ...]) -> Chat:
    chat_id, title, created_at, updated_at, pinned, folder, system_prompt, model, sampling, leaf = row
    options = _json(sampling, f"sampling of chat {chat_id}")
    return Chat(chat_id, title, created_at, updated_at, bool(pinned), folder, system_prompt, model, options, leaf)


def _message(row: tuple[Any, ...]) -> Message:
    message_id, chat_id, parent_id, role, content, created_at, state, metrics, reasoning = row
    figures = _json(metrics, f"metrics of message {message_id}")
    state = MessageState(state)
    return Message(message_id, chat_id, parent_id, Role(role), content, created_at, state, figures, reasoning)


def _json(text: str, where: str) -> dict[str, Any]:
    """A JSON object; a damaged one costs its values, not the chat."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return value
    logger.warning("the %s are not a JSON object and are left out", where)
    return {}


def _clean(text: str) -> str:
    """The text without what SQLite cannot keep or compare: lone surrogates and NUL become U+FFFD."""
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", "\ufffd")


def _row_id(cursor: sqlite3.Cursor) -> int:
    assert cursor.lastrowid is not None
    return cursor.lastrowid
