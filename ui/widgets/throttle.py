"""Calls a function at most every so often, and always once more after the last request."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from PySide6.QtCore import QObject, QTimer

_LOAD = 6  # a call that took t is not repeated before LOAD * t has passed


class Throttle(QObject):
    """Runs ``call`` soon after ``request()``, at most every ``interval_ms`` and never for more than 1/7 of the time."""

    def __init__(self, call: Callable[[], object], interval_ms: int, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._call = call
        self._interval_ms = interval_ms
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._run)
        self._next_at = 0.0

    def request(self) -> None:
        """Ask for a call; several requests before it happens become one."""
        if not self._timer.isActive():
            self._timer.start(max(0, round((self._next_at - perf_counter()) * 1000)))

    def flush(self) -> None:
        """Make a requested call now."""
        if self._timer.isActive():
            self._timer.stop()
            self._run()

    def _run(self) -> None:
        started = perf_counter()
        self._call()
        ended = perf_counter()
        self._next_at = ended + max(self._interval_ms / 1000, (ended - started) * _LOAD)
