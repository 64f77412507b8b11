"""Where the user writes: grows with the text, sends with Enter, stops a running answer."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QInputMethodEvent, QKeyEvent, QPainter, QPaintEvent, QResizeEvent, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QSizePolicy, QTextEdit, QVBoxLayout, QWidget

from ui.chat.thinking_button import ThinkingButton
from ui.theme import current_theme
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.icon_button import IconButton

MAX_LINES = 8
_RADIUS = 18


class ComposerEdit(QTextEdit):
    """Plain text; Enter and the Up arrow in an empty field mean something to the composer."""

    submitted = Signal()
    up_in_empty = Signal()
    escaped = Signal()
    focus_changed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.document().setDocumentMargin(0)
        self.viewport().setAutoFillBackground(False)
        self._is_composing = False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}
        has_shift = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if is_enter and not has_shift and not self._is_composing:
            self.submitted.emit()
        elif event.key() == Qt.Key.Key_Up and self.document().isEmpty():
            self.up_in_empty.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
        else:
            super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if source.hasText():
            self.textCursor().insertText(source.text().replace("\0", ""))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit()


class Composer(QWidget):
    """Emits what the user wants; whether it may be sent is told to it by :meth:`set_ready`."""

    submitted = Signal(str)
    refused = Signal()  # Enter was pressed while nothing can be sent
    stop_requested = Signal()
    edit_last_requested = Signal()
    edit_cancelled = Signal()
    draft_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        theme = current_theme()
        self._is_generating = False
        self._is_ready = False
        self._edit = ComposerEdit(self)
        self._edit.setPlaceholderText(self.tr("Ask anything"))
        self._edit.setAccessibleName(self.tr("Message to send"))
        self._edit.submitted.connect(self.submit)
        self._edit.up_in_empty.connect(self.edit_last_requested)
        self._edit.escaped.connect(self._escape)
        self._edit.focus_changed.connect(self.update)
        self._edit.textChanged.connect(self._on_text)
        self._button = IconButton(
            "send", self.tr("Send message"), self, size=34, icon_size=17, kind="send", token="accent_text"
        )
        self._button.clicked.connect(self._on_button)
        self.thinking = ThinkingButton(self)
        self._banner = QWidget(self)
        banner_layout = QHBoxLayout(self._banner)
        banner_layout.setContentsMargins(2, 0, 0, 2)
        self._banner_text = ElidedLabel(self.tr("Editing your message: the answer below it will be written anew"), self)
        self._banner_text.setProperty("tone", "small")
        cancel = IconButton("close", self.tr("Cancel editing"), self, size=24, icon_size=14)
        cancel.clicked.connect(self._cancel_edit)
        banner_layout.addWidget(self._banner_text, 1)
        banner_layout.addWidget(cancel)
        self._banner.hide()
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._edit, 1, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.thinking, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self._button, 0, Qt.AlignmentFlag.AlignBottom)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.px(18), theme.px(9), theme.px(9), theme.px(9))
        layout.setSpacing(4)
        layout.addWidget(self._banner)
        layout.addLayout(row)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusProxy(self._edit)
        self._restyle()
        self._show_button()
        theme.changed.connect(self._restyle)

    @property
    def field(self) -> ComposerEdit:
        """The text field itself."""
        return self._edit

    @property
    def button(self) -> IconButton:
        """Send, or Stop."""
        return self._button

    def text(self) -> str:
        return self._edit.toPlainText()

    def set_text(self, text: str) -> None:
        """Put a draft or a message to edit into the field, the cursor behind it."""
        self._edit.blockSignals(True)
        self._edit.setPlainText(text)
        self._edit.moveCursor(QTextCursor.MoveOperation.End)
        self._edit.blockSignals(False)
        self._fit()
        self._show_button()

    def set_editing(self, is_editing: bool) -> None:
        """Say that the text replaces an earlier message."""
        self._banner.setVisible(is_editing)

    @property
    def is_editing(self) -> bool:
        return not self._banner.isHidden()

    @property
    def is_generating(self) -> bool:
        """Whether Stop stands in place of Send."""
        return self._is_generating

    def set_generating(self, is_generating: bool) -> None:
        """Show Stop in place of Send."""
        self._is_generating = is_generating
        self._show_button()

    def set_ready(self, is_ready: bool, placeholder: str = "") -> None:
        """Whether a message can be sent now; the placeholder says what is being waited for."""
        self._is_ready = is_ready
        self._edit.setPlaceholderText(placeholder or self.tr("Ask anything"))
        self._show_button()

    def _show_button(self) -> None:
        if self._is_generating:
            self._button.set_icon("stop", "accent_text")
            self._button.set_label(self.tr("Stop (Esc)"))
            self._button.setEnabled(True)
        else:
            can_send = self._is_ready and bool(self.text().strip())
            self._button.set_icon("send", "accent_text")
            self._button.set_label(self.tr("Send message"))
            self._button.setEnabled(can_send)

    def _on_button(self) -> None:
        if self._is_generating:
            self.stop_requested.emit()
        else:
            self.submit()

    def submit(self) -> None:
        """Send the text, if it can be sent now."""
        text = self.text().strip()
        if not text or self._is_generating:
            return
        if not self._is_ready:
            self.refused.emit()
            return
        self.set_text("")
        self.submitted.emit(text)

    def _escape(self) -> None:
        if self._is_generating:
            self.stop_requested.emit()
        elif self.is_editing:
            self._cancel_edit()

    def _cancel_edit(self) -> None:
        self.set_editing(False)
        self.edit_cancelled.emit()

    def _on_text(self) -> None:
        self._fit()
        self._show_button()
        self.draft_changed.emit(self.text())

    def _fit(self) -> None:
        line = self._edit.fontMetrics().lineSpacing()
        wanted = round(self._edit.document().size().height() + 0.49)
        height = max(line, min(wanted, line * MAX_LINES)) + 2
        padding = max(0, (current_theme().px(34) - line - 2) // 2)
        self._edit.setFixedHeight(height + 2 * padding)
        self._edit.setViewportMargins(0, padding, 0, padding)
        is_full = wanted > line * MAX_LINES
        policy = Qt.ScrollBarPolicy.ScrollBarAsNeeded if is_full else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self._edit.setVerticalScrollBarPolicy(policy)

    def _restyle(self) -> None:
        self._edit.setFont(current_theme().font(15))
        self._fit()
        self.update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(400, super().sizeHint().height())

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(theme.color("accent" if self._edit.hasFocus() else "border_strong"))
        painter.setBrush(theme.color("raised"))
        radius = theme.px(_RADIUS)
        painter.drawRoundedRect(QRectF(0.5, 0.5, self.width() - 1, self.height() - 1), radius, radius)
