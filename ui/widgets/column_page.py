"""A page that scrolls: a centred column that is never too wide to read."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from ui.theme import current_theme


class ColumnPage(QScrollArea):
    """Add widgets to `column`."""

    def __init__(self, width: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._width = width
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        inner = QWidget(self)
        inner.setObjectName("Page")
        inner.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._body = QWidget(inner)
        self.column = QVBoxLayout(self._body)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(14)
        row = QHBoxLayout(inner)
        row.setContentsMargins(24, 22, 24, 28)
        row.addStretch(1)
        row.addWidget(self._body, 1000)
        row.addStretch(1)
        self.setWidget(inner)
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def _restyle(self) -> None:
        self._body.setMaximumWidth(current_theme().px(self._width))
