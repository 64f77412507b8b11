"""The row below a message: what can be done with it, and an answer's figures."""

from __future__ import annotations

from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from ui import format as fmt
from ui.chat.shown_message import MessageState, ShownMessage
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.icon_button import IconButton

_COPIED_MS = 1600
_SEPARATOR = "   ·   "


class ActionRow(QWidget):
    """Copy, regenerate or edit, the branch switcher, and the figures of an answer."""

    copy = Signal()
    regenerate = Signal()
    edit = Signal()
    step = Signal(int)

    def __init__(self, parent: QWidget, *, is_user: bool) -> None:
        super().__init__(parent)
        self._is_user = is_user
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 2, 0, 0)
        layout.setSpacing(2)
        self._previous = IconButton("chevron-left", self.tr("Previous version"), self, size=24, icon_size=14)
        self._position = QLabel(self)
        self._position.setProperty("tone", "small")
        self._next = IconButton("chevron-right", self.tr("Next version"), self, size=24, icon_size=14)
        self.copy_button = IconButton("copy", self.tr("Copy message"), self, size=26, icon_size=15)
        if is_user:
            self.redo_button = IconButton("edit", self.tr("Edit message"), self, size=26, icon_size=15)
            self.redo_button.clicked.connect(self.edit)
        else:
            self.redo_button = IconButton("regenerate", self.tr("Regenerate answer"), self, size=26, icon_size=15)
            self.redo_button.clicked.connect(self.regenerate)
        self._figures = ElidedLabel(self)
        self._figures.setProperty("tone", "faint")
        self._previous.clicked.connect(lambda: self.step.emit(-1))
        self._next.clicked.connect(lambda: self.step.emit(1))
        self.copy_button.clicked.connect(self._on_copy)
        self._restore = QTimer(self)
        self._restore.setSingleShot(True)
        self._restore.timeout.connect(self._show_copy_icon)
        switcher = (self._previous, self._position, self._next)
        if is_user:
            layout.addStretch(1)
        for widget in (*switcher, self.copy_button, self.redo_button):
            layout.addWidget(widget)
        layout.addSpacing(8)
        layout.addWidget(self._figures, 0 if is_user else 1)

    def show_message(self, message: ShownMessage) -> None:
        has_siblings = message.n_siblings > 1
        for widget in (self._previous, self._position, self._next):
            widget.setVisible(has_siblings)
        self._position.setText(f"{message.sibling_index + 1}/{message.n_siblings}")
        self._previous.setEnabled(message.sibling_index > 0)
        self._next.setEnabled(message.sibling_index + 1 < message.n_siblings)
        self.redo_button.setEnabled(not message.state.is_live)
        self._figures.setText(self.figures(message))
        self._figures.setVisible(not self._is_user)

    @property
    def position_text(self) -> str:
        return self._position.text()

    def figures(self, message: ShownMessage) -> str:
        """ "38.2 tok/s · first token 210 ms · 187 tokens", with what is known."""
        parts = []
        if message.state is MessageState.STOPPED:
            parts.append(self.tr("Stopped"))
        if message.was_cut:
            parts.append(self.tr("Cut at the length limit"))
        if message.tokens_per_second > 0:
            parts.append(fmt.rate(message.tokens_per_second))
        if message.ttft_ms > 0:
            parts.append(self.tr("first token {time}").format(time=fmt.duration(message.ttft_ms)))
        if message.n_tokens > 0:
            parts.append(self.tr("{count} tokens").format(count=fmt.count(message.n_tokens)))
        if message.model:
            parts.append(message.model)
        return _SEPARATOR.join(parts)

    def _on_copy(self) -> None:
        self.copy.emit()
        self.copy_button.set_icon("check", "ok")
        self._restore.start(_COPIED_MS)

    def _show_copy_icon(self) -> None:
        self.copy_button.set_icon("copy", "text_muted")
