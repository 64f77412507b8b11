"""Three breathing dots: something is being worked on."""

from __future__ import annotations

import math

from PySide6.QtCore import QElapsedTimer, QPointF, QSize, Qt, QTimer
from PySide6.QtGui import QHideEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from ui.theme import current_theme

_FRAME_MS = 40
_PERIOD_MS = 1200


class ThinkingDots(QWidget):
    """Animates only while it is visible."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._clock = QElapsedTimer()
        self._clock.start()
        self._timer = QTimer(self)
        self._timer.setInterval(_FRAME_MS)
        self._timer.timeout.connect(self.update)

    def sizeHint(self) -> QSize:
        theme = current_theme()
        return QSize(theme.px(34), theme.px(18))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("accent"))
        radius, gap = theme.px(3), theme.px(11)
        for index in range(3):
            phase = (self._clock.elapsed() / _PERIOD_MS - index * 0.16) % 1.0
            painter.setOpacity(0.3 + 0.7 * max(0.0, math.sin(phase * 2 * math.pi)))
            painter.drawEllipse(QPointF(radius + 1 + index * gap, self.height() / 2), radius, radius)
