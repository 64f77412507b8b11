"""The expert cache: what was there, what had to be read, and how long that took."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QWidget

from ui import format as fmt
from ui.performance.chart import FOOT, Chart, round_top
from ui.performance.panel import LivePanel
from ui.performance.step_feed import StepFeed
from ui.theme import current_theme

if TYPE_CHECKING:
    from engine.steps import Steps

_MOST_STEPS = 160


class CacheChart(Chart):
    """A column a token: how many of its experts had to be read."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("Experts read from the file for each token"))
        self._steps: Steps | None = None
        self._most, self._top = 0, 4.0
        self.bottom = FOOT

    def set_data(self, steps: Steps) -> None:
        self._steps = steps
        self._most = int(steps.expert_loads.max()) if len(steps) else 0
        self._top = round_top(max(4.0, self._most))
        self.update()

    def frame_key(self) -> Hashable:
        return None if self._steps is None else self._top

    def paint_frame(self, painter: QPainter, box: QRectF) -> None:
        if self._steps is not None and len(self._steps):
            self.paint_scale(painter, box, self._top, self.tr("read"))
            self.paint_foot(painter, box, self.tr("experts read per token"))

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        steps = self._steps
        if steps is None or not len(steps):
            return
        theme, top = current_theme(), self._top
        if self._most == 0:
            painter.setPen(theme.color("text_muted"))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, self.tr("Every expert was in memory"))
            return
        width = box.width() / len(steps)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, on=False)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("band_disk"))
        left, bottom, scale, bar = box.left(), box.bottom(), box.height() / top, max(1.0, width - 1)
        loads = steps.expert_loads.tolist()
        painter.drawRects(
            [QRectF(left + i * width, bottom - n * scale, bar, n * scale) for i, n in enumerate(loads) if n]
        )

    def describe(self, position: QPointF) -> str:
        steps = self._steps
        if steps is None or not len(steps) or not self.box.contains(position):
            return ""
        n = len(steps)
        place = min(n - 1, int((position.x() - self.box.left()) / self.box.width() * n))
        used, read = int(steps.experts_used[place]), int(steps.expert_loads[place])
        return self.tr("{found} experts were in memory, {read} were read ({size})").format(
            found=max(0, used - read), read=read, size=fmt.size(int(steps.disk_bytes[place]))
        )


class CachePanel(LivePanel):
    """Hits, misses and bytes read; a dense model has nothing of the kind."""

    def __init__(self, feed: StepFeed, parent: QWidget | None = None) -> None:
        super().__init__(feed, "", parent)
        self.title = self.tr("Expert cache")
        self.setAccessibleName(self.title)
        self.help_text = self.tr(
            "Each column is one token, as high as the number of experts that had to be read from the file for it; no "
            "column means that all were in memory. After a model is opened each expert is read once. Columns that go "
            "on mean that the cache is too small for this conversation: each read makes its token late."
        )
        self.help_text += " " + self.tr(
            "While experts come from the disk, those that the next layer will probably need are asked for in advance: "
            "how many of the needed ones had been foreseen, and how many were asked for in vain, stands below."
        )
        self.chart = CacheChart(self)
        self.column.addWidget(self.chart, 1)

    def has_data(self) -> bool:
        return super().has_data() and self.feed.steps is not None and bool(self.feed.steps.experts_used.any())

    def absence(self) -> tuple[str, str]:
        if super().has_data():
            text = self.tr("It is a dense model: all of its weights stay in memory, and nothing is read for a token.")
            return self.tr("This model has no experts"), text
        return super().absence()

    def show_steps(self) -> None:
        steps = self.feed.steps
        assert steps is not None
        tokens = steps.chosen(steps.is_decode)  # a prompt's steps need nearly all experts, and would hide the others
        self.chart.set_data((tokens if len(tokens) else steps).chosen(slice(-_MOST_STEPS, None)))
        used, read = int(steps.experts_used.sum()), int(steps.expert_loads.sum())
        waited_ms = float(self._disk_us(steps)) / 1e3
        text = self.tr("{share} % found in memory · {read} read, {size}, {time} waited · {evicted} gave way")
        asked = int(steps.experts_asked.sum())
        self.summary.setText(
            text.format(
                share=f"{100 * (1 - min(read, used) / used):.1f}",
                read=fmt.count(read),
                size=fmt.size(int(steps.disk_bytes.sum())),
                time=fmt.duration(waited_ms),
                evicted=fmt.count(int(steps.expert_evictions.sum())),
            )
            + (f" · {self._foresight(steps, asked)}" if asked else "")
        )

    def _foresight(self, steps: Steps, asked: int) -> str:
        text = self.tr("{recall} % foreseen · {asked} asked for ahead, {wasted} % in vain")
        judged = max(1, int(steps.asked_used.sum() + steps.asked_unused.sum()))
        return text.format(
            recall=f"{100 * int(steps.experts_foreseen.sum()) / max(1, int(steps.experts_foreseeable.sum())):.0f}",
            asked=fmt.count(asked),
            wasted=f"{100 * int(steps.asked_unused.sum()) / judged:.0f}",
        )

    @staticmethod
    def _disk_us(steps: Steps) -> float:
        from engine.steps import BANDS  # noqa: PLC0415

        return float(steps.bands_us[:, BANDS.index("disk")].sum())
