"""Notices when the event loop stood still, for the log and for tests."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable

from PySide6.QtCore import QObject, Qt, QTimer

log = logging.getLogger(__name__)

STALL_MS = 50.0
BEAT_MS = 10
SELDOM_MS = 40  # a beat takes some 0.1 ms of a core on which an engine's worker computes
_LOOK_EVERY_S = 0.02
_DEEPEST = 12


def _stack_of(thread: int) -> list[traceback.FrameSummary]:
    """Where a thread is. Frames are let go at once: a painter in one of them must end when its function does."""
    frame, places = sys._current_frames().get(thread), list[tuple[str, int, str]]()
    while frame is not None and len(places) < _DEEPEST:
        places.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    del frame
    return [traceback.FrameSummary(*place) for place in reversed(places)]


class StallWatch(QObject):
    """Beats every `beat_ms`; a beat that comes more than 50 ms late is a stall.

    A stall that begins between two beats is taken for that much shorter.

    With each stall goes how much processor time this thread used in it: a stall with little of it was not our
    code, but a lock or a busy machine.
    """

    def __init__(
        self,
        on_stall: Callable[[float, float], object] | None = None,
        parent: QObject | None = None,
        *,
        beat_ms: int = BEAT_MS,
    ) -> None:
        super().__init__(parent)
        self._beat_ms = beat_ms
        self._on_stall = on_stall
        self.worst_ms = 0.0
        self.n_stalls = 0
        self._is_stopped = threading.Event()
        self._last_s = time.perf_counter()
        self._last_cpu_s = time.thread_time()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.setInterval(beat_ms)
        self._timer.timeout.connect(self._beat)
        self._timer.start()

    def trace(self) -> None:
        """From now on also log where the main thread was during a stall; costs a little, so only on request."""
        main = threading.get_ident()

        def look() -> None:
            traced_s = 0.0
            while not self._is_stopped.wait(_LOOK_EVERY_S):
                last_s = self._last_s
                if last_s != traced_s and (time.perf_counter() - last_s) * 1000 > STALL_MS + self._beat_ms:
                    traced_s = last_s
                    log.warning("stalled at:\n%s", "".join(traceback.format_list(_stack_of(main))))

        threading.Thread(target=look, name="stall trace", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer."""
        self._timer.stop()
        self._is_stopped.set()

    def _beat(self) -> None:
        now_s, cpu_s = time.perf_counter(), time.thread_time()
        late_ms = (now_s - self._last_s) * 1000 - self._beat_ms
        used_ms = (cpu_s - self._last_cpu_s) * 1000
        self._last_s, self._last_cpu_s = now_s, cpu_s
        self.worst_ms = max(self.worst_ms, late_ms)
        if late_ms > STALL_MS:
            self.n_stalls += 1
            log.info("the event loop stood still for %.0f ms (%.0f ms of them computing)", late_ms, used_ms)
            if self._on_stall is not None:
                self._on_stall(late_ms, used_ms)
