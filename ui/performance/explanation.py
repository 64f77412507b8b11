"""What a panel shows when there is nothing to show: an icon and two lines."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from ui.theme import current_theme, themed_pixmap


class Explanation(QWidget):
    """An icon and two lines in the middle of the panel."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._icon = QLabel(self)
        self._icon.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.title = QLabel(self)
        self.title.setProperty("tone", "strong")
        self.text = QLabel(self)
        self.text.setProperty("tone", "small")
        for label in (self.title, self.text):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            label.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(28, 20, 28, 20)
        layout.setSpacing(8)
        layout.addStretch(2)
        for widget in (self._icon, self.title, self.text):
            layout.addWidget(widget)
        layout.addStretch(3)
        current_theme().changed.connect(self._restyle)
        self._restyle()

    def explain(self, title: str, text: str) -> None:
        self.title.setText(title)
        self.text.setText(text)

    def _restyle(self) -> None:
        size = current_theme().px(34)
        self._icon.setPixmap(themed_pixmap("experts", "border_strong", size, self.devicePixelRatioF()))
