"""What a message shows besides its text: that it failed, or how far the model is."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QWidget

from ui import format as fmt
from ui.chat.shown_message import MessageState, ShownMessage
from ui.theme import current_theme, themed_pixmap
from ui.widgets.meter import Meter
from ui.widgets.thinking_dots import ThinkingDots


class ErrorBox(QFrame):
    """Says what went wrong and offers to try again."""

    retry = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("ErrorBox")
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 11, 12, 11)
        layout.setSpacing(11)
        self._icon = QLabel(self)
        self._text = QLabel(self)
        self._text.setWordWrap(True)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        button = QPushButton(self.tr("Try again"), self)
        button.setAccessibleName(self.tr("Try again"))
        button.clicked.connect(self.retry)
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self._text, 1)
        layout.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        self.restyle()

    def set_text(self, text: str) -> None:
        self._text.setText(fmt.brief(text))
        self._text.setToolTip(text if fmt.brief(text) != text else "")
        self.setAccessibleName(text)

    @property
    def text(self) -> str:
        return self._text.text()

    def restyle(self) -> None:
        size = current_theme().px(18)
        self._icon.setPixmap(themed_pixmap("warning", "danger", size, self.devicePixelRatioF()))


class ProgressRow(QWidget):
    """Dots while the model thinks; while it reads the prompt or is made ready, how far that is."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(10)
        self._dots = ThinkingDots(self)
        self._label = QLabel(self)
        self._label.setProperty("tone", "muted")
        self._meter = Meter(self)
        for widget in (self._dots, self._label, self._meter):
            layout.addWidget(widget)
        layout.addStretch(1)

    def show_state(self, message: ShownMessage) -> None:
        fraction: float | None = None
        if message.state is MessageState.READING and message.n_to_read > 0:
            text = self.tr("Reading prompt {done} / {total}").format(
                done=fmt.count(message.n_read), total=fmt.count(message.n_to_read)
            )
            fraction = message.n_read / message.n_to_read
        elif message.state is MessageState.WAITING and message.waits_for:
            text, fraction = message.waits_for, message.waited
        else:
            text = self.tr("Thinking…")
        self._label.setText(text)
        self._meter.setVisible(fraction is not None)
        if fraction is not None:
            self._meter.set_fraction(fraction)
        self.setAccessibleName(text)

    @property
    def text(self) -> str:
        return self._label.text()
