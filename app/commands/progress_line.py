"""A job's progress as one line on standard error: redrawn in a terminal, a line per phase elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self, TextIO

from app.jobs import Job

_DELAY_S = 0.3  # what is over sooner is not worth a line
_DELAY_IN_LOGS_S = 2.0  # a line in a file stays for good
_REDRAW_S = 0.1
_BAR_WIDTH = 24
_ERASE = "\r\x1b[K"


class ProgressLine:
    """Shows a job while the `with` block lasts, and leaves a clean line behind."""

    def __init__(self, job: Job, stream: TextIO | None = None) -> None:
        self._job = job
        self._stream = stream or sys.stderr
        self._is_terminal = self._stream.isatty()
        self._shown_from_s = time.monotonic() + (_DELAY_S if self._is_terminal else _DELAY_IN_LOGS_S)
        self._drawn_s = 0.0
        self._phase = ""
        self._stop_listening = job.on_change(self._changed)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Erase the line and draw no more."""
        self._stop_listening()
        if self._is_terminal and self._drawn_s:
            self._drawn_s = 0.0
            self._stream.write(_ERASE)
            self._stream.flush()

    def _changed(self, job: Job) -> None:
        now_s = time.monotonic()
        if job.is_finished or now_s < self._shown_from_s or not job.phase:
            return
        if self._is_terminal and now_s - self._drawn_s >= _REDRAW_S:
            self._drawn_s = now_s
            self._stream.write(_ERASE + describe(job))
        elif not self._is_terminal and job.phase != self._phase:
            self._phase = job.phase
            self._stream.write(f"{job.name}: {job.phase} ...\n")
        self._stream.flush()


def describe(job: Job) -> str:
    """One line: phase, bar, amount, rate, time left; only what is known."""
    parts = [f"{job.phase}"]
    fraction = job.fraction
    if fraction is not None:
        filled = round(fraction * _BAR_WIDTH)
        parts.append(f"[{'#' * filled}{'.' * (_BAR_WIDTH - filled)}] {fraction:4.0%}")
    if job.done_bytes is not None and job.total_bytes:
        parts.append(f"{job.done_bytes / 1e6:.0f} of {job.total_bytes / 1e6:.0f} MB")
    if job.rate_bytes_per_second:
        parts.append(f"{job.rate_bytes_per_second / 1e6:.1f} MB/s")
    if job.seconds_left is not None and job.seconds_left >= 1:
        parts.append(f"{job.seconds_left:.0f} s left")
    return "  ".join(parts)
