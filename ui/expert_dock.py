"""The dock around the expert panel, with a title bar of our own."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QLabel, QWidget

from ui.chat.chat_page import HEADER_HEIGHT
from ui.performance.expert_panel import ExpertPanel, ExpertSource
from ui.theme import current_theme
from ui.widgets.icon_button import IconButton


class DockTitle(QWidget):
    """The dock's name, a button to tear it off and one to close it."""

    def __init__(self, dock: QDockWidget, title: str) -> None:
        super().__init__(dock)
        self.setObjectName("DockTitle")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        label = QLabel(title, self)
        label.setProperty("tone", "title")
        tear = IconButton("float", self.tr("Tear off or put back"), self, size=26, icon_size=15)
        tear.clicked.connect(lambda: dock.setFloating(not dock.isFloating()))
        close = IconButton("close", self.tr("Close panel"), self, size=26, icon_size=15)
        close.clicked.connect(dock.close)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 0, 8, 0)
        layout.setSpacing(2)
        layout.addWidget(label, 1)
        layout.addWidget(tear)
        layout.addWidget(close)
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), current_theme().px(HEADER_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(super().minimumSizeHint().width(), current_theme().px(HEADER_HEIGHT))

    def _restyle(self) -> None:
        self.updateGeometry()


class ExpertDock(QDockWidget):
    def __init__(self, source: Callable[[], ExpertSource | None], parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Experts"))
        self.setObjectName("experts")
        self.setTitleBarWidget(DockTitle(self, self.tr("Experts")))
        self.panel = ExpertPanel(source, self)
        self.setWidget(self.panel)
        self.setMinimumWidth(220)
