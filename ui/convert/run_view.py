"""The conversion at work: its phases, how far it is, how fast, how long still, and a way to cancel it."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.jobs import Job
from ui import format as fmt
from ui.theme import current_theme, themed_pixmap
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.throttle import Throttle

_STEPS = 1000
_EVERY_MS = 100
CHECK, WRITE, VERIFY = range(3)
_PHASES = {"checking the checkpoint": CHECK, "writing": WRITE, "verifying": VERIFY}


class PhaseRow(QWidget):
    """A mark and a name: to come, under way, done."""

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._mark = QLabel(self)
        self._text = QLabel(text, self)
        self._detail = QLabel(self)
        self._detail.setProperty("tone", "small")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self._mark)
        row.addWidget(self._text)
        row.addStretch(1)
        row.addWidget(self._detail)
        self.state = "waiting"
        self.show_state("waiting")

    def show_state(self, state: str, detail: str = "") -> None:
        """`state`: "waiting", "running", "done"."""
        icon, token = {"waiting": ("stop", "border_strong"), "running": ("chevron-right", "accent")}.get(
            state, ("check", "ok")
        )
        size = current_theme().px(16)
        self._mark.setPixmap(themed_pixmap(icon, token, size, self.devicePixelRatioF()))
        tone = {"waiting": "muted", "running": "strong"}.get(state, "")
        if self._text.property("tone") != tone:
            self._text.setProperty("tone", tone)
            self._text.style().unpolish(self._text)
            self._text.style().polish(self._text)
        self._detail.setText(detail)
        self.state = state
        self.setAccessibleName(f"{self._text.text()} {detail}".strip())


class RunView(QWidget):
    """Reads the job at most ten times a second."""

    cancelled = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._job: Job | None = None
        self._title = ElidedLabel(self)
        self._title.setProperty("tone", "title")
        self._target = ElidedLabel(self)
        self._target.setProperty("tone", "small")
        self.rows = [
            PhaseRow(text, self)
            for text in (
                self.tr("Check the checkpoint"),
                self.tr("Write the file"),
                self.tr("Read it back and compare"),
            )
        ]
        self.bar = QProgressBar(self)
        self.bar.setProperty("kind", "thick")
        self.bar.setTextVisible(False)
        self.bar.setRange(0, _STEPS)
        self.bar.setAccessibleName(self.tr("Progress"))
        self.figures = QLabel(self)
        self.figures.setProperty("tone", "muted")
        self.cancel = QPushButton(self.tr("Cancel"), self)
        self.cancel.clicked.connect(self.cancelled)
        note = QLabel(
            self.tr("You can go on chatting meanwhile. Nothing stays of a conversion that is cancelled."), self
        )
        note.setProperty("tone", "muted")
        note.setWordWrap(True)
        card = QFrame(self)
        card.setObjectName("Card")
        inside = QVBoxLayout(card)
        inside.setContentsMargins(18, 15, 18, 16)
        inside.setSpacing(8)
        inside.addWidget(self._title)
        inside.addWidget(self._target)
        inside.addSpacing(8)
        for row in self.rows:
            inside.addWidget(row)
        inside.addSpacing(8)
        inside.addWidget(self.bar)
        foot = QHBoxLayout()
        foot.addWidget(self.figures, 1)
        foot.addWidget(self.cancel)
        inside.addLayout(foot)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addWidget(card)
        column.addWidget(note)
        self._throttle = Throttle(self._refresh, _EVERY_MS, self)

    def show_job(self, title: str, target: str, job: Job) -> None:
        """Follow a job from now on."""
        if job is not self._job:
            self._job = job
            self._title.setText(title)
            self._target.setText(target)
            self._refresh()
            self.cancel.setFocus(Qt.FocusReason.OtherFocusReason)

    def progress(self) -> None:
        """The job has come further."""
        self._throttle.request()

    @property
    def phase(self) -> int:
        """CHECK, WRITE or VERIFY."""
        return _PHASES.get(self._job.phase, CHECK) if self._job is not None else CHECK

    def _refresh(self) -> None:
        job = self._job
        if job is None:
            return
        phase, fraction = self.phase, job.fraction
        for number, row in enumerate(self.rows):
            percent = "" if fraction is None or number != phase else f"{int(fraction * 100)} %"
            row.show_state("done" if number < phase else "running" if number == phase else "waiting", percent)
        self.bar.setRange(0, 0 if fraction is None else _STEPS)
        self.bar.setValue(0 if fraction is None else round(fraction * _STEPS))
        self.figures.setText(self.tr("Stopping…") if job.cancelled else self._figures(job))
        self.cancel.setEnabled(not job.cancelled)

    def _figures(self, job: Job) -> str:
        parts = []
        if job.done_bytes is not None and job.total_bytes:
            done, total = fmt.size(job.done_bytes), fmt.size(job.total_bytes)
            parts.append(self.tr("{done} of {total}").format(done=done, total=total))
        if rate := job.rate_bytes_per_second:
            parts.append(fmt.speed(rate))
        if job.seconds_left is not None and job.seconds_left >= 1:
            parts.append(fmt.time_left(job.seconds_left))
        return "  ·  ".join(parts)

    def sizeHint(self) -> QSize:
        return QSize(current_theme().px(560), super().sizeHint().height())
