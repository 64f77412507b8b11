"""The strip above a page: its name, and room for what acts on the whole page."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QWidget

from ui.theme import current_theme
from ui.widgets.elided_label import ElidedLabel

HEADER_HEIGHT = 48


class PageHeader(QWidget):
    """As high as the chat's, so that nothing jumps when the page changes."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("Header")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.title = ElidedLabel(self)
        self.title.setText(title)
        self.title.setProperty("tone", "title")
        theme = current_theme()
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(theme.px(20), 0, theme.px(10), 0)
        self._row.setSpacing(8)
        self._row.addWidget(self.title, 1)
        self._restyle()
        theme.changed.connect(self._restyle)

    def add(self, widget: QWidget) -> None:
        """Put a widget to the right."""
        self._row.addWidget(widget)

    def _restyle(self) -> None:
        self.setFixedHeight(current_theme().px(HEADER_HEIGHT))
