"""A recording as panels show it: the same charts as live, over all of its tokens."""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QBuffer, QIODevice, QPoint, QRect, QSize
from PySide6.QtGui import QPainter
from PySide6.QtSvg import QSvgGenerator
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from ui.performance.bandwidth_panel import BandwidthPanel
from ui.performance.cache_panel import CachePanel
from ui.performance.latency_panel import LatencyPanel
from ui.performance.panel import LivePanel
from ui.performance.step_feed import StepFeed
from ui.performance.time_panel import TimePanel
from ui.theme import current_theme

if TYPE_CHECKING:
    from app.recording import Recording
    from engine.steps import Steps

_MOST_STEPS = 1 << 16


class RecordedSource:
    """A recording where panels expect an engine's telemetry."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self.limit_bytes_per_s = recording.weight_limit_bytes_per_s

    @property
    def n_steps(self) -> int:
        return self._recording.n_steps

    def steps(self, after: int = 0) -> Steps:
        return self._recording.steps_after(after)


class RecordedView(QWidget):
    """Latency and time side by side, bandwidth and cache below; :meth:`save_picture` makes a file of it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._source: RecordedSource | None = None
        self.feed = StepFeed(lambda: self._source, kept=_MOST_STEPS)
        self.latency, self.time = LatencyPanel(self.feed, self), TimePanel(self.feed, self)
        self.bandwidth, self.cache = BandwidthPanel(self.feed, 1, self, limit=self._limit), CachePanel(self.feed, self)
        self.bandwidth.measure.hide()
        self.time.most_tokens = _MOST_STEPS
        rows = QVBoxLayout(self)
        rows.setContentsMargins(0, 0, 0, 0)
        for left, right, share in ((self.latency, self.time, 3), (self.bandwidth, self.cache, 2)):
            row = QHBoxLayout()
            for panel in (left, right):
                row.addLayout(self._titled(panel), 1)
            rows.addLayout(row, share)

    def _titled(self, panel: LivePanel) -> QVBoxLayout:
        """A panel below its name, which a dock would show."""
        title = QLabel(panel.title, self)
        title.setProperty("tone", "strong")
        title.setContentsMargins(14, 4, 0, 0)
        title.setToolTip(f"<p style='white-space: normal;'>{html.escape(panel.help_text)}</p>")  # rich text is wrapped
        column = QVBoxLayout()
        column.setSpacing(0)
        column.addWidget(title)
        column.addWidget(panel, 1)
        return column

    def _limit(self) -> float:
        return 0.0 if self._source is None else self._source.limit_bytes_per_s

    def show_recording(self, recording: Recording) -> None:
        """Show another recording."""
        self._source = RecordedSource(recording)
        self.bandwidth.limit_bytes_per_s = recording.weight_limit_bytes_per_s
        self.feed.poll()
        self.feed.timer.stop()  # it does not change

    def save_picture(self, path: Path) -> None:
        """An SVG or PNG file, by the path's ending. Raises OSError."""
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        if path.suffix.lower() == ".svg":
            self._draw_svg(buffer)
        else:
            self.grab().save(buffer, "PNG")
        path.write_bytes(buffer.data().data())

    def _draw_svg(self, target: QIODevice) -> None:
        generator = QSvgGenerator()
        generator.setOutputDevice(target)
        generator.setSize(QSize(self.width(), self.height()))
        generator.setViewBox(QRect(0, 0, self.width(), self.height()))
        generator.setTitle(self.tr("A recording of Colibri"))
        painter = QPainter(generator)
        painter.fillRect(self.rect(), current_theme().color("window"))
        self.render(painter, QPoint())
        painter.end()
