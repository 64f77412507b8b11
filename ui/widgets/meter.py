"""A small bar that shows how full something is."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from ui.theme import current_theme

_NEARLY_FULL = 0.85


class Meter(QWidget):
    """Filled from the left by ``fraction`` (0 to 1); turns to the warning colour when nearly full."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.fraction = 0.0
        current_theme().changed.connect(self.update)

    def set_fraction(self, fraction: float) -> None:
        fraction = max(0.0, min(1.0, fraction))
        if fraction != self.fraction:
            self.fraction = fraction
            self.update()

    def sizeHint(self) -> QSize:
        theme = current_theme()
        return QSize(theme.px(72), theme.px(6))

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        height = min(float(self.height()), float(theme.px(5)))
        track = QRectF(0, (self.height() - height) / 2, self.width(), height)
        painter.setBrush(theme.color("pressed"))
        painter.drawRoundedRect(track, height / 2, height / 2)
        if self.fraction > 0:
            track.setWidth(max(height, track.width() * self.fraction))
            painter.setBrush(theme.color("warning" if self.fraction > _NEARLY_FULL else "accent"))
            painter.drawRoundedRect(track, height / 2, height / 2)
