"""Reads the engine's steps once for all panels that are visible; while none is, it does nothing at all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from PySide6.QtCore import QObject, QTimer, Signal

if TYPE_CHECKING:
    from engine.steps import Steps

POLL_MS = 250  # all panels are painted anew this often: at 160 ms they took 12 % of a busy machine's core
KEPT_STEPS = 512


class StepSource(Protocol):
    """What is read: the engine's telemetry, or a recording."""

    @property
    def n_steps(self) -> int:
        """Steps noted so far."""

    def steps(self, after: int = 0) -> Steps:
        """The newest steps whose number is above `after`."""


class StepFeed(QObject):
    """Emits ``changed`` when there are new steps, ``idle`` four times a second whether or not there are.

    A panel says with :meth:`attach` and :meth:`detach` that it is visible or is not any more.
    """

    changed = Signal()
    idle = Signal()

    def __init__(
        self, source: Callable[[], StepSource | None], parent: QObject | None = None, *, kept: int = KEPT_STEPS
    ) -> None:
        super().__init__(parent)
        self._kept = kept
        self._source_of = source
        self._attached: set[object] = set()
        self.source: StepSource | None = None
        self.steps: Steps | None = None  # the newest ones
        self.n_read = 0
        self.is_time_for_figures = True  # while ``changed`` is told: charts move each time, figures every other time
        self._owes_figures = True
        self.timer = QTimer(self)
        self.timer.setInterval(POLL_MS)
        self.timer.timeout.connect(self.poll)

    def attach(self, panel: object) -> None:
        self._attached.add(panel)
        self._owes_figures = True
        self.poll()
        self.timer.start()

    def detach(self, panel: object) -> None:
        self._attached.discard(panel)
        if not self._attached:
            self.timer.stop()

    def poll(self) -> None:
        """Look for new steps, or another model."""
        source = self._source_of()
        if source is not self.source:
            self.source, self.steps, self.n_read = source, None, 0
            self._owes_figures = True
            self.changed.emit()
        has_fresh = source is not None and source.n_steps != self.n_read
        if source is not None and has_fresh:
            fresh = source.steps(self.n_read)
            self.n_read = int(fresh.numbers[-1]) if len(fresh) else source.n_steps
            newest = fresh.chosen(slice(-self._kept, None))
            self.steps = newest if self.steps is None else self.steps.joined(fresh, self._kept)
        if has_fresh or (self._owes_figures and self.steps is not None):
            self.is_time_for_figures = self._owes_figures
            self._owes_figures = not self._owes_figures
            self.changed.emit()
        self.idle.emit()

    def recent(self, seconds: float) -> Steps | None:
        """The steps that began within the last `seconds`."""
        if self.steps is None:
            return None
        return self.steps.chosen(self.steps.began_s > time.perf_counter() - seconds)
