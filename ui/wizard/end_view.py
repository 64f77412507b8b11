"""How long work ended: ready to chat with, failed with what to do about it, or cancelled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.failures import Failure
from ui.theme import current_theme, themed_pixmap
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.fact_grid import FactGrid
from ui.widgets.notice import InlineNotice
from ui.wizard.advice import Adviser
from ui.wizard.shell import StageView


class EndView(StageView):
    """One of three faces of the same page."""

    chat_requested = Signal(object)  # Path
    reveal_requested = Signal(object)  # Path
    retried = Signal()
    plan_requested = Signal()
    another_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._made: Path | None = None
        self._adviser = Adviser(self)
        self._icon = ("close", "text_faint")
        self._mark = QLabel(self)
        self._mark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.title = self._centred("hero")
        self._path = ElidedLabel(self)
        self._path.setProperty("tone", "muted")
        self._path.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.text = self._centred("")
        self.steps = QLabel(self)
        self.steps.setWordWrap(True)
        self.steps.setTextFormat(Qt.TextFormat.PlainText)
        self.error = InlineNotice(self, copyable=True)
        self.warning = InlineNotice(self)
        self.facts = FactGrid(self)
        self._card = QFrame(self)
        self._card.setObjectName("Card")
        inside = QVBoxLayout(self._card)
        inside.setContentsMargins(18, 14, 18, 14)
        inside.addWidget(self.facts)
        self.chat = self._button(self.tr("Chat with it"), is_primary=True)
        self.chat.clicked.connect(lambda: self.chat_requested.emit(self._made))
        self.reveal = self._button(self.tr("Show in the file manager"))
        self.reveal.clicked.connect(lambda: self.reveal_requested.emit(self._made))
        self.retry = self._button(self.tr("Try again"), is_primary=True)
        self.retry.clicked.connect(self.retried)
        self.plan = self._button(self.tr("Back to the plan"))
        self.plan.clicked.connect(self.plan_requested)
        self.another = self._button(self.tr("Choose another"))
        self.another.clicked.connect(self.another_requested)
        self._lay_out()
        current_theme().changed.connect(self._restyle)

    def _centred(self, tone: str) -> QLabel:
        label = QLabel(self)
        label.setProperty("tone", tone)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        label.setWordWrap(True)
        return label

    def _button(self, text: str, *, is_primary: bool = False) -> QPushButton:
        button = QPushButton(text, self)
        button.setAccessibleName(text)
        if is_primary:
            button.setProperty("kind", "primary")
        return button

    def _lay_out(self) -> None:
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addStretch(1)
        for button in (self.chat, self.retry, self.plan, self.reveal, self.another):
            buttons.addWidget(button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 22, 0, 0)
        column.setSpacing(10)
        for widget in (self._mark, self.title, self._path, self.text, self._card, self.warning):
            column.addWidget(widget)
        column.addWidget(self.steps)
        column.addWidget(self.error)
        column.addSpacing(10)
        column.addLayout(buttons)

    def show_done(
        self,
        title: str,
        made: Path,
        text: str,
        facts: Sequence[tuple[str, str | None]] = (),
        *,
        warning: str = "",
        another: str = "",
    ) -> None:
        """A model is there. `facts`: what was measured of it; `warning`: what its user should know."""
        self._made = made
        self._icon = ("check", "ok")
        self._show(title, str(made), text, can_retry=False, can_plan=False)
        self.facts.set_facts(facts)
        self._card.setVisible(bool(self.facts.facts))
        self.warning.say("warning", warning)
        self.another.setText(another or self.tr("Choose another"))

    def show_failure(self, failure: Failure, where: str, left: str, *, can_plan: bool) -> None:
        """What happened, what to do, and the whole text. `left`: what the work left behind, in a sentence."""
        advice = self._adviser.advise(failure.cause)
        self._icon = ("warning", "danger")
        self._show(advice.title, where, left, can_retry=True, can_plan=can_plan)
        self.steps.setText("\n".join(f"{number}.  {step}" for number, step in enumerate(advice.steps, 1)))
        self.steps.show()
        self.error.say("danger", failure.text)

    def show_cancelled(self, where: str, left: str, *, can_plan: bool) -> None:
        """The user did not want it any more."""
        self._icon = ("close", "text_faint")
        self._show(self.tr("Cancelled"), where, left, can_retry=True, can_plan=can_plan)

    def _show(self, title: str, path: str, text: str, *, can_retry: bool, can_plan: bool) -> None:
        self.title.setText(title)
        self._path.setText(path)
        self.text.setText(text)
        self.text.setVisible(bool(text))
        self.chat.setVisible(not can_retry)
        self.reveal.setVisible(not can_retry)
        self.retry.setVisible(can_retry)
        self.plan.setVisible(can_plan)
        self.another.setText(self.tr("Choose another"))
        for widget in (self._card, self.steps):
            widget.hide()
        self.error.say("danger", "")
        self.warning.say("warning", "")
        self._restyle()

    def focus(self) -> None:
        """Put the keyboard where Enter does what most people want."""
        (self.retry if self.chat.isHidden() else self.chat).setFocus(Qt.FocusReason.OtherFocusReason)

    def _restyle(self) -> None:
        icon, token = self._icon
        size = current_theme().px(44)
        self._mark.setPixmap(themed_pixmap(icon, token, size, self.devicePixelRatioF()))
