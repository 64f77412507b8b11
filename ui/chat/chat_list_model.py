"""The chats as a list model, grouped by Pinned, Today and Earlier."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import IntEnum

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt, Signal

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class ShownChat:
    """One entry of the list. ``snippet`` is the found text when the list shows a search."""

    id: int
    title: str
    updated_at: datetime
    is_pinned: bool = False
    snippet: str = ""


class ChatRole(IntEnum):
    CHAT = Qt.ItemDataRole.UserRole + 1
    IS_HEADER = Qt.ItemDataRole.UserRole + 2


class ChatListModel(QAbstractListModel):
    """Rows are headers (str) and chats; a rename is passed on as a signal, the store decides."""

    renamed = Signal(int, str)

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[str | ShownChat] = []

    def set_chats(self, chats: list[ShownChat], *, is_search: bool = False, today: date | None = None) -> None:
        """Show these chats, already in the order in which they are to stand inside their groups."""
        today = today or date.today()
        groups: dict[str, list[ShownChat]] = {}
        for chat in chats:
            if is_search:
                group = self.tr("Found")
            elif chat.is_pinned:
                group = self.tr("Pinned")
            elif chat.updated_at.date() >= today:
                group = self.tr("Today")
            else:
                group = self.tr("Earlier")
            groups.setdefault(group, []).append(chat)
        order = [self.tr("Found"), self.tr("Pinned"), self.tr("Today"), self.tr("Earlier")]
        rows: list[str | ShownChat] = []
        for name in order:
            if name in groups:
                rows += [name, *groups[name]]
        if rows != self._rows:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()

    def row_of(self, chat_id: int) -> int | None:
        """The row of a chat, or None when it is not shown."""
        for number, row in enumerate(self._rows):
            if isinstance(row, ShownChat) and row.id == chat_id:
                return number
        return None

    def chat_at(self, row: int) -> ShownChat | None:
        """The chat in a row; None for a header."""
        entry = self._rows[row] if 0 <= row < len(self._rows) else None
        return entry if isinstance(entry, ShownChat) else None

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self._rows[index.row()]
        if role == ChatRole.IS_HEADER:
            return isinstance(row, str)
        if role == ChatRole.CHAT:
            return row if isinstance(row, ShownChat) else None
        if role in {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole, Qt.ItemDataRole.AccessibleTextRole}:
            return row if isinstance(row, str) else row.title
        return None

    def setData(self, index: Index, value: object, role: int = Qt.ItemDataRole.EditRole) -> bool:
        chat = self.chat_at(index.row())
        title = str(value).strip()
        if role != Qt.ItemDataRole.EditRole or chat is None or not title:
            return False
        if title != chat.title:
            self.renamed.emit(chat.id, title)
        return True

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid() or isinstance(self._rows[index.row()], str):
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEditable
