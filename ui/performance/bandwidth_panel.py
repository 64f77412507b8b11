"""How fast weights are read from memory, against what this machine was measured to give."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QHideEvent, QPainter, QPen
from PySide6.QtWidgets import QPushButton, QWidget

from engine.errors import ColibriError
from ui.performance.chart import FOOT, Chart, by_token, round_top, trimmed
from ui.performance.panel import LivePanel
from ui.performance.step_feed import StepFeed
from ui.theme import current_theme

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from engine.steps import Steps

log = logging.getLogger(__name__)

_MOST_TOKENS = 240
_GB = 1e9
_HEADROOM = 1.08
_FROM_CACHE_PERCENT = 105


def _measure_limit(n_threads: int) -> float:
    """The memory's speed in bytes per second, which is kept; takes a while, the import included."""
    from app.machine_speeds import MachineSpeeds, speeds_file  # noqa: PLC0415
    from engine.hardware.memory_speed import measure_memory  # noqa: PLC0415

    speed = measure_memory(n_threads)
    MachineSpeeds.load(speeds_file()).with_memory(speed).save(speeds_file())
    return speed.median


def kept_limit() -> float:
    """What this machine's memory was measured to give, in bytes per second; 0: it was not measured yet."""
    from app.machine_speeds import MachineSpeeds, speeds_file  # noqa: PLC0415  (loads NumPy)

    memory = MachineSpeeds.load(speeds_file()).memory
    return 0.0 if memory is None else memory.median


def read_rates(steps: Steps) -> NDArray[np.float64]:
    """(n,) bytes of weights per second while the team worked, of the steps that decoded."""
    import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

    decoded = steps.is_decode
    return steps.weight_bytes[decoded] / np.maximum(steps.run_us[decoded], 1e-3) * 1e6


class BandwidthChart(Chart):
    """Gigabytes per second of each token, below the line of the machine's limit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("Gigabytes of weights read per second"))
        self._rates: list[float] = []
        self.limit = 0.0
        self.bottom = FOOT

    def set_data(self, rates: list[float], limit: float) -> None:
        """In bytes per second; limit 0: not measured."""
        self._rates, self.limit = rates, limit
        self.update()

    def _top(self) -> float:
        return round_top(max(self.limit, *self._rates) / _GB * _HEADROOM)

    def frame_key(self) -> Hashable:
        return self._top() if self._rates else None

    def paint_frame(self, painter: QPainter, box: QRectF) -> None:
        if self._rates:
            self.paint_scale(painter, box, self._top(), "GB/s")
            self.paint_foot(painter, box, by_token())

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        if not self._rates:
            return
        import numpy as np  # noqa: PLC0415

        theme, top = current_theme(), self._top()
        self.paint_line(painter, box, np.array(self._rates) / _GB, top, theme.color("accent"))
        if self.limit:
            y = box.bottom() - self.limit / _GB / top * box.height()
            painter.setPen(QPen(theme.color("mark"), 1.4, Qt.PenStyle.DashLine))
            painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
            text = self.tr("limit {rate} GB/s").format(rate=trimmed(self.limit / _GB))
            height = painter.fontMetrics().height()
            self.paint_name(painter, QRectF(box.left(), y - height - 1, box.width(), height - 1), text)

    def describe(self, position: QPointF) -> str:
        if not self._rates or not self.box.contains(position):
            return ""
        n = len(self._rates)
        rate = self._rates[min(n - 1, int((position.x() - self.box.left()) / self.box.width() * n))]
        return self.tr("{rate} GB/s").format(rate=f"{rate / _GB:.2f}")


class BandwidthPanel(LivePanel):
    """The limit is measured when the user asks for it: it takes the whole memory for a moment."""

    def __init__(
        self,
        feed: StepFeed,
        n_threads: int,
        parent: QWidget | None = None,
        *,
        limit: Callable[[], float] = kept_limit,
    ) -> None:
        """`limit` is asked whenever the panel comes into view: the system check measures it, too."""
        super().__init__(feed, "", parent)
        self.title = self.tr("Memory bandwidth")
        self.setAccessibleName(self.title)
        self.help_text = self.tr(
            "Every token needs all weights that serve it, once, from memory. The line is how many gigabytes of them "
            "the engine read per second. The dashed line is what this machine's memory can give, once measured. A line "
            "close to it: only smaller weights or faster memory would help. Far below it: the processor is the limit."
        )
        self.chart = BandwidthChart(self)
        self.measure = QPushButton(self.tr("Measure this machine's limit"), self)
        self.measure.setToolTip(self.tr("Reads memory at full speed for a moment; best while nothing else runs"))
        self.measure.clicked.connect(self._on_measure)
        self.column.addWidget(self.chart, 1)
        self.column.addWidget(self.measure, 0, Qt.AlignmentFlag.AlignLeft)
        self.limit_bytes_per_s: float | None = None  # None: not looked up yet
        self._limit = limit
        self._n_threads = n_threads
        self._task: asyncio.Task[None] | None = None

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.limit_bytes_per_s = None

    def show_steps(self) -> None:
        steps = self.feed.steps
        assert steps is not None
        rates = read_rates(steps)[-_MOST_TOKENS:].tolist()
        if self.limit_bytes_per_s is None:
            self.limit_bytes_per_s = self._limit()
        self.chart.set_data(rates, self.limit_bytes_per_s)
        if not rates:
            self.summary.setText("")
            return
        if not self.feed.is_time_for_figures:
            return
        newest = rates[-32:]
        rate = sorted(newest)[len(newest) // 2]
        text = self.tr("{rate} GB/s of weights").format(rate=f"{rate / _GB:.1f}")
        if self.limit_bytes_per_s:
            share = 100 * rate / self.limit_bytes_per_s
            if share > _FROM_CACHE_PERCENT:
                text += " · " + self.tr("more than the memory can give: much of it stays in the processor's cache")
            else:
                text += " · " + self.tr("{share} % of what the memory can give").format(share=f"{share:.0f}")
        self.summary.setText(text)

    def _on_measure(self) -> None:
        self.measure.setEnabled(False)
        self._task = asyncio.ensure_future(self._measure())

    async def _measure(self) -> None:
        try:
            loop = asyncio.get_running_loop()
            self.limit_bytes_per_s = await loop.run_in_executor(None, _measure_limit, self._n_threads)
        except (ColibriError, MemoryError, OSError) as error:
            log.warning("the memory's speed cannot be measured: %s", error)
            self.summary.setText(self.tr("There is too little free memory to measure with."))
        else:
            self._on_changed()
        finally:
            self.measure.setEnabled(True)
