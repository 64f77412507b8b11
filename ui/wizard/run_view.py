"""Long work under way: its phases, how far it is, how fast, how long still, its log, and a way to cancel it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.jobs import Job
from ui import format as fmt
from ui.theme import current_theme, themed_icon, themed_pixmap
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.throttle import Throttle
from ui.wizard.shell import StageView

_STEPS = 1000
_EVERY_MS = 100
_MOST_LINES = 2000
_LOG_HEIGHT = 168


@dataclass(frozen=True, slots=True)
class Phase:
    """A step of the work for people; `names`: what the job calls its phases that belong to it."""

    text: str
    names: tuple[str, ...]


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


class RunView(StageView):
    """Reads the job at most ten times a second."""

    cancelled = Signal()

    def __init__(self, phases: Sequence[Phase], note: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._job: Job | None = None
        self._n_lines = 0
        self._places = {name: number for number, phase in enumerate(phases) for name in phase.names}
        self._title = ElidedLabel(self)
        self._title.setProperty("tone", "title")
        self._target = ElidedLabel(self)
        self._target.setProperty("tone", "small")
        self.rows = [PhaseRow(phase.text, self) for phase in phases]
        self.bar = QProgressBar(self)
        self.bar.setProperty("kind", "thick")
        self.bar.setTextVisible(False)
        self.bar.setRange(0, _STEPS)
        self.bar.setAccessibleName(self.tr("Progress"))
        self.figures = QLabel(self)
        self.figures.setProperty("tone", "muted")
        self.cancel = QPushButton(self.tr("Cancel"), self)
        self.cancel.clicked.connect(self.cancelled)
        self.note = QLabel(note, self)
        self.note.setProperty("tone", "muted")
        self.note.setWordWrap(True)
        self._make_log()
        self._lay_out()
        self._throttle = Throttle(self._refresh, _EVERY_MS, self)

    def _make_log(self) -> None:
        self.log_toggle = QPushButton(self.tr("Log"), self)
        self.log_toggle.setProperty("kind", "reasoning")
        self.log_toggle.setCheckable(True)
        self.log_toggle.setAccessibleName(self.tr("Log"))
        self.log_toggle.setCursor(Qt.CursorShape.PointingHandCursor)
        self.log_toggle.toggled.connect(self._on_log)
        self.log = QPlainTextEdit(self)
        self.log.setObjectName("Log")
        self.log.setReadOnly(True)
        self.log.setMaximumBlockCount(_MOST_LINES)
        self.log.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.log.setAccessibleName(self.tr("Log"))
        self.log.setTabChangesFocus(True)
        self.log.hide()
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def _lay_out(self) -> None:
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
        column.addWidget(self.note)
        column.addWidget(self.log_toggle, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self.log)

    def show_job(self, title: str, target: str, job: Job) -> None:
        """Follow a job from now on."""
        if job is not self._job:
            self._job = job
            self._n_lines = 0
            self.log.clear()
            self._title.setText(title)
            self._target.setText(target)
            self._refresh()
            self.cancel.setFocus(Qt.FocusReason.OtherFocusReason)

    def progress(self) -> None:
        """The job has come further."""
        self._throttle.request()

    @property
    def phase(self) -> int:
        """The place of the present phase among those that were given."""
        return self._places.get(self._job.phase, 0) if self._job is not None else 0

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
        if self.log.isVisible():
            self._show_lines()

    def _figures(self, job: Job) -> str:
        parts = []
        if job.done_bytes is not None and job.total_bytes:
            done, total = fmt.size(job.done_bytes), fmt.size(job.total_bytes)
            parts.append(self.tr("{done} of {total}").format(done=done, total=total))
        if rate := job.rate_bytes_per_second:
            parts.append(fmt.speed(rate))
        if job.seconds_left is not None and job.seconds_left >= 1:
            parts.append(fmt.time_left(job.seconds_left))
        elif job.seconds_so_far >= 1:
            parts.append(fmt.rough_duration(1000 * job.seconds_so_far))
        return "  ·  ".join(parts)

    def _show_lines(self) -> None:
        if self._job is not None:
            lines, self._n_lines = self._job.lines_after(self._n_lines)
            if lines:
                self.log.appendPlainText("\n".join(lines))

    def _on_log(self, is_open: bool) -> None:
        self.log.setVisible(is_open)
        self._restyle()
        if is_open:
            self._show_lines()

    def _restyle(self) -> None:
        theme = current_theme()
        size = theme.px(14)
        icon = "chevron-down" if self.log_toggle.isChecked() else "chevron-right"
        self.log_toggle.setIcon(themed_icon(icon, "text_muted", size))
        self.log_toggle.setIconSize(QSize(size, size))
        self.log.setFixedHeight(theme.px(_LOG_HEIGHT))

    def sizeHint(self) -> QSize:
        return QSize(current_theme().px(560), super().sizeHint().height())
