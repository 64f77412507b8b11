"""A painted chart: the box with its grid and scale, and what all charts share of theme, size and tool tips."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPaintEngine, QPainter, QPaintEvent, QPen, QPixmap, QPolygonF
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from ui.theme import current_theme

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOOT = 20  # the margin below data that have something written under them
_N_LINES = 4
_POINT_BYTES = 16  # two float64


def nice_step(span: float, n_lines: int = _N_LINES) -> float:
    """1, 2 or 5 times a power of ten, so that about `n_lines` steps make the span."""
    if span <= 0 or not math.isfinite(span):
        return 1.0
    rough = span / n_lines
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)


def round_top(wanted: float) -> float:
    """A scale's end, a little above `wanted`: one of few, so that the scale stands still while figures come and go."""
    step = nice_step(wanted) / 2
    return math.ceil(wanted / step * (1 - 1e-9)) * step


def by_token() -> str:
    """What stands below a chart of the newest tokens."""
    return QCoreApplication.translate("Chart", "tokens, newest on the right")


class Chart(QWidget):
    """Subclasses paint into ``box`` in :meth:`paint_data`, and say in :meth:`describe` what lies under a point.

    What seldom changes (scale, names) is painted in :meth:`paint_frame` and kept as a picture for as long as
    :meth:`frame_key` stays the same. The whole widget is opaque, so that nothing behind it is painted with it.
    """

    ground = "window"  # a token of the theme

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._frame = QPixmap()
        self._frame_key: Hashable = None
        self.setAccessibleName(name)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.left, self.bottom, self.top, self.right = 40, 9, 22, 6  # margins at the base text size
        current_theme().changed.connect(self._restyle)

    def _restyle(self) -> None:
        self._frame_key = None
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(300, 130)

    def minimumSizeHint(self) -> QSize:
        theme = current_theme()
        return QSize(theme.px(140), theme.px(47 + self.bottom))

    @property
    def box(self) -> QRectF:
        """Where the data are."""
        theme = current_theme()
        return QRectF(self.rect()).adjusted(
            theme.px(self.left), theme.px(self.top), -theme.px(self.right), -theme.px(self.bottom)
        )

    def frame_key(self) -> Hashable:
        """All that decides how the frame looks, but for size and theme."""
        return ()

    def paint_frame(self, painter: QPainter, box: QRectF) -> None:
        """Paint what stays as it is for longer than the data."""

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        raise NotImplementedError

    def describe(self, position: QPointF) -> str:
        """The tool tip for a point; "" for none."""
        return ""

    def paintEvent(self, _event: QPaintEvent) -> None:
        painter = QPainter(self)
        if painter.paintEngine().type() is QPaintEngine.Type.Raster:
            painter.drawPixmap(0, 0, self._kept_frame())
        else:  # a drawing of lines and letters is wanted, an SVG file, say
            painter.fillRect(self.rect(), current_theme().color(self.ground))
            self._prepare(painter)
            self.paint_frame(painter, self.box)
        self._prepare(painter)
        self.paint_data(painter, self.box)

    def _kept_frame(self) -> QPixmap:
        key = (self.size(), self.devicePixelRatioF(), self.frame_key())
        if self._frame_key != key:
            self._frame_key = key
            self._frame = QPixmap(self.size() * self.devicePixelRatioF())
            self._frame.setDevicePixelRatio(self.devicePixelRatioF())
            self._frame.fill(current_theme().color(self.ground))
            painter = QPainter(self._frame)
            self._prepare(painter)
            self.paint_frame(painter, self.box)
            painter.end()
        return self._frame

    def _prepare(self, painter: QPainter) -> None:
        painter.setFont(current_theme().font(11))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

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
        if step > top:  # there would be no line but the lowest
            step = next(step / part for part in (2, 2.5, 5, 10) if step / part <= top)
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

    def paint_foot(self, painter: QPainter, box: QRectF, text: str) -> None:
        """What stands side by side, below the data; a chart that has it keeps FOOT free below."""
        room = QRectF(box.left(), box.bottom() + 2, box.width(), painter.fontMetrics().height())
        painter.setPen(current_theme().color("text_faint"))
        text = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(room.width()))
        painter.drawText(room, Qt.AlignmentFlag.AlignHCenter, text)

    def paint_name(self, painter: QPainter, box: QRectF, text: str) -> None:
        """A name at the right end of a line of the chart, which data behind it do not cross out."""
        width = painter.fontMetrics().horizontalAdvance(text) + current_theme().px(4)
        painter.fillRect(box.adjusted(box.width() - width, 0, 0, 0), current_theme().color(self.ground))
        painter.drawText(box, Qt.AlignmentFlag.AlignRight, text)

    def paint_line(self, painter: QPainter, box: QRectF, ys: NDArray[np.float64], top: float, color: QColor) -> None:
        """A line through points that are evenly spread across the box; `ys` (n,) from 0 to `top`."""
        import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

        n = len(ys)
        points = QPolygonF()
        points.resize(n)
        memory = shiboken6.VoidPtr(points.data(), n * _POINT_BYTES, True)  # type: ignore[arg-type,call-arg]
        places = np.frombuffer(memory, np.float64).reshape(n, 2)  # type: ignore[call-overload]
        places[:, 0] = box.left() + (np.arange(n) + 0.5) * (box.width() / n)
        places[:, 1] = box.bottom() - np.minimum(ys, top) * (box.height() / top)
        painter.setPen(QPen(color, 1))  # a wider pen takes ten times as long
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, n * 4 < box.width())
        painter.drawPolyline(points)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)


def trimmed(value: float) -> str:
    """A figure of a scale without needless digits: 20, 2.5, 0.05, 12k."""
    return f"{value / 1000:.3g}k" if value >= 1e4 else f"{value:.4g}" if value >= 100 else f"{value:.3g}"
