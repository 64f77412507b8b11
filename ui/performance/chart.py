"""A painted chart: the box with its grid and scale, and what all charts share of theme, size and tool tips."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from ui.theme import current_theme

_N_LINES = 4


def nice_step(span: float, n_lines: int = _N_LINES) -> float:
    """1, 2 or 5 times a power of ten, so that about `n_lines` steps make the span."""
    if span <= 0 or not math.isfinite(span):
        return 1.0
    rough = span / n_lines
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)


class Chart(QWidget):
    """Subclasses paint into ``box`` in :meth:`paint_data`, and say in :meth:`describe` what lies under a point."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.left, self.bottom, self.top, self.right = 40, 9, 18, 6  # margins at the base text size
        current_theme().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(300, 130)

    def minimumSizeHint(self) -> QSize:
        theme = current_theme()
        return QSize(theme.px(140), theme.px(56))

    @property
    def box(self) -> QRectF:
        """Where the data are."""
        theme = current_theme()
        return QRectF(self.rect()).adjusted(
            theme.px(self.left), theme.px(self.top), -theme.px(self.right), -theme.px(self.bottom)
        )

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        raise NotImplementedError

    def describe(self, position: QPointF) -> str:
        """The tool tip for a point; "" for none."""
        return ""

    def paintEvent(self, _event: QPaintEvent) -> None:
        self.paint_onto(QPainter(self))

    def paint_onto(self, painter: QPainter) -> None:
        """Paint onto the widget, or onto a picture of the same size that is to be saved."""
        painter.setFont(current_theme().font(11))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self.paint_data(painter, self.box)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        text = self.describe(event.position())
        if text:
            QToolTip.showText(event.globalPosition().toPoint(), text, self)
        else:
            QToolTip.hideText()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        QToolTip.hideText()

    # -- parts of charts

    def paint_scale(
        self, painter: QPainter, box: QRectF, top: float, unit: str, text: Callable[[float], str] | None = None
    ) -> None:
        """Lines from 0 to `top`, their figures, and the unit above them."""
        text = text or trimmed
        theme = current_theme()
        n_lines = max(1, min(_N_LINES, int(box.height() / theme.px(22))))
        step = nice_step(top, n_lines)
        height = painter.fontMetrics().height()
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.setPen(theme.color("text_muted"))
        painter.drawText(QRectF(0, 0, box.left() - theme.px(6), height), right, unit)
        value = 0.0
        while value <= top * 1.0001:
            y = box.bottom() - value / top * box.height()
            painter.setPen(QPen(theme.color("grid"), 1))
            painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
            painter.setPen(theme.color("text_faint"))
            painter.drawText(
                QRectF(0, y - height / 2, box.left() - theme.px(6), height),
                right,
                text(value),
            )
            value += step

    def paint_line(
        self, painter: QPainter, box: QRectF, xs: Sequence[float], ys: Sequence[float], top: float, color: QColor
    ) -> None:
        """A line through points; `xs` from 0 to 1 across the box, `ys` from 0 to `top`."""
        left, width, bottom, scale = box.left(), box.width(), box.bottom(), box.height() / top
        points = [
            QPointF(left + x * width, bottom - (y if y < top else top) * scale) for x, y in zip(xs, ys, strict=True)
        ]
        painter.setPen(QPen(color, 1))  # a wider pen takes ten times as long
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, len(points) * 4 < box.width())
        painter.drawPolyline(QPolygonF(points))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def trimmed(value: float) -> str:
    """A figure of a scale without needless digits: 20, 2.5, 0.05, 12k."""
    return f"{value / 1000:.3g}k" if value >= 1e4 else f"{value:.4g}" if value >= 100 else f"{value:.3g}"
