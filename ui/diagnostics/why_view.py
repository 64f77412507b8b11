"""The answer to "why is it slow?": a few sentences, each with its command and, where it can be made, its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from ui.diagnostics.why import WhyQuestion
from ui.diagnostics.wording import translated
from ui.theme import current_theme
from ui.widgets.icon_button import IconButton

if TYPE_CHECKING:
    from app.diagnostics.causes import Cause


class CauseRow(QWidget):
    """One sentence, and what can be done with it."""

    copied = Signal()
    fix_requested = Signal(object)  # a Cause

    def __init__(self, number: int, cause: Cause, parent: QWidget, *, can_fix: bool) -> None:
        super().__init__(parent)
        self.cause = cause
        mark = QLabel(str(number), self)
        mark.setProperty("tone", "strong")
        mark.setFixedWidth(current_theme().px(16))
        self.sentence = QLabel(translated(cause.sentence), self)
        self.sentence.setWordWrap(True)
        policy = QSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)  # it is as high as its lines
        self.sentence.setSizePolicy(policy)
        self.sentence.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        texts = QVBoxLayout()
        texts.setSpacing(6)
        texts.addWidget(self.sentence)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(mark, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(texts, 1)
        if cause.command:
            texts.addLayout(self._command(cause.command))
        if can_fix and cause.fix is not None:
            fix = QPushButton(self.tr("Fix…"), self)
            fix.setProperty("kind", "primary")
            fix.clicked.connect(lambda: self.fix_requested.emit(cause))
            row.addWidget(fix, 0, Qt.AlignmentFlag.AlignTop)

    def _command(self, command: str) -> QHBoxLayout:
        line = QLineEdit(command, self)
        line.setReadOnly(True)
        line.setProperty("kind", "command")
        line.setFont(current_theme().code_font(12))
        line.setCursorPosition(0)
        line.setAccessibleName(self.tr("Command"))
        copy = IconButton("copy", self.tr("Copy the command"), self)
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(command))
        copy.clicked.connect(self.copied)
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(line, 1)
        row.addWidget(copy)
        return row


class WhyView(QFrame):
    """Hidden until the question is asked. ``fix_requested`` carries the cause whose fix is wanted."""

    copied = Signal()
    fix_requested = Signal(object)

    def __init__(self, question: WhyQuestion, parent: QWidget | None = None, *, can_fix: bool = False) -> None:
        super().__init__(parent)
        self.setObjectName("Notice")
        self.setAccessibleName(self.tr("Why is it slow?"))
        self._question, self._can_fix = question, can_fix
        self._head = QLabel(self)
        self._head.setProperty("tone", "strong")
        close = IconButton("close", self.tr("Close the answer"), self, size=24, icon_size=14)
        close.clicked.connect(self.hide)
        head = QHBoxLayout()
        head.addWidget(self._head, 1)
        head.addWidget(close)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(16, 10, 12, 12)
        self._column.setSpacing(8)
        self._column.addLayout(head)
        self.rows: list[CauseRow] = []
        self.hide()
        question.changed.connect(self._on_changed)

    def _on_changed(self) -> None:
        if self._question.is_busy:
            self._head.setText(self.tr("Looking at the check, the model's plan and the last answer…"))
            self._show([])
        else:
            self._head.setText(self.tr("Why is it slow?"))
            self._show(self._question.causes)
        self.show()

    def _show(self, causes: list[Cause]) -> None:
        for row in self.rows:
            row.hide()
            row.deleteLater()
        self.rows = [CauseRow(number, cause, self, can_fix=self._can_fix) for number, cause in enumerate(causes, 1)]
        for row in self.rows:
            row.copied.connect(self.copied)
            row.fix_requested.connect(self.fix_requested)
            self._column.addWidget(row)
        self.setAccessibleDescription(" ".join(translated(cause.sentence) for cause in causes))


class WhyButton(QPushButton):
    """Asks the question."""

    def __init__(self, question: WhyQuestion, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setText(self.tr("Why is it slow?"))
        self.setToolTip(self.tr("Reads the check, the model's plan and the last answer, and says what to do first"))
        self._question, self._had_focus = question, False
        self.clicked.connect(self._ask)
        question.changed.connect(self._on_changed)

    def _ask(self) -> None:
        self._had_focus = self.hasFocus()  # a button that is disabled loses it to whatever comes next
        self._question.ask()

    def _on_changed(self) -> None:
        self.setEnabled(not self._question.is_busy)
        if not self._question.is_busy and self._had_focus:
            self._had_focus = False
            self.setFocus(Qt.FocusReason.OtherFocusReason)
