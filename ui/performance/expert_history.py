"""When an expert was called: one mark for each of the newest tokens, and its share over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPen
from PySide6.QtWidgets import QWidget

from ui.performance.chart import Chart
from ui.theme import current_theme

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from engine.steps import Steps

_SMOOTH = 24  # tokens over which the share is taken


class ExpertHistory(Chart):
    """The history of one pinned expert."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("History of the pinned expert"))
        self.left, self.top, self.bottom = 6, 22, 12
        self._called: NDArray[np.bool_] | None = None  # (n,), for each of the newest steps
        self._title = ""

    @property
    def called(self) -> NDArray[np.bool_] | None:
        """(n,) bool: whether each of the newest steps' last token went to the expert."""
        return self._called

    def set_data(self, steps: Steps | None, row: int, expert: int, layers: Sequence[int]) -> None:
        """The expert `expert` of the MoE layer in place `row` of `layers`."""
        self._called = None if steps is None else (steps.routes[:, row] == expert).any(1)
        n = 0 if self._called is None else len(self._called)
        n_called = 0 if self._called is None else int(self._called.sum())
        self._title = self.tr("Layer {layer}, expert {expert}: called by {n} of the last {all} tokens").format(
            layer=layers[row], expert=expert, n=n_called, all=n
        )
        self.setAccessibleDescription(self._title)
        self.update()

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

        theme = current_theme()
        painter.setPen(theme.color("text_muted"))
        painter.drawText(QRectF(box.left(), 0, box.width(), theme.px(18)), Qt.AlignmentFlag.AlignVCenter, self._title)
        if self._called is None or not len(self._called):
            return
        n = len(self._called)
        share = np.convolve(self._called, np.ones(_SMOOTH) / _SMOOTH)[:n]
        painter.setPen(QPen(theme.color("grid"), 1))
        painter.drawLine(box.bottomLeft(), box.bottomRight())
        self.paint_line(painter, box, share, max(0.05, float(share.max()) * 1.1), theme.color("accent"))
        painter.setPen(QPen(theme.color("heat_lit"), max(1.0, min(3.0, box.width() / n - 1))))
        for place in self._called.nonzero()[0].tolist():
            x = box.left() + (place + 0.5) / n * box.width()
            painter.drawLine(QPointF(x, box.bottom() + 2), QPointF(x, box.bottom() + theme.px(9)))
