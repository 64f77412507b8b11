"""A network before and after it is cut: one block, then shared parts and those that a router chooses among."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.theme import current_theme

_HEIGHT, _BAR = 92, 26
_GAP = 2.0


class CutPicture(QWidget):
    """Drawn from two numbers; says them to a screen reader too."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._n_experts, self._n_shared = 16, 4
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        current_theme().changed.connect(self.updateGeometry)

    def show_cut(self, n_experts: int, n_shared: int) -> None:
        self._n_experts, self._n_shared = n_experts, n_shared
        self.setAccessibleName(
            self.tr("{shared} parts work for every token, the router chooses among {routed}").format(
                shared=n_shared, routed=n_experts - n_shared
            )
        )
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(300, current_theme().px(_HEIGHT))

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        bar, width = float(theme.px(_BAR)), float(self.width())
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("pressed"))
        painter.drawRoundedRect(QRectF(0, 0, width, bar), 4, 4)
        painter.setFont(theme.font(12))
        painter.setPen(theme.color("text_muted"))
        painter.drawText(QRectF(0, 0, width, bar), int(Qt.AlignmentFlag.AlignCenter), self.tr("one network for all"))
        top = bar + theme.px(10)
        cell = width / self._n_experts
        painter.setPen(Qt.PenStyle.NoPen)
        for number in range(self._n_experts):
            painter.setBrush(theme.color("accent" if number < self._n_shared else "heat_lit"))
            gap = min(_GAP, cell / 4)
            painter.drawRoundedRect(QRectF(number * cell + gap / 2, top, cell - gap, bar), 3, 3)
        border = self._n_shared * cell
        painter.setPen(QPen(theme.color("text_muted"), 1))
        y = top + bar + theme.px(4)
        height = self.height() - y
        for left, right, text in (
            (0.0, border, self.tr("{n} shared").format(n=self._n_shared)),
            (border, width, self.tr("{n} that the router chooses among").format(n=self._n_experts - self._n_shared)),
        ):
            box = QRectF(QPointF(left, y), QPointF(right, y + height))
            shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, int(right - left))
            painter.drawText(box, int(Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop), shown)
