"""How a conversion ended: ready to chat with, failed with what to do, or cancelled."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui import format as fmt
from ui.convert.conversion_task import ConversionTask, Stage
from ui.theme import current_theme, themed_pixmap
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.notice import InlineNotice

if TYPE_CHECKING:
    from app.conversion import Converted


class EndView(QWidget):
    """One of three faces of the same page."""

    chat_requested = Signal(object)  # Path
    reveal_requested = Signal(object)  # Path
    retried = Signal()
    plan_requested = Signal()
    another_requested = Signal()

    def __init__(self, task: ConversionTask, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._task = task
        self._mark = QLabel(self)
        self._mark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.title = QLabel(self)
        self.title.setProperty("tone", "hero")
        self.title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.title.setWordWrap(True)
        self._path = ElidedLabel(self)
        self._path.setProperty("tone", "muted")
        self._path.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.text = QLabel(self)
        self.text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.text.setWordWrap(True)
        self.error = InlineNotice(self, copyable=True)
        self.chat = self._button(self.tr("Chat with it"), is_primary=True)
        self.chat.clicked.connect(lambda: self.chat_requested.emit(self._made()))
        self.reveal = self._button(self.tr("Show in the file manager"))
        self.reveal.clicked.connect(lambda: self.reveal_requested.emit(self._made()))
        self.retry = self._button(self.tr("Try again"), is_primary=True)
        self.retry.clicked.connect(self.retried)
        self.plan = self._button(self.tr("Back to the plan"))
        self.plan.clicked.connect(self.plan_requested)
        self.another = self._button(self.tr("Convert another"))
        self.another.clicked.connect(self.another_requested)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addStretch(1)
        for button in (self.chat, self.retry, self.plan, self.reveal, self.another):
            buttons.addWidget(button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 26, 0, 0)
        column.setSpacing(10)
        for widget in (self._mark, self.title, self._path, self.text, self.error):
            column.addWidget(widget)
        column.addSpacing(10)
        column.addLayout(buttons)
        current_theme().changed.connect(self._restyle)

    def _button(self, text: str, *, is_primary: bool = False) -> QPushButton:
        button = QPushButton(text, self)
        button.setAccessibleName(text)
        if is_primary:
            button.setProperty("kind", "primary")
        return button

    def refresh(self) -> None:
        """Show the task's end."""
        task, stage = self._task, self._task.stage
        is_done, is_failed = stage is Stage.DONE, stage is Stage.FAILED
        for button, is_shown in (
            (self.chat, is_done),
            (self.reveal, is_done),
            (self.retry, not is_done),
            (self.plan, not is_done and task.examination is not None),
            (self.another, True),
        ):
            button.setVisible(is_shown)
        self.another.setText(self.tr("Convert another") if is_done else self.tr("Choose another"))
        self.error.say("danger", task.error if is_failed else "")
        self._path.setText(str(self._made() or task.source or ""))
        if is_done and task.result is not None:
            self.title.setText(self.tr("The model is ready"))
            self.text.setText(self._proof(task.result))
        elif is_failed:
            refused = self.tr("This cannot be converted")
            self.title.setText(refused if task.failed_in_plan else self.tr("The conversion failed"))
            self.text.setText("" if task.failed_in_plan else self.tr("Nothing was left behind."))
        else:
            self.title.setText(self.tr("Cancelled"))
            self.text.setText(self.tr("Nothing was left behind."))
        self.text.setVisible(bool(self.text.text()))
        self._restyle()

    def focus(self) -> None:
        (self.chat if self._task.stage is Stage.DONE else self.retry).setFocus(Qt.FocusReason.OtherFocusReason)

    def _made(self) -> Path | None:
        return self._task.result.path if self._task.result is not None else None

    def _proof(self, result: Converted) -> str:
        verification = result.verification
        if verification is None:
            return ""
        if verification.is_whole:
            text = self.tr("All {n} tensors, {size}, were read back and equal the checkpoint to the last bit.")
        else:
            text = self.tr("All {n} tensors were read back; {size} of their values were compared with the checkpoint.")
        size = fmt.size(verification.compared_bytes)
        return text.format(n=fmt.count(verification.n_tensors), size=size)

    def _restyle(self) -> None:
        icon, token = {Stage.DONE: ("check", "ok"), Stage.FAILED: ("warning", "danger")}.get(
            self._task.stage, ("close", "text_faint")
        )
        size = current_theme().px(44)
        self._mark.setPixmap(themed_pixmap(icon, token, size, self.devicePixelRatioF()))
