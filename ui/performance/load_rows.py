"""One line for each worker or core: its name, how busy it is as a bar, and the figure."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QFontMetricsF, QPainter, QResizeEvent
from PySide6.QtWidgets import QWidget

from ui.performance.chart import Chart
from ui.theme import current_theme

_ROW, _NAME, _FIGURE, _GAP, _MARK = 19, 74, 44, 10, 8  # lengths at the base text size


@dataclass(frozen=True, slots=True)
class Load:
    """Shares of a core's time, 0 to 1: (share, colour's token), from the left.

    Without shares it is a heading; its ``legend`` says what colours mean: (name, colour's token).
    """

    name: str
    shares: tuple[tuple[float, str], ...] = ()
    legend: tuple[tuple[str, str], ...] = ()


class LoadRows(Chart):
    """Rows of :class:`Load`; the figure is the first share."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self._loads: tuple[Load, ...] = ()

    def set_loads(self, loads: tuple[Load, ...]) -> None:
        if loads == self._loads:
            return
        self._loads = loads
        said = (f"{load.name} {load.shares[0][0]:.0%}" for load in loads if load.shares)
        self.setAccessibleDescription(", ".join(said))
        self._set_height()
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._set_height()

    def _set_height(self) -> None:
        lines = self._lines()
        self.setMinimumHeight(round(lines[-1].bottom()) if lines else 0)

    def frame_key(self) -> Hashable:
        return tuple((load.name, not load.shares) for load in self._loads)

    def paint_frame(self, painter: QPainter, box: QRectF) -> None:
        theme = current_theme()
        for load, line in zip(self._loads, self._lines(), strict=True):
            painter.setPen(theme.color("text_muted" if load.shares else "text"))
            row = QRectF(line.left(), line.top(), line.width(), theme.px(_ROW))
            painter.drawText(row, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, load.name)
            if load.shares:
                painter.fillRect(self._bar(line), theme.color("grid"))
            else:
                self._paint_legend(painter, load, row.translated(0, line.height() - row.height()))

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        theme = current_theme()
        painter.setPen(theme.color("text"))
        for load, line in zip(self._loads, self._lines(), strict=True):
            if not load.shares:
                continue
            bar = self._bar(line)
            x = bar.left()
            for share, token in load.shares:
                painter.fillRect(QRectF(x, bar.top(), share * bar.width(), bar.height()), theme.color(token))
                x += share * bar.width()
            right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
            painter.drawText(line, right, f"{load.shares[0][0] * 100:.0f} %")

    def _lines(self) -> list[QRectF]:
        """Where each load stands; above a heading there is some room, and below it a line more for a long legend."""
        theme = current_theme()
        row, lines, y = theme.px(_ROW), list[QRectF](), 0.0
        for number, load in enumerate(self._loads):
            is_heading = not load.shares
            y += theme.px(_GAP) if is_heading and number else 0
            height = 2 * row if is_heading and not self._fits(load) else row
            lines.append(QRectF(0, y, self.width(), height))
            y += height
        return lines

    def _fits(self, load: Load) -> bool:
        """Whether a heading and its legend have room side by side."""
        theme, metrics = current_theme(), QFontMetricsF(current_theme().font(11))
        legend = sum(metrics.horizontalAdvance(name) + theme.px(_MARK + 16) for name, _ in load.legend)
        return not load.legend or metrics.horizontalAdvance(load.name) + theme.px(10) + legend <= self.width()

    def _bar(self, line: QRectF) -> QRectF:
        theme = current_theme()
        name, figure, row = theme.px(_NAME), theme.px(_FIGURE), line.height()
        return QRectF(name, line.top() + row * 0.25, line.width() - name - figure, row * 0.5)

    def _paint_legend(self, painter: QPainter, load: Load, line: QRectF) -> None:
        theme, size = current_theme(), current_theme().px(_MARK)
        right = line.right()
        for name, token in reversed(load.legend):
            left = right - painter.fontMetrics().horizontalAdvance(name)
            painter.setPen(theme.color("text_muted"))
            text = QRectF(left, line.top(), right - left, line.height())
            painter.drawText(text, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, name)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(token))
            painter.drawRoundedRect(QRectF(left - size - theme.px(5), line.center().y() - size / 2, size, size), 2, 2)
            right = left - size - theme.px(16)
