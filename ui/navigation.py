"""The window's pages: buttons that choose one, and the stack that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QPushButton, QStackedWidget, QVBoxLayout, QWidget

from ui.theme import current_theme, themed_icon

CHAT = "chat"


@dataclass(slots=True)
class _Page:
    icon: str
    make: Callable[[], QWidget]
    button: QPushButton
    widget: QWidget | None = None


class Navigation(QWidget):
    """A column of page buttons; a second press goes back to the chat."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Pages"))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)

    def add(self, key: str, title: str, shortcut: str = "") -> QPushButton:
        """One more button, below the others."""
        button = QPushButton(title, self)
        button.setProperty("kind", "nav")
        button.setCheckable(True)
        button.setAccessibleName(title)
        button.setToolTip(shortcut)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(lambda is_checked: self.chosen.emit(key if is_checked else CHAT))
        self._column.addWidget(button)
        return button


class Pages(QStackedWidget):
    """The chat and the other pages; each of those is made when it is first shown."""

    shown = Signal(str)

    def __init__(self, chat: QWidget, navigation: Navigation, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._navigation = navigation
        self._chat = chat
        self._pages: dict[str, _Page] = {}
        self.current = CHAT
        self.addWidget(chat)
        navigation.chosen.connect(self.show_page)
        current_theme().changed.connect(self._restyle)

    def add(self, key: str, icon: str, title: str, make: Callable[[], QWidget], shortcut: str = "") -> None:
        """One more page with its button; `make` is called when it is first shown."""
        self._pages[key] = _Page(icon, make, self._navigation.add(key, title, shortcut))
        self._restyle()

    def page(self, key: str) -> QWidget:
        """The page, made now if it was not yet."""
        page = self._pages[key]
        if page.widget is None:
            page.widget = page.make()
            self.addWidget(page.widget)
        return page.widget

    def show_page(self, key: str) -> None:
        """Show a page, or the chat; tells `shown` when another one was there."""
        widget = self._chat if key == CHAT else self.page(key)
        is_other = key != self.current
        self.current = key
        self.setCurrentWidget(widget)
        self._restyle()
        if is_other:
            self.shown.emit(key)

    def _restyle(self) -> None:
        size = current_theme().px(17)
        for key, page in self._pages.items():
            is_current = key == self.current
            page.button.setChecked(is_current)
            page.button.setIcon(themed_icon(page.icon, "accent" if is_current else "text_muted", size))
            page.button.setIconSize(QSize(size, size))
