"""Horizontal bars made of named parts, with their figures."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from ui.performance.chart import Chart
from ui.theme import current_theme


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a bar; ``text`` is its figure, shown with its name in the list below the bar."""

    name: str
    value: float
    token: str
    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """Parts side by side on a scale that ends at ``whole``."""

    title: str
    parts: tuple[Part, ...]
    whole: float


class PartBars(Chart):
    """Bars one below the other, each with its title above and its parts named below."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self._bars: tuple[Bar, ...] = ()

    def set_bars(self, bars: tuple[Bar, ...]) -> None:
        if bars == self._bars:
            return
        self._bars = bars
        self.update()
        said = (f"{bar.title}: " + ", ".join(f"{part.name} {part.text}" for part in bar.parts) for bar in bars)
        self.setAccessibleDescription("; ".join(said))

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        theme = current_theme()
        line, y = theme.px(17), 0.0
        for bar in self._bars:
            painter.setPen(theme.color("text_muted"))
            painter.drawText(QRectF(0, y, self.width(), line), Qt.AlignmentFlag.AlignVCenter, bar.title)
            y += line + theme.px(2)
            self._paint_bar(painter, bar, QRectF(0, y, self.width(), theme.px(12)))
            y += theme.px(16)
            for part in bar.parts:
                self._paint_part(painter, part, QRectF(0, y, self.width(), line))
                y += line
            y += theme.px(10)

    def _paint_bar(self, painter: QPainter, bar: Bar, box: QRectF) -> None:
        theme = current_theme()
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("grid"))
        painter.drawRect(box)
        x = box.left()
        for part in bar.parts:
            width = part.value / bar.whole * box.width() if bar.whole else 0.0
            painter.setBrush(theme.color(part.token))
            painter.drawRect(QRectF(x, box.top(), width, box.height()))
            x += width

    def _paint_part(self, painter: QPainter, part: Part, box: QRectF) -> None:
        theme = current_theme()
        mark = QRectF(box.left(), box.center().y() - theme.px(4), theme.px(8), theme.px(8))
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(part.token))
        painter.drawRoundedRect(mark, 2, 2)
        middle = Qt.AlignmentFlag.AlignVCenter
        painter.setPen(theme.color("text_muted"))
        painter.drawText(box.adjusted(theme.px(14), 0, 0, 0), middle | Qt.AlignmentFlag.AlignLeft, part.name)
        painter.setPen(theme.color("text"))
        painter.drawText(box, middle | Qt.AlignmentFlag.AlignRight, part.text)

    def wanted_height(self) -> int:
        """Of all bars, in pixels."""
        theme = current_theme()
        return sum(theme.px(17) * (1 + len(bar.parts)) + theme.px(28) for bar in self._bars)

    def describe(self, position: QPointF) -> str:
        del position
        return ""
