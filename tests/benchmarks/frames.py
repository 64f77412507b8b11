"""Asks the conversation for 60 frames a second, and notes when each is painted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, Qt, QTimer

from ui.chat.conversation_view import ConversationView

FRAME_MS = 1000 / 60
_TICK_MS = 16
_SCROLLED_PX = 24  # a frame: a quick look through what has been said


@dataclass(frozen=True, slots=True)
class FrameTimes:
    """Milliseconds from each frame to the next."""

    ms: list[float]

    @classmethod
    def joined(cls, parts: Sequence[FrameTimes]) -> FrameTimes:
        return cls([ms for part in parts for ms in part.ms])

    def percentile(self, percent: float) -> float:
        """The time within which so many of the frames came."""
        ordered = sorted(self.ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]

    def __str__(self) -> str:
        figures = ", ".join(f"{name} {self.percentile(percent):.1f}" for name, percent in _NAMED)
        missed = sum(ms >= 2 * FRAME_MS for ms in self.ms)
        return f"{1000 * len(self.ms) / sum(self.ms):.1f}/s; ms from one to the next: {figures}; {missed} missed"


_NAMED = (("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("max", 100.0))


class Frames(QObject):
    """Has a strip of the conversation painted in each frame, or scrolls it up and down."""

    def __init__(self, view: ConversationView, *, scrolls: bool) -> None:
        super().__init__(view)
        self._view, self._scrolls = view, scrolls
        self._direction = -1
        self._is_asked = False
        self._painted_s: list[float] = []
        view.window().installEventFilter(self)
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._timer.start(_TICK_MS)

    def end(self) -> FrameTimes:
        """Ask for no more; returns how they came."""
        self._timer.stop()
        self._view.window().removeEventFilter(self)
        times = [1000 * (after - before) for before, after in zip(self._painted_s, self._painted_s[1:], strict=False)]
        self.deleteLater()
        return FrameTimes(times)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.UpdateRequest and self._is_asked:
            self._is_asked = False
            self._painted_s.append(time.perf_counter())
        return super().eventFilter(watched, event)

    def _tick(self) -> None:
        self._is_asked = True
        viewport, bar = self._view.viewport(), self._view.verticalScrollBar()
        if not self._scrolls:
            viewport.update(0, 0, viewport.width(), 1)
            return
        if bar.value() <= bar.minimum():
            self._direction = 1
        elif bar.value() >= bar.maximum() - 2 * _SCROLLED_PX:
            self._direction = -1
        bar.setValue(bar.value() + self._direction * _SCROLLED_PX)
