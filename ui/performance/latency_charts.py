"""Charts of durations: token after token, and how often each duration came."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QWidget

from ui import format as fmt
from ui.performance.chart import FOOT, Chart, by_token, round_top, trimmed
from ui.theme import current_theme

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_N_BINS = 36
_HEADROOM = 1.5  # the scale ends at this much of the 99th percentile; what lies above is drawn at the edge


def percentiles(values: NDArray[np.float64], *percents: float) -> list[float]:
    """Of one value or more, between neighbours in proportion; NumPy's own takes ten times as long for some hundred."""
    import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

    ordered = np.sort(values)
    found = []
    for percent in percents:
        place = percent / 100 * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        found.append(float(ordered[below] + (ordered[above] - ordered[below]) * (place - below)))
    return found


class Durations:
    """Milliseconds of decoded tokens with what is said about them."""

    def __init__(self, ms: NDArray[np.float64], marks: list[tuple[int, float]]) -> None:
        """`marks`: before which token an answer began, and how long its first token took in milliseconds."""
        import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

        self.ms, self.marks = ms, marks
        self.p50, self.p95, self.p99 = percentiles(ms, 50, 95, 99)
        self.top = round_top(max(self.p99 * _HEADROOM, 1e-3))
        bins = np.minimum(ms * (_N_BINS / self.top), _N_BINS - 1).astype(np.intp)
        self.counts = np.bincount(bins, minlength=_N_BINS)
        self.edges = np.arange(_N_BINS + 1) * (self.top / _N_BINS)


class LatencySeries(Chart):
    """One point a token; a flag where an answer began, with the time to its first token."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("Milliseconds of each token"))
        self.data: Durations | None = None
        self.bottom = FOOT

    def set_data(self, data: Durations | None) -> None:
        self.data = data
        self.update()

    def frame_key(self) -> Hashable:
        return None if self.data is None else self.data.top

    def paint_frame(self, painter: QPainter, box: QRectF) -> None:
        if self.data is not None:
            self.paint_scale(painter, box, self.data.top, self.tr("ms"))
            self.paint_foot(painter, box, by_token())

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        data = self.data
        if data is None:
            return
        theme = current_theme()
        n = len(data.ms)
        self.paint_line(painter, box, data.ms, data.top, theme.color("accent"))
        self._paint_percentiles(painter, box, data)
        xs = [box.left() + place / n * box.width() for place, _ in data.marks]
        ends = [*xs[1:], self.width() + theme.px(6)] if xs else []  # up to where each flag's figure has room
        for (_, ttft_ms), x, next_x in zip(data.marks, xs, ends, strict=True):
            painter.setPen(QPen(theme.color("mark"), 1.5))
            painter.drawLine(QPointF(x, box.top() - theme.px(8)), QPointF(x, box.bottom()))
            text = fmt.duration(ttft_ms)
            width = painter.fontMetrics().horizontalAdvance(text) + theme.px(6)
            if x + theme.px(3) + width <= next_x:  # else the next flag would go through it
                place = QRectF(x + theme.px(3), 0, width, painter.fontMetrics().height())
                painter.drawText(place, Qt.AlignmentFlag.AlignLeft, text)

    def _paint_percentiles(self, painter: QPainter, box: QRectF, data: Durations) -> None:
        """Dotted lines; the upper ones are named at their right end, where the names do not cover each other."""
        theme, height = current_theme(), painter.fontMetrics().height()
        free_above = box.bottom()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)  # sharp, and a tenth of the time
        for value, token, name in (
            (data.p99, "danger", "99 %"),
            (data.p95, "warning", "95 %"),
            (data.p50, "text_muted", ""),
        ):
            y = box.bottom() - value / data.top * box.height()
            painter.setPen(QPen(theme.color(token), 1, Qt.PenStyle.DotLine))
            painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
            place = QRectF(box.left(), y - height, box.width(), height)
            if name and (free_above == box.bottom() or place.top() >= free_above):
                self.paint_name(painter, place, name)
                free_above = y
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)

    def describe(self, position: QPointF) -> str:
        if self.data is None or not self.box.contains(position):
            return ""
        n = len(self.data.ms)
        place = min(n - 1, int((position.x() - self.box.left()) / self.box.width() * n))
        return self.tr("Token {number} of {all}: {ms} ms").format(
            number=place + 1, all=n, ms=trimmed(float(self.data.ms[place]))
        )


class LatencyHistogram(Chart):
    """How many tokens took how long."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("How many tokens took how long"))
        self.bottom = 18
        self.data: Durations | None = None

    def set_data(self, data: Durations | None) -> None:
        self.data = data
        self.update()

    def frame_key(self) -> Hashable:
        return None if self.data is None else (self._top(self.data), self.data.top)

    @staticmethod
    def _top(data: Durations) -> float:
        return max(1.0, round_top(int(data.counts.max())))

    def paint_frame(self, painter: QPainter, box: QRectF) -> None:
        if self.data is None:
            return
        self.paint_scale(
            painter,
            box,
            self._top(self.data),
            self.tr("tokens"),
            lambda value: trimmed(value) if value == int(value) else "",
        )
        painter.setPen(current_theme().color("text_faint"))
        foot = QRectF(box.left(), box.bottom() + 2, box.width(), painter.fontMetrics().height())
        painter.drawText(foot, Qt.AlignmentFlag.AlignLeft, "0")
        painter.drawText(foot, Qt.AlignmentFlag.AlignHCenter, self.tr("ms for a token"))
        painter.drawText(foot, Qt.AlignmentFlag.AlignRight, trimmed(self.data.top))

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        data = self.data
        if data is None:
            return
        theme, top = current_theme(), self._top(data)
        width = box.width() / len(data.counts)
        painter.setPen(Qt.PenStyle.NoPen)
        bars: dict[str, list[QRectF]] = {"accent": [], "warning": [], "danger": []}
        for number, n in enumerate(data.counts.tolist()):
            if n:
                edge, height = data.edges[number], n / top * box.height()
                token = "danger" if edge >= data.p99 else "warning" if edge >= data.p95 else "accent"
                left = box.left() + number * width
                bars[token].append(QRectF(left, box.bottom() - height, max(1.0, width - 1), height))
        for token, rects in bars.items():
            painter.setBrush(theme.color(token))
            painter.drawRects(rects)

    def describe(self, position: QPointF) -> str:
        data = self.data
        if data is None or not self.box.contains(position):
            return ""
        bar = min(len(data.counts) - 1, int((position.x() - self.box.left()) / self.box.width() * len(data.counts)))
        return self.tr("{n} tokens took {low} to {high} ms").format(
            n=fmt.count(int(data.counts[bar])),
            low=trimmed(float(data.edges[bar])),
            high=trimmed(float(data.edges[bar + 1])),
        )


class PromptSpeed(Chart):
    """Tokens per second of each step that read a prompt, as bars as wide as the step was long."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("Speed of reading prompts"))
        self._rates: list[float] = []
        self._sizes: list[int] = []

    def set_data(self, rates: list[float], sizes: list[int]) -> None:
        """Tokens per second, and how many tokens each step read."""
        if (rates, sizes) != (self._rates, self._sizes):
            self._rates, self._sizes = rates, sizes
            self.update()

    def _top(self) -> float:
        return round_top(max(self._rates, default=0.0))

    def frame_key(self) -> Hashable:
        return self._top() if self._rates else None

    def paint_frame(self, painter: QPainter, box: QRectF) -> None:
        if self._rates:
            self.paint_scale(painter, box, self._top(), "")
            painter.setPen(current_theme().color("text_muted"))
            head = QRectF(0, 0, self.width(), painter.fontMetrics().height())
            painter.drawText(head, Qt.AlignmentFlag.AlignLeft, self.tr("prompts: tokens per second"))

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        if not self._rates:
            return
        theme, top = current_theme(), self._top()
        width = min(box.width() / len(self._rates), theme.px(26))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("band_attention"))
        for number, rate in enumerate(self._rates):
            height = rate / top * box.height()
            left = box.left() + number * width
            painter.drawRect(QRectF(left, box.bottom() - height, max(1.0, width - 2), height))

    def describe(self, position: QPointF) -> str:
        if not self._rates or not self.box.contains(position):
            return ""
        width = min(self.box.width() / len(self._rates), current_theme().px(26))
        number = int((position.x() - self.box.left()) / width)
        if number >= len(self._rates):
            return ""
        return self.tr("{n} tokens of a prompt at {rate}").format(
            n=fmt.count(self._sizes[number]), rate=fmt.rate(self._rates[number])
        )
