"""A drop-down list with our chevron, which shortens what has no room."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QComboBox, QStyle, QStyleOptionComboBox, QStylePainter

from ui.theme import current_theme, themed_pixmap

_MARGIN = 9


class ComboBox(QComboBox):
    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        size = current_theme().px(14)
        room = self.width() - size - 3 * _MARGIN
        option.currentText = self.fontMetrics().elidedText(self.currentText(), Qt.TextElideMode.ElideRight, room)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        chevron = themed_pixmap("chevron-down", "text_muted", size, self.devicePixelRatioF())
        painter.drawPixmap(self.width() - size - _MARGIN, (self.height() - size) // 2, chevron)
        painter.end()

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()  # a page that scrolls must not change a value on its way
