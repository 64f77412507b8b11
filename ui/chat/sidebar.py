"""The left side: new chat, search, and the list of chats."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from ui.chat.chat_delegate import ChatDelegate
from ui.chat.chat_list_model import ChatListModel, ShownChat
from ui.theme import current_theme, themed_icon

_SEARCH_DELAY_MS = 120


class ChatListView(QListView):
    """Single selection; Delete deletes, F2 renames, the context menu has everything."""

    delete_pressed = Signal(int)

    def __init__(self, model: ChatListModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._chats = model
        self.setModel(model)
        self.setItemDelegate(ChatDelegate(self))
        self.setMouseTracking(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.setAccessibleName(self.tr("Chats"))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        chat = self._chats.chat_at(self.currentIndex().row())
        if event.key() == Qt.Key.Key_Delete and chat is not None:
            self.delete_pressed.emit(chat.id)
        else:
            super().keyPressEvent(event)


class Sidebar(QWidget):
    """Shows what :meth:`set_chats` gives; asks for everything else by signals."""

    chat_selected = Signal(int)
    new_chat_requested = Signal()
    rename_requested = Signal(int, str)
    pin_requested = Signal(int, bool)
    delete_requested = Signal(int)
    search_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("Sidebar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._new = QPushButton(self.tr("New chat"), self)
        self._new.setProperty("kind", "new-chat")
        self._new.setAccessibleName(self.tr("New chat"))
        self._new.setToolTip("Ctrl+N")
        self._new.clicked.connect(self.new_chat_requested)
        self._search = QLineEdit(self)
        self._search.setProperty("kind", "search")
        self._search.setPlaceholderText(self.tr("Search chats"))
        self._search.setAccessibleName(self.tr("Search chats"))
        self._search.setClearButtonEnabled(False)
        self._search_icon = self._search.addAction(
            themed_icon("search", "text_faint", 16), QLineEdit.ActionPosition.LeadingPosition
        )
        for button in self._search.findChildren(QToolButton):
            button.setAccessibleName(self.tr("Search chats"))
        self._search_timer = QTimer(self)
        self._search_timer.setSingleShot(True)
        self._search_timer.setInterval(_SEARCH_DELAY_MS)
        self._search_timer.timeout.connect(lambda: self.search_changed.emit(self._search.text().strip()))
        self._search.textChanged.connect(lambda _text: self._search_timer.start())
        self.model = ChatListModel()
        self.model.renamed.connect(self.rename_requested)
        self.list = ChatListView(self.model, self)
        self.list.delete_pressed.connect(self.delete_requested)
        self.list.selectionModel().currentChanged.connect(self._on_current)
        self.list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.list.customContextMenuRequested.connect(self._show_menu)
        self._empty = QLabel(self)
        self._empty.setProperty("tone", "faint")
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._empty.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 12, 12, 8)
        layout.setSpacing(8)
        layout.addWidget(self._new)
        layout.addWidget(self._search)
        layout.addWidget(self.list, 1)
        layout.addWidget(self._empty, 1)
        self._layout = layout
        self._is_filling = False
        self._empty.hide()
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def set_chats(self, chats: list[ShownChat], current_id: int | None, *, is_search: bool = False) -> None:
        """Fill the list and mark the chat that is open."""
        self._is_filling = True
        self.model.set_chats(chats, is_search=is_search)
        self._is_filling = False
        self.mark(current_id)
        self.list.setVisible(bool(chats))
        self._empty.setVisible(not chats)
        self._empty.setText(self.tr("Nothing found") if is_search else self.tr("Your chats will be listed here"))

    def add_foot(self, widget: QWidget) -> None:
        """Put a widget below the list."""
        self._layout.addWidget(widget)

    def mark(self, chat_id: int | None) -> None:
        """Mark a chat as the open one, without asking for it."""
        self._is_filling = True
        row = self.model.row_of(chat_id) if chat_id is not None else None
        self.list.setCurrentIndex(QModelIndex() if row is None else self.model.index(row, 0))
        if row is None:
            self.list.clearSelection()
        self._is_filling = False

    def focus_search(self) -> None:
        self._search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._search.selectAll()

    @property
    def search_field(self) -> QLineEdit:
        return self._search

    @property
    def empty_text(self) -> str:
        """What stands in place of the list; "" while there are chats."""
        return "" if self._empty.isHidden() else self._empty.text()

    def search_text(self) -> str:
        return self._search.text().strip()

    def clear_search(self) -> None:
        self._search.clear()

    def rename(self, chat_id: int) -> None:
        """Open the field for a new title."""
        row = self.model.row_of(chat_id)
        if row is not None:
            self.list.edit(self.model.index(row, 0))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._search.hasFocus() and self._search.text():
            self._search.clear()
        else:
            super().keyPressEvent(event)

    def menu_for(self, chat: ShownChat) -> QMenu:
        """The context menu of one chat."""
        menu = QMenu(self)
        menu.addAction(themed_icon("edit"), self.tr("Rename"), lambda: self.rename(chat.id))
        pin = self.tr("Unpin") if chat.is_pinned else self.tr("Pin")
        menu.addAction(themed_icon("pin"), pin, lambda: self.pin_requested.emit(chat.id, not chat.is_pinned))
        menu.addSeparator()
        menu.addAction(themed_icon("trash", "danger"), self.tr("Delete"), lambda: self.delete_requested.emit(chat.id))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return menu

    def _show_menu(self, position: QPoint) -> None:
        chat = self.model.chat_at(self.list.indexAt(position).row())
        if chat is not None:
            self.menu_for(chat).popup(self.list.viewport().mapToGlobal(position))

    def _on_current(self, current: QModelIndex, _previous: QModelIndex) -> None:
        chat = self.model.chat_at(current.row())
        if chat is not None and not self._is_filling:
            self.chat_selected.emit(chat.id)

    def _restyle(self) -> None:
        size = current_theme().px(17)
        self._new.setIcon(themed_icon("new-chat", "text_muted", size))
        self._new.setIconSize(QSize(size, size))
        self._search_icon.setIcon(themed_icon("search", "text_faint", 16))
        self.list.doItemsLayout()

    def sizeHint(self) -> QSize:
        return QSize(current_theme().px(250), 400)
