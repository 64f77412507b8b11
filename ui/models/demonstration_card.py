"""Offers to make a model with experts of a dense one in one click, so that a newcomer sees routing."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.carving_request import demonstration
from app.library import ModelEntry
from ui import format as fmt
from ui.carve.carving_task import CarvingTask
from ui.wizard.long_task import Stage

_STEPS = 1000


class DemonstrationCard(QFrame):
    """Shown for the starter model; follows the task that is made of a click."""

    chat_requested = Signal(object)  # Path
    details_requested = Signal()  # the page of the task
    plan_requested = Signal()

    def __init__(self, task: CarvingTask, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("Card")
        self._task = task
        self._entry: ModelEntry | None = None
        self.title = QLabel(self)
        self.title.setProperty("tone", "strong")
        self.title.setWordWrap(True)
        self.text = QLabel(self)
        self.text.setWordWrap(True)
        self.text.setProperty("tone", "muted")
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setRange(0, _STEPS)
        self.button = QPushButton(self.tr("Make it"), self)
        self.button.setProperty("kind", "primary")
        self.button.clicked.connect(self._on_button)
        self.details = QPushButton(self.tr("Show the steps"), self)
        self.details.clicked.connect(self.details_requested)
        self.plan = QPushButton(self.tr("Choose how…"), self)
        self.plan.clicked.connect(self.plan_requested)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.button)
        row.addWidget(self.details)
        row.addWidget(self.plan)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 13, 16, 14)
        column.setSpacing(8)
        for widget in (self.title, self.text, self.bar):
            column.addWidget(widget)
        column.addLayout(row)
        task.changed.connect(self.refresh)
        task.progressed.connect(self.refresh)
        self.hide()

    def show_entry(self, entry: ModelEntry | None) -> None:
        """The model that is selected."""
        self._entry = entry
        self.refresh()

    def refresh(self) -> None:
        """Show how far it is."""
        entry = self._entry
        self.setVisible(entry is not None and entry.is_starter and not entry.problem)
        if entry is None or self.isHidden():
            return
        task = self._task
        is_mine = task.request is not None and Path(task.request.source) == entry.path
        is_running = is_mine and task.is_running
        is_made = self._made is not None
        self.bar.setVisible(is_running)
        self.details.setVisible(is_running or (is_mine and task.stage in {Stage.FAILED, Stage.DECIDE}))
        self.plan.setVisible(not is_running and not task.is_busy)
        self.title.setText(self.tr("{name}, carved (demonstration)").format(name=entry.name))
        self.button.setEnabled(is_running or is_made or not task.is_busy)
        if is_running and task.job is not None:
            self._show_job()
        elif is_made:
            self.text.setText(self.tr("It is on this machine: chat with it, and watch its experts."))
            self.button.setText(self.tr("Chat with it"))
        elif is_mine and task.stage is Stage.FAILED and task.failure is not None:
            self.text.setText(fmt.brief(task.failure.text))
            self.button.setText(self.tr("Try again"))
        else:
            self.text.setText(
                self.tr(
                    "See experts at work: this model can be cut into 12 experts and 4 shared ones here, in some "
                    "minutes and without a download. You will see routing live; the answers are worse than this "
                    "model's, and how much is measured."
                )
            )
            self.button.setText(self.tr("Make it"))
        self.button.setAccessibleName(f"{self.button.text()}: {self.title.text()}")

    def _show_job(self) -> None:
        job = self._task.job
        assert job is not None
        phase = {
            "reading the text": self.tr("Reading text, and watching every neuron"),
            "splitting the layers": self.tr("Cutting the networks, and fitting the routers"),
            "measuring the loss": self.tr("Measuring what each number of experts costs"),
        }.get(job.phase, self.tr("Writing the file"))
        parts = [phase]
        if job.seconds_left is not None and job.seconds_left >= 1:
            parts.append(fmt.time_left(job.seconds_left))
        self.text.setText(self.tr("Stopping…") if job.cancelled else "  ·  ".join(parts))
        self.bar.setRange(0, 0 if job.fraction is None else _STEPS)
        self.bar.setValue(round((job.fraction or 0) * _STEPS))
        self.button.setText(self.tr("Cancel"))
        self.button.setEnabled(not job.cancelled)

    @property
    def _made(self) -> Path | None:
        """The file, if it is there."""
        if self._entry is None:
            return None
        path = Path(demonstration(self._entry.path, self._entry.name).target)
        return path if path.exists() else None

    def _on_button(self) -> None:
        entry, task = self._entry, self._task
        if entry is None:
            return
        if task.is_running:
            task.cancel()
        elif self._made is not None:
            self.chat_requested.emit(self._made)
        else:
            task.start(demonstration(entry.path, entry.name))
