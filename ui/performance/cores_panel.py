"""How busy the engine's workers and the machine's cores are."""

from __future__ import annotations

import os

import psutil
from PySide6.QtWidgets import QScrollArea, QWidget

from engine.hardware.system_files import cpu_list_text
from ui.performance.load_rows import Load, LoadRows
from ui.performance.panel import LivePanel
from ui.performance.step_feed import StepFeed

_WINDOW_S = 1.0
_EVERY_POLLS = 2  # the system is asked twice a second


class CoresPanel(LivePanel):
    """A bar for each worker over the last second, then one for each of the machine's cores."""

    def __init__(self, feed: StepFeed, parent: QWidget | None = None) -> None:
        super().__init__(feed, "", parent)
        self.title = self.tr("Cores")
        self.setAccessibleName(self.title)
        self.help_text = self.tr(
            "Above, what each of the engine's workers did in the last second: busy with the model, waiting for the "
            "other workers while a token was computed, or without work. Below, how busy each core of the machine is "
            "with all programs together. Busy cores while no answer is written belong to other programs."
        )
        self.rows = LoadRows(self.tr("Load of workers and cores"), self)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidget(self.rows)
        self.column.addWidget(area, 1)
        self._n_polls = 0
        self._loads: list[float] = []
        feed.idle.connect(self._on_idle)

    def has_data(self) -> bool:
        return self.feed.source is not None

    def _on_changed(self) -> None:
        if not self.isVisible():
            return
        if not self.has_data() or not self.is_showing_data:
            super()._on_changed()

    def _on_idle(self) -> None:
        self._n_polls += 1
        if self.isVisible() and self.has_data() and self._n_polls % _EVERY_POLLS == 0:
            self.show_steps()

    def show_steps(self) -> None:
        self.rows.set_loads((*self._workers(), *self._cores()))
        self.summary.setText(" · ".join(part for part in (self._frequency(), self._places()) if part))

    def _workers(self) -> list[Load]:
        steps = self.feed.recent(_WINDOW_S)
        legend = ((self.tr("busy"), "band_experts"), (self.tr("waiting for others"), "band_router"))
        loads = [Load(self.tr("The engine's workers"), legend=legend)]
        for worker in range(getattr(self.feed.source, "n_workers", 0)):
            busy = waiting = 0.0
            if steps is not None and len(steps):
                busy = float(steps.busy_us[:, worker].sum()) / 1e6 / _WINDOW_S
                waiting = max(0.0, float(steps.run_us.sum()) / 1e6 / _WINDOW_S - busy)
            busy = min(1.0, busy)
            name = self.tr("Worker {number}").format(number=worker)
            loads.append(Load(name, ((busy, "band_experts"), (min(waiting, 1 - busy), "band_router"))))
        return loads

    def _cores(self) -> list[Load]:
        name = self.tr("Core {number}")
        return [
            Load(self.tr("The machine's cores: all programs")),
            *(
                Load(name.format(number=number), ((load / 100, "band_attention"),))
                for number, load in enumerate(psutil.cpu_percent(percpu=True))
            ),
        ]

    def _places(self) -> str:
        """Where workers may run; the engine ties none of them to a core, so that one which another program uses is
        left to it. Empty where the system does not tell."""
        if not hasattr(os, "sched_getaffinity"):
            return ""
        cpus = cpu_list_text(tuple(sorted(os.sched_getaffinity(0))))
        return self.tr("workers are not pinned, they may run on cores {cpus}").format(cpus=cpus)

    def _frequency(self) -> str:
        try:
            frequency = psutil.cpu_freq()
        except (OSError, NotImplementedError):
            frequency = None
        if frequency is None or not frequency.current:
            return self.tr("This machine does not tell its frequency")
        return self.tr("{ghz} GHz now").format(ghz=f"{frequency.current / 1000:.2f}")
