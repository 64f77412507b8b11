"""A dock around a live panel, with a title bar of our own: help, tear off, close."""

from __future__ import annotations

import html
from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QToolTip, QWidget

from ui.theme import current_theme
from ui.widgets.icon_button import IconButton


class DockTitle(QWidget):
    """The dock's name and its buttons."""

    def __init__(self, dock: QDockWidget, title: str, height: int) -> None:
        super().__init__(dock)
        self.setObjectName("DockTitle")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._height = height
        label = QLabel(title, self)
        label.setProperty("tone", "title")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 0, 8, 0)
        layout.setSpacing(2)
        layout.addWidget(label, 1)
        self.help = IconButton("help", self.tr("How to read this panel"), self, size=26, icon_size=15)
        self.help.clicked.connect(self._show_help)
        tear = IconButton("float", self.tr("Tear off or put back"), self, size=26, icon_size=15)
        tear.clicked.connect(lambda: dock.setFloating(not dock.isFloating()))
        close = IconButton("close", self.tr("Close panel"), self, size=26, icon_size=15)
        close.clicked.connect(dock.close)
        for button in (self.help, tear, close):
            layout.addWidget(button)
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def set_help(self, text: str) -> None:
        """Say how the panel is to be read."""
        self.help.setToolTip(f"<p style='white-space: normal;'>{html.escape(text)}</p>")  # rich text is wrapped
        self.help.setAccessibleDescription(text)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), current_theme().px(self._height))

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), current_theme().px(self._height))

    def _show_help(self) -> None:
        QToolTip.showText(self.help.mapToGlobal(self.help.rect().bottomLeft()), self.help.toolTip(), self.help)

    def _restyle(self) -> None:
        self.updateGeometry()


class LiveDock(QDockWidget):
    """``key`` names it in the saved layout. The panel is made when the dock is first shown.

    ``opened`` tells that somebody has asked for it, by the menu or a shortcut.
    """

    opened = Signal(object)  # itself

    def __init__(self, key: str, title: str, make: Callable[[], QWidget], parent: QWidget, *, height: int = 36) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setObjectName(key)
        self._title = DockTitle(self, title, height)
        self.setTitleBarWidget(self._title)
        self._make = make
        self.panel: QWidget | None = None
        self.setMinimumWidth(220)
        self.toggleViewAction().triggered.connect(lambda is_shown: self.opened.emit(self) if is_shown else None)

    def showEvent(self, event: QShowEvent) -> None:
        if self.panel is None:
            self.panel = self._make()
            self.setWidget(self.panel)
            self._title.set_help(getattr(self.panel, "help_text", ""))
        super().showEvent(event)
