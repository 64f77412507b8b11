"""The steps of a conversion in a row: those done, the present one, those to come."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QFont, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.theme import current_theme, themed_pixmap

_CIRCLE = 24
_HEIGHT = 52


class Stepper(QWidget):
    """`set_step(index)`; `failed` shows that the present step went wrong."""

    def __init__(self, steps: list[str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._steps = steps
        self.index = 0
        self.failed = False
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        current_theme().changed.connect(self.updateGeometry)
        self._describe()

    def set_steps(self, steps: list[str]) -> None:
        self._steps = steps
        self._describe()

    def set_step(self, index: int, *, failed: bool = False) -> None:
        if (index, failed) != (self.index, self.failed):
            self.index, self.failed = index, failed
            self._describe()
            self.update()

    def _describe(self) -> None:
        if not self._steps:
            return
        name = self._steps[min(self.index, len(self._steps) - 1)]
        text = self.tr("Step {number} of {total}: {name}")
        number = min(self.index + 1, len(self._steps))
        self.setAccessibleName(text.format(number=number, total=len(self._steps), name=name))

    def sizeHint(self) -> QSize:
        theme = current_theme()
        return QSize(theme.px(90) * len(self._steps), theme.px(_HEIGHT))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, current_theme().px(_HEIGHT))

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        n, diameter = len(self._steps), float(theme.px(_CIRCLE))
        cell = self.width() / n
        y = diameter / 2 + 1
        for number, name in enumerate(self._steps):
            x = cell * (number + 0.5)
            if number:
                painter.setPen(QPen(theme.color("accent" if number <= self.index else "border_strong"), 1.5))
                gap = diameter / 2 + 7
                painter.drawLine(QPointF(x - cell + gap, y), QPointF(x - gap, y))
            circle = QRectF(x - diameter / 2, y - diameter / 2, diameter, diameter)
            self._paint_circle(painter, circle, number)
            is_current = number == self.index
            painter.setFont(theme.font(12, QFont.Weight.DemiBold if is_current else QFont.Weight.Normal))
            painter.setPen(theme.color("text" if is_current else "text_muted"))
            below = QRectF(x - cell / 2, diameter + 4, cell, self.height() - diameter - 4)
            text = painter.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, int(cell) - 4)
            painter.drawText(below, int(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop), text)

    def _paint_circle(self, painter: QPainter, circle: QRectF, number: int) -> None:
        theme = current_theme()
        is_done, is_current = number < self.index, number == self.index
        token = "danger" if is_current and self.failed else "accent"
        painter.setPen(QPen(theme.color(token if is_done or is_current else "border_strong"), 1.5))
        painter.setBrush(theme.color(token) if is_current else theme.color("accent_soft" if is_done else "surface"))
        painter.drawEllipse(circle)
        if is_done:
            size = theme.px(15)
            pixmap = themed_pixmap("check", "accent", size, self.devicePixelRatioF())
            painter.drawPixmap(QPointF(circle.center().x() - size / 2, circle.center().y() - size / 2), pixmap)
            return
        painter.setFont(theme.font(12, QFont.Weight.DemiBold))
        painter.setPen(theme.color("accent_text" if is_current else "text_muted"))
        painter.drawText(circle, int(Qt.AlignmentFlag.AlignCenter), str(number + 1))
