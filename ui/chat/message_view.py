"""Draws one message: bubble or answer, its state, and the actions that appear under the pointer."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRect, QRectF, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QContextMenuEvent,
    QEnterEvent,
    QFocusEvent,
    QGuiApplication,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QWidget

from ui.chat.action_row import ActionRow
from ui.chat.markdown_view import MarkdownView
from ui.chat.message_states import ErrorBox, ProgressRow
from ui.chat.prose_view import ProseView
from ui.chat.reasoning_view import ReasoningView
from ui.chat.shown_message import MessageState, ShownMessage
from ui.theme import current_theme

GUTTER = 6  # room beside the text for the own padding of actions and the like
_BUBBLE_PADDING_X, _BUBBLE_PADDING_Y, _BUBBLE_RADIUS = 15, 10, 16
_BUBBLE_SHARE = 0.82
_ACTIONS_HEIGHT, _GAP_BELOW_USER, _GAP_BELOW_ANSWER, _PROGRESS_HEIGHT = 28, 2, 24, 26


class MessageView(QWidget):
    """Measured with :meth:`height_for` and placed by the conversation; holds no truth of its own."""

    regenerate_requested = Signal(int)
    edit_requested = Signal(int)
    branch_requested = Signal(int, int)
    reasoning_toggled = Signal(int, bool)
    experts_requested = Signal(int, str)  # of these words of the answer; "": of all of it

    def __init__(self, message: ShownMessage, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # it is moved and grows without being painted anew
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._message = message
        self._is_last = False
        self._text: MarkdownView | ProseView
        if message.is_user and "```" not in message.text:
            self._text = ProseView(self)
            self._text.copy_requested.connect(self._text.copy)
        else:
            self._text = MarkdownView(self)
        self._reasoning: ReasoningView | None = None
        self._is_unfolded = False
        self._progress: ProgressRow | None = None
        self._error: ErrorBox | None = None
        self._actions: ActionRow | None = None  # made when it is first seen: it costs as much as all the rest
        self._actions_place = QRect()
        self._places: list[tuple[QWidget, QRect]] = []
        self._bubble = QRectF()
        self._written: tuple[str, bool] | None = None
        self.set_message(message)

    @property
    def actions_row(self) -> ActionRow:
        """Copy, regenerate or edit, branches, figures."""
        if self._actions is None:
            row = ActionRow(self, is_user=self._message.is_user)
            row.copy.connect(self.copy)
            row.regenerate.connect(lambda: self.regenerate_requested.emit(self._message.id))
            row.edit.connect(lambda: self.edit_requested.emit(self._message.id))
            row.step.connect(lambda step: self.branch_requested.emit(self._message.id, step))
            row.setGeometry(self._actions_place)
            row.hide()
            self._actions = row
            row.show_message(self._message)
        return self._actions

    @property
    def message(self) -> ShownMessage:
        return self._message

    @property
    def progress_text(self) -> str:
        """What the progress row says; "" while it is not shown."""
        return "" if self._progress is None or self._progress.isHidden() else self._progress.text

    @property
    def error_text(self) -> str:
        """What the error box says; "" while it is not shown."""
        return "" if self._error is None or self._error.isHidden() else self._error.text

    def retry(self) -> None:
        """Ask for another answer in place of one that failed."""
        self.regenerate_requested.emit(self._message.id)

    @property
    def content(self) -> MarkdownView | ProseView:
        """The widget that shows the text."""
        return self._text

    def set_message(self, message: ShownMessage) -> None:
        """Show what has changed in the message."""
        self._message = message
        is_final = not message.state.is_live
        if self._written != (message.text, is_final):
            self._written = (message.text, is_final)
            if isinstance(self._text, MarkdownView):
                self._text.set_text(message.text, is_final=is_final)
            else:
                self._text.set_plain_text(message.text)
        self._text.setVisible(bool(message.text))
        self._show_reasoning(message)
        self._show_progress(message)
        self._show_error(message)
        if self._actions is not None:
            self._actions.show_message(message)
        self._show_actions()
        author = self.tr("You") if message.is_user else self.tr("Answer")
        self.setAccessibleName(f"{author}: {message.text[:200]}")

    @property
    def reasoning(self) -> ReasoningView | None:
        """The part above the answer; None where the model did not reason."""
        return self._reasoning

    def set_unfolded(self, is_unfolded: bool) -> None:
        """Whether the whole reasoning is shown, now or when there is any."""
        self._is_unfolded = is_unfolded
        if self._reasoning is not None:
            self._reasoning.set_unfolded(is_unfolded)

    def _show_reasoning(self, message: ShownMessage) -> None:
        if message.reasoning and self._reasoning is None:
            self._reasoning = ReasoningView(self)
            self._reasoning.set_unfolded(self._is_unfolded)
            self._reasoning.toggled.connect(lambda unfolds: self.reasoning_toggled.emit(self._message.id, unfolds))
            self._reasoning.show()
        if self._reasoning is not None:
            self._reasoning.show_message(message)

    def _show_progress(self, message: ShownMessage) -> None:
        is_waiting = message.state.is_live and not message.text and not message.reasoning
        if is_waiting and self._progress is None:
            self._progress = ProgressRow(self)
        if self._progress is not None:
            self._progress.setVisible(is_waiting)
            if is_waiting:
                self._progress.show_state(message)

    def _show_error(self, message: ShownMessage) -> None:
        is_error = message.state is MessageState.ERROR
        if is_error and self._error is None:
            self._error = ErrorBox(self)
            self._error.retry.connect(self.retry)
        if self._error is not None:
            self._error.setVisible(is_error)
            if is_error:
                self._error.set_text(message.error or self.tr("The answer could not be finished."))

    def set_last(self, is_last: bool) -> None:
        """The last message keeps its actions in sight."""
        if is_last != self._is_last:
            self._is_last = is_last
            self._show_actions()

    def _show_actions(self) -> None:
        wanted = self.underMouse() or (self._is_last and not self._message.is_user) or self._has_focus_inside()
        is_shown = wanted and not self._message.state.is_live
        if is_shown or self._actions is not None:
            self.actions_row.setVisible(is_shown)

    def _has_focus_inside(self) -> bool:
        focus = QGuiApplication.focusObject()
        return isinstance(focus, QWidget) and self.isAncestorOf(focus)

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._show_actions()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._show_actions()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._show_actions()

    def copy(self) -> None:
        """Put the message, as it was written, on the clipboard."""
        QGuiApplication.clipboard().setText(self._message.text)

    def selected_text(self) -> str:
        return self._text.selected_text() or ("" if self._reasoning is None else self._reasoning.selected_text())

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        selected = self.selected_text()
        if selected:
            copy_selected = QAction(self.tr("Copy selection"), menu)
            copy_selected.triggered.connect(lambda: QGuiApplication.clipboard().setText(selected))
            menu.addAction(copy_selected)
        menu.addAction(self.tr("Copy message"), self.copy)
        if not self._message.state.is_live:
            if self._message.is_user:
                menu.addAction(self.tr("Edit message"), self.actions_row.edit.emit)
            else:
                menu.addAction(self.tr("Regenerate answer"), self.actions_row.regenerate.emit)
                label = self.tr("Experts of the selection") if selected else self.tr("Experts of this answer")
                menu.addAction(label, lambda: self.experts_requested.emit(self._message.id, selected))
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(event.globalPos())

    def height_for(self, width: int) -> int:
        """Plan the parts for a text column of ``width``, inside two gutters, and return the height they take.

        :meth:`place` puts them there: when a message that grows is moved first, its pixels are moved along.
        """
        theme = current_theme()
        self._places = []
        y = self._plan_bubble(width) if self._message.is_user else self._plan_answer(width)
        actions_height = theme.px(_ACTIONS_HEIGHT)
        self._actions_place = QRect(0, y, width + 2 * GUTTER, actions_height)
        gap = _GAP_BELOW_USER if self._message.is_user else _GAP_BELOW_ANSWER
        return y + actions_height + theme.px(gap)

    def place(self) -> None:
        """Put the parts where :meth:`height_for` has planned them."""
        for part, where in self._places:
            if part.geometry() != where:
                part.setGeometry(where)
        if isinstance(self._text, MarkdownView) and self._message.text:
            self._text.place(self._text.width())
        if self._actions is not None:
            self._actions.setGeometry(self._actions_place)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.place()

    def _plan_bubble(self, width: int) -> int:
        theme = current_theme()
        padding_x, padding_y = theme.px(_BUBBLE_PADDING_X), theme.px(_BUBBLE_PADDING_Y)
        widest = round(width * _BUBBLE_SHARE) - 2 * padding_x
        text = self._text
        text_width = min(widest, text.natural_width()) if isinstance(text, ProseView) else widest
        height = self._text.height_for(text_width)
        x = GUTTER + width - text_width - padding_x
        self._places.append((self._text, QRect(x, padding_y, text_width, height)))
        bubble = QRectF(x - padding_x, 0, text_width + 2 * padding_x, height + 2 * padding_y)
        if bubble != self._bubble:
            self._bubble = bubble
            self.update()
        return round(bubble.height())

    def _plan_answer(self, width: int) -> int:
        theme = current_theme()
        y = 0
        if self._reasoning is not None:
            y = self._reasoning.height_for(width, GUTTER)
            self._places.append((self._reasoning, QRect(0, 0, GUTTER + width, y)))
        if self._message.text:
            height = self._text.height_for(width)
            self._places.append((self._text, QRect(GUTTER, y, width, height)))
            y += height
        if self._progress is not None and not self._progress.isHidden():
            height = theme.px(_PROGRESS_HEIGHT)
            self._places.append((self._progress, QRect(GUTTER, y, width, height)))
            y += height
        if self._error is not None and not self._error.isHidden():
            layout = self._error.layout()
            height = max(layout.heightForWidth(width), layout.minimumSize().height()) if layout else 0
            self._places.append((self._error, QRect(GUTTER, y, width, height)))
            y += height + theme.px(4)
        return y

    def restyle(self) -> None:
        """Take over a changed theme."""
        if isinstance(self._text, MarkdownView):
            self._text.restyle()
        else:
            self._text.restyle_plain(self._message.text)
        if self._reasoning is not None:
            self._reasoning.restyle()
        if self._error is not None:
            self._error.restyle()
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.fillRect(event.rect(), theme.color("surface"))
        if self._message.is_user:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("bubble"))
            radius = min(theme.px(_BUBBLE_RADIUS), self._bubble.height() / 2)
            painter.drawRoundedRect(self._bubble, radius, radius)
