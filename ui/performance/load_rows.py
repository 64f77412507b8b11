"""One line for each worker or core: its name, how busy it is as a bar, and the figure."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from ui.performance.chart import Chart
from ui.theme import current_theme

_ROW, _NAME, _FIGURE = 19, 74, 44  # lengths at the base text size


@dataclass(frozen=True, slots=True)
class Load:
    """Shares of a core's time, 0 to 1: (share, colour's token), from the left. ``name`` alone is a heading."""

    name: str
    shares: tuple[tuple[float, str], ...] = ()


class LoadRows(Chart):
    """Rows of :class:`Load`; the figure is the first share."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(name, parent)
        self._loads: tuple[Load, ...] = ()

    def set_loads(self, loads: tuple[Load, ...]) -> None:
        self._loads = loads
        said = (f"{load.name} {load.shares[0][0]:.0%}" for load in loads if load.shares)
        self.setAccessibleDescription(", ".join(said))
        self.setMinimumHeight(len(loads) * current_theme().px(_ROW))
        self.update()

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        theme = current_theme()
        row, name, figure = theme.px(_ROW), theme.px(_NAME), theme.px(_FIGURE)
        middle = Qt.AlignmentFlag.AlignVCenter
        for number, load in enumerate(self._loads):
            line = QRectF(0, number * row, self.width(), row)
            painter.setPen(theme.color("text_muted" if load.shares else "text"))
            painter.drawText(line, middle | Qt.AlignmentFlag.AlignLeft, load.name)
            if not load.shares:
                continue
            bar = QRectF(name, line.top() + row * 0.25, line.width() - name - figure, row * 0.5)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("grid"))
            painter.drawRect(bar)
            x = bar.left()
            for share, token in load.shares:
                painter.setBrush(theme.color(token))
                painter.drawRect(QRectF(x, bar.top(), share * bar.width(), bar.height()))
                x += share * bar.width()
            painter.setPen(theme.color("text"))
            painter.drawText(line, middle | Qt.AlignmentFlag.AlignRight, f"{load.shares[0][0] * 100:.0f} %")
