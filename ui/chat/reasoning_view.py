"""What the model thought before its answer: one line, folded, that opens to the whole text."""

from __future__ import annotations

from PySide6.QtCore import QRect, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QPushButton, QWidget

from ui import format as fmt
from ui.chat.markdown_view import MarkdownView
from ui.chat.shown_message import ShownMessage
from ui.theme import current_theme, themed_icon
from ui.widgets.thinking_dots import ThinkingDots

_HEADER_HEIGHT, _GAP, _GAP_BELOW_TEXT, _INDENT, _ICON, _TEXT_SIZE = 28, 8, 16, 14, 15, 13.5


class ReasoningView(QWidget):
    """Measured and placed by its message; whether it is unfolded, the conversation remembers."""

    toggled = Signal(bool)  # the reader unfolds or folds it

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._button = QPushButton(self)
        self._button.setProperty("kind", "reasoning")
        self._button.setCheckable(True)
        self._button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._button.clicked.connect(self.toggled)
        self._dots = ThinkingDots(self)
        self._dots.hide()
        self._text = MarkdownView(self, _TEXT_SIZE, color="text_muted")
        self._text.setAccessibleName(self.tr("Reasoning"))
        self._text.hide()
        self._reasoning, self._is_thinking = "", False
        self._set_icon()

    @property
    def button(self) -> QPushButton:
        """The line that is always seen."""
        return self._button

    @property
    def content(self) -> MarkdownView:
        """The text; empty until it is unfolded."""
        return self._text

    @property
    def is_unfolded(self) -> bool:
        return self._button.isChecked()

    def show_message(self, message: ShownMessage) -> None:
        """Show how far the reasoning has come; its text is only written while it can be seen."""
        self._reasoning = message.reasoning
        self._is_thinking = message.state.is_live and not message.text
        if self._is_thinking:
            label = self.tr("Thinking…")
        elif message.thinking_ms >= 1000:
            label = self.tr("Thought for {time}").format(time=fmt.rough_duration(message.thinking_ms))
        else:
            label = self.tr("Thought briefly")
        self._button.setText(label)
        self._button.setAccessibleName(label)
        self._dots.setVisible(self._is_thinking)
        self._write()

    def set_unfolded(self, is_unfolded: bool) -> None:
        """Show the text, or only the line."""
        self._button.setChecked(is_unfolded)
        hint = self.tr("Hide the reasoning") if is_unfolded else self.tr("Show the reasoning")
        self._button.setToolTip(hint)
        self._button.setAccessibleDescription(hint)
        self._text.setVisible(is_unfolded)
        self._set_icon()
        self._write()

    def selected_text(self) -> str:
        return self._text.selected_text() if self.is_unfolded else ""

    def height_for(self, width: int, margin: int) -> int:
        """The height that it takes for a text column of ``width``; places its parts, ``margin`` to the right.

        The line begins at the very left: its own padding is as wide as the margin.
        """
        theme = current_theme()
        height = theme.px(_HEADER_HEIGHT)
        button = self._button.sizeHint()
        self._button.setGeometry(0, 0, min(button.width(), width), height)
        dots = self._dots.sizeHint()
        left = self._button.geometry().right() + theme.px(6)
        self._dots.setGeometry(left, (height - dots.height()) // 2, dots.width(), dots.height())
        if self.is_unfolded:
            indent = theme.px(_INDENT)
            text_height = self._text.height_for(width - indent)
            self._text.setGeometry(margin + indent, height + theme.px(_GAP), width - indent, text_height)
            self._text.place(width - indent)
            return height + theme.px(_GAP) + text_height + theme.px(_GAP_BELOW_TEXT)
        return height + theme.px(_GAP)

    def restyle(self) -> None:
        """Take over a changed theme."""
        self._text.restyle()
        self._set_icon()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if self.is_unfolded:
            theme = current_theme()
            place = self._text.geometry()
            painter = QPainter(self)
            left = place.left() - theme.px(_INDENT)
            painter.fillRect(QRect(left, place.top(), theme.px(2), place.height()), theme.color("border_strong"))

    def _write(self) -> None:
        if self.is_unfolded:
            self._text.set_text(self._reasoning, is_final=not self._is_thinking)

    def _set_icon(self) -> None:
        icon = "chevron-down" if self.is_unfolded else "chevron-right"
        self._button.setIcon(themed_icon(icon, "text_muted", current_theme().px(_ICON)))
