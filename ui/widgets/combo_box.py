"""A drop-down list with our chevron."""

from __future__ import annotations

from PySide6.QtGui import QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QComboBox

from ui.theme import current_theme, themed_pixmap


class ComboBox(QComboBox):
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self)
        size = current_theme().px(14)
        chevron = themed_pixmap("chevron-down", "text_muted", size, self.devicePixelRatioF())
        painter.drawPixmap(self.width() - size - 9, (self.height() - size) // 2, chevron)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # a page that scrolls must not change a value on its way
