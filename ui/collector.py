"""Collects garbage on the main thread only: Qt objects must not die on a worker thread."""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer

_INTERVAL_MS = 1000


class MainThreadCollector(QObject):
    """Turns automatic collection off; collects young objects every second, old ones when many have gathered."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thresholds = gc.get_threshold()
        gc.disable()
        self._timer = QTimer(self)
        self._timer.setInterval(_INTERVAL_MS)
        self._timer.timeout.connect(self.check)
        self._timer.start()

    def settle(self) -> None:
        """Take what exists after the start out of every later collection, so that those stay short."""
        gc.freeze()

    def check(self) -> None:
        """Collect the oldest generation that is due."""
        counts = gc.get_count()
        for generation in (2, 1, 0):
            if counts[generation] > self._thresholds[generation]:
                gc.collect(generation)
                return

    def stop(self) -> None:
        """Give collection back to the interpreter."""
        self._timer.stop()
        gc.enable()
