"""The system check's page: the state of the machine at a glance, each finding with its reason and remedy."""

from __future__ import annotations

import html
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.diagnostics import Finding, Group, Status, Verb
from app.diagnostics.causes import Cause
from ui.diagnostics.finding_row import FindingRow
from ui.diagnostics.system_check import SystemCheck
from ui.diagnostics.why import WhyQuestion
from ui.diagnostics.why_view import WhyButton, WhyView
from ui.diagnostics.wording import heading, summary, translated
from ui.theme import current_theme

_STEPS = 1000
_WIDEST = 900
_ROWS_AT_ONCE = 2


class SystemPage(QWidget):
    """Shows what ``SystemCheck`` holds; checks when it is first seen, and when it is asked to."""

    notice = Signal(str)

    def __init__(
        self, check: SystemCheck, parent: QWidget | None = None, *, question: WhyQuestion | None = None
    ) -> None:
        """`question`: what the button "Why is it slow?" asks; None: there is no such button."""
        super().__init__(parent)
        self.setObjectName("Page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(self.tr("System check"))
        self.check = check
        self.rows: dict[str, FindingRow] = {}
        self._sections: dict[Group, QVBoxLayout] = {}
        self._was_checked = False
        self._pending: list[Finding] = []
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._show_some)
        content = QWidget(self)
        content.setObjectName("DialogPage")
        self._content = content
        self._column = QVBoxLayout(content)
        self._column.setContentsMargins(28, 24, 28, 28)
        self._column.setSpacing(10)
        self._build_head(question)
        self._body_start = self._column.count()
        self._column.addStretch(1)
        around = QWidget(self)
        around.setObjectName("DialogPage")
        row = QHBoxLayout(around)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(content, 100)
        row.addStretch(1)
        scroll = QScrollArea(self)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setWidget(around)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scroll)
        check.changed.connect(self._on_changed)
        check.failed.connect(self.notice)
        current_theme().changed.connect(self._restyle)
        self._restyle()
        self._on_changed()

    def _restyle(self) -> None:
        self._content.setMaximumWidth(current_theme().px(_WIDEST))

    def _build_head(self, question: WhyQuestion | None) -> None:
        title = QLabel(self.tr("System check"), self)
        title.setProperty("tone", "hero")
        self.summary = QLabel(self)
        self.summary.setProperty("tone", "muted")
        self.again = self._button(self.tr("Check again"), self.check.check)
        self.measure = self._button(self.tr("Measure memory and disk"), self.check.measure)
        self.cancel = self._button(self.tr("Cancel"), self.check.cancel)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setRange(0, _STEPS)
        self.bar.setAccessibleName(self.tr("Progress of the measurement"))
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        for button in (self.again, self.measure, self.cancel):
            buttons.addWidget(button)
        buttons.addStretch(1)
        self.why: WhyView | None = None
        if question is not None:
            buttons.addWidget(WhyButton(question, self))
            self.why = WhyView(question, self, can_fix=self.check.can_fix)
            self.why.copied.connect(self._say_copied)
            self.why.fix_requested.connect(self.ask_cause)
            question.failed.connect(self.notice)
        for widget in (title, self.summary):
            self._column.addWidget(widget)
        self._column.addLayout(buttons)
        self._column.addWidget(self.bar)
        if self.why is not None:
            self._column.addWidget(self.why)

    def _button(self, title: str, act: Callable[[], None]) -> QPushButton:
        button = QPushButton(title, self)
        button.setAccessibleName(title)
        button.clicked.connect(act)
        return button

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._was_checked:
            self._was_checked = True
            self.check.check()

    def _on_changed(self) -> None:
        check, job = self.check, self.check.job
        self.again.setEnabled(not check.is_busy)
        self.measure.setEnabled(not check.is_busy and bool(check.findings))
        self.cancel.setVisible(job is not None)
        self.bar.setVisible(job is not None)
        if job is not None:
            self.bar.setRange(0, 0 if job.fraction is None else _STEPS)
            self.bar.setValue(round((job.fraction or 0.0) * _STEPS))
            is_disk = job.phase == "disk"
            self.summary.setText(self.tr("Measuring the disk…") if is_disk else self.tr("Measuring the memory…"))
        elif check.findings:
            self.summary.setText(summary(check.findings))
        else:
            self.summary.setText(self.tr("Looking at this machine…"))
        if job is None and check.findings:
            self._pending = list(check.findings)
            self._timer.start()

    def _show_some(self) -> None:
        """A few rows at each turn of the event loop, so that it never stands still."""
        for finding in self._pending[:_ROWS_AT_ONCE]:
            self._show(finding)
        del self._pending[:_ROWS_AT_ONCE]
        if not self._pending:
            self._timer.stop()

    @property
    def is_complete(self) -> bool:
        """Whether all findings are shown as they are now."""
        return not self._pending and not self.check.is_busy

    def _show(self, finding: Finding) -> None:
        row = self.rows.get(finding.id)
        if row is None:
            row = self.rows[finding.id] = FindingRow(finding, self)
            row.fix_requested.connect(self.ask)
            row.undo_requested.connect(self.ask_undo)
            row.copied.connect(self._say_copied)
            self._section(finding.group).addWidget(row)
            if finding.status is Status.PROBLEM:
                row.open()
        row.set_finding(
            finding, can_fix=self.check.can_fix, can_undo=self.check.can_fix and self._change_of(finding) is not None
        )

    def _say_copied(self) -> None:
        self.notice.emit(self.tr("The command was copied"))

    def _section(self, group: Group) -> QVBoxLayout:
        if group not in self._sections:
            label = QLabel(heading(group), self)
            label.setProperty("tone", "section")
            box = QFrame(self)
            box.setObjectName("FindingBox")
            layout = QVBoxLayout(box)
            layout.setContentsMargins(1, 1, 1, 1)
            layout.setSpacing(0)
            place = self._column.count() - 1
            self._column.insertSpacing(place, 8)
            self._column.insertWidget(place + 1, label)
            self._column.insertWidget(place + 2, box)
            self._sections[group] = layout
        return self._sections[group]

    def _change_of(self, finding: Finding) -> Verb | None:
        """The change that was made for a finding, if it is in force."""
        return next((verb for verb in self.check.undoable if _BELONGS[verb] == finding.id), None)

    def ask(self, finding: Finding) -> None:
        """Say what will be changed, and change it if the user agrees."""
        fix = finding.fix
        if fix is not None:
            self._confirm(
                translated(finding.title), translated(fix.effect), self.tr("Change it"), lambda: self.check.make(fix)
            )

    def ask_cause(self, cause: Cause) -> None:
        """The same for a cause of slowness."""
        fix = cause.fix
        if fix is not None:
            self._confirm(
                self.tr("Why is it slow?"), translated(fix.effect), self.tr("Change it"), lambda: self.check.make(fix)
            )

    def ask_undo(self, finding: Finding) -> None:
        """The same for putting it back."""
        verb = self._change_of(finding)
        if verb is not None:
            text = self.tr("What was in force before is put back.")
            self._confirm(translated(finding.title), text, self.tr("Undo the change"), lambda: self.check.undo(verb))

    def _confirm(self, title: str, text: str, verb: str, act: Callable[[], None]) -> None:
        box = QMessageBox(self)
        box.setIcon(QMessageBox.Icon.NoIcon)
        box.setWindowTitle(title)
        box.setTextFormat(Qt.TextFormat.RichText)
        box.setText(f"<b>{html.escape(title)}</b><br><br>{html.escape(text)}")
        box.setInformativeText(self.tr("The system will ask for an administrator's password."))
        box.setStandardButtons(QMessageBox.StandardButton.Ok | QMessageBox.StandardButton.Cancel)
        box.setDefaultButton(QMessageBox.StandardButton.Cancel)
        box.button(QMessageBox.StandardButton.Ok).setText(verb)
        box.accepted.connect(act)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.confirmation = box
        box.open()


_BELONGS = {  # under which finding a change is undone, also when that has no fix to offer any more
    Verb.GOVERNOR: "governor",
    Verb.HUGE_PAGES: "huge-pages",
    Verb.TRANSPARENT_PAGES: "transparent-pages",
    Verb.LOCKED_MEMORY: "locked-memory",
}
