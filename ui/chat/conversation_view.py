"""The scrolling list of messages: only those near the view exist as widgets, however long the chat."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from ui.chat.message_view import GUTTER, MessageView
from ui.chat.shown_message import ShownMessage
from ui.theme import current_theme
from ui.widgets.icon_button import IconButton
from ui.widgets.throttle import Throttle

COLUMN_WIDTH = 760
_MARGIN_X, _MARGIN_TOP, _MARGIN_BOTTOM = 28, 28, 12
_UPDATE_MS = 24  # about 40 updates a second while an answer streams
_FOLLOW_SLACK_PX = 32
_REST_MS = 200  # after a scroll
_MAX_PASSES = 6


@dataclass
class _Row:
    message: ShownMessage
    height: int
    width: int = 0  # at which the height was measured; 0: only estimated
    view: MessageView | None = None


class ConversationView(QAbstractScrollArea):
    """Messages are given as data; heights of rows never seen are estimated and corrected when they come near.

    ``prepare`` is asked for what is costly to know of a message (its siblings) just before it becomes a widget.
    """

    regenerate_requested = Signal(int)
    edit_requested = Signal(int)
    branch_requested = Signal(int, int)
    experts_requested = Signal(int, str)
    followed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setObjectName("Conversation")
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # nothing behind it is painted with it
        self.setAccessibleName(self.tr("Conversation"))
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._rows: list[_Row] = []
        self._index: dict[int, int] = {}
        self._offsets: list[int] = [0]
        self._follows = True
        self._is_adjusting = False
        self._dirty: set[int] = set()
        self._unfolded: set[int] = set()  # messages whose reasoning is shown
        self.prepare: Callable[[ShownMessage], ShownMessage] = lambda message: message
        self._update = Throttle(self._apply_updates, _UPDATE_MS, self)
        self._jump = IconButton("arrow-down", self.tr("Jump to latest"), self, size=34, icon_size=17, kind="round")
        self._jump.clicked.connect(self.jump_to_latest)
        self._jump.hide()
        self._offers_jump = False
        self._rest = QTimer(self)  # runs while the view is being scrolled
        self._rest.setSingleShot(True)
        self._rest.setInterval(_REST_MS)
        self._rest.timeout.connect(self._show_jump)
        self.verticalScrollBar().setSingleStep(48)
        current_theme().changed.connect(self._restyle)

    # -- what is shown

    @property
    def messages(self) -> list[ShownMessage]:
        return [row.message for row in self._rows]

    @property
    def n_widgets(self) -> int:
        """How many messages exist as widgets just now."""
        return sum(row.view is not None for row in self._rows)

    @property
    def is_jump_shown(self) -> bool:
        """Whether the way back to the newest text is offered."""
        return self._offers_jump

    @property
    def follows(self) -> bool:
        """Whether the view stays at the newest text."""
        return self._follows

    def set_messages(self, messages: list[ShownMessage], *, keep_position: bool = False) -> None:
        """Show another thread, from its end, or from the same place if it is a branch of the same one."""
        kept = {row.message.id: row for row in self._rows} if keep_position else {}
        rows = []
        for message in messages:
            row = kept.pop(message.id, None)
            if row is None:
                rows.append(_Row(message, self._estimate(message)))
            else:
                row.message = message
                if row.view is not None:
                    row.message = self.prepare(message)
                    row.view.set_message(row.message)
                    row.width = 0
                rows.append(row)
        for row in kept.values() if keep_position else self._rows:
            self._drop(row)
        self._rows = rows
        self._index = {row.message.id: number for number, row in enumerate(rows)}
        self._dirty.clear()
        self._follows = self._follows if keep_position else True
        self._relayout(anchor=None if self._follows else (0, self.verticalScrollBar().value()))
        self._mark_last()

    def append(self, message: ShownMessage) -> None:
        """Add a message at the end."""
        self._index[message.id] = len(self._rows)
        self._rows.append(_Row(message, self._estimate(message)))
        if message.is_user:
            self._follows = True
        self._relayout(self._anchor())
        self._mark_last()

    def update_message(self, message: ShownMessage) -> None:
        """Show a message's newer state; many calls become one redraw."""
        number = self._index.get(message.id)
        if number is not None:
            self._rows[number].message = message
            self._dirty.add(message.id)
            self._update.request()

    def change(self, message_id: int, **changes: object) -> None:
        """Change some fields of a shown message."""
        number = self._index.get(message_id)
        if number is not None:
            self.update_message(replace(self._rows[number].message, **changes))  # type: ignore[arg-type]

    def message(self, message_id: int) -> ShownMessage | None:
        number = self._index.get(message_id)
        return None if number is None else self._rows[number].message

    def flush(self) -> None:
        """Draw pending updates now."""
        self._update.flush()

    def view_of(self, message_id: int) -> MessageView | None:
        """The widget of a message, if it is near the view."""
        number = self._index.get(message_id)
        return None if number is None else self._rows[number].view

    def jump_to_latest(self) -> None:
        """Go to the end and stay there."""
        self._follows = True
        self._rest.stop()
        self._relayout(None)

    def _apply_updates(self) -> None:
        dirty, self._dirty = self._dirty, set()
        for message_id in dirty:
            row = self._rows[self._index[message_id]]
            if row.view is not None:
                row.view.set_message(row.message)
            row.width = 0
        self._relayout(self._anchor())

    # -- geometry

    def _column(self) -> tuple[int, int]:
        """Left edge and width of the text column."""
        theme = current_theme()
        available = self.width() - 2 * theme.px(_MARGIN_X)  # the scroll bar lies inside the margin
        width = max(160, min(theme.px(COLUMN_WIDTH), available))
        return max(0, (self.width() - width) // 2), width

    def _estimate(self, message: ShownMessage) -> int:
        theme = current_theme()
        _, width = self._column()
        characters_per_line = max(20, width // theme.px(8))
        lines = sum(1 + len(line) // characters_per_line for line in message.text.split("\n"))
        return theme.px(60) + lines * theme.px(22)

    def _anchor(self) -> tuple[int, int] | None:
        """The row at the top of the view and how far it is scrolled out, or None when the end is followed."""
        if self._follows or not self._rows:
            return None
        value = self.verticalScrollBar().value() - self._top_margin()
        number = max(0, min(len(self._rows) - 1, bisect_right(self._offsets, value) - 1))
        return number, value - self._offsets[number]

    def _top_margin(self) -> int:
        return current_theme().px(_MARGIN_TOP)

    def _relayout(self, anchor: tuple[int, int] | None) -> None:
        """Settle heights and the scroll position, build what is near, drop what is far, and place the widgets."""
        if self.viewport().width() < 50:
            return
        self._is_adjusting = True
        try:
            for _ in range(_MAX_PASSES):
                self._offsets = [0, *accumulate(row.height for row in self._rows)]
                self._set_scroll(anchor)
                if not self._build_near():
                    break
            self._place()
        finally:
            self._is_adjusting = False
        self._show_jump()

    def _set_scroll(self, anchor: tuple[int, int] | None) -> None:
        theme = current_theme()
        total = self._offsets[-1] + self._top_margin() + theme.px(_MARGIN_BOTTOM)
        bar = self.verticalScrollBar()
        page = self.viewport().height()
        bar.setPageStep(page)
        bar.setRange(0, max(0, total - page))
        if self._follows:
            bar.setValue(bar.maximum())
        elif anchor is not None:
            number, offset = anchor
            bar.setValue(self._offsets[min(number, len(self._offsets) - 1)] + offset + self._top_margin())

    def _near(self, margin: int) -> range:
        top = self.verticalScrollBar().value() - self._top_margin()
        first = bisect_right(self._offsets, top - margin) - 1
        last = bisect_right(self._offsets, top + self.viewport().height() + margin)
        return range(max(0, first), min(len(self._rows), max(0, last)))

    def _build_near(self) -> bool:
        """Make and measure the rows near the view; return whether a height has changed."""
        _, width = self._column()
        has_changed = False
        for number in self._near(self.viewport().height() // 4):
            row = self._rows[number]
            if row.view is None:
                row.message = self.prepare(row.message)
                row.view = self._make(row.message)
                row.view.set_last(number == len(self._rows) - 1)
                row.width = 0
            if row.width != width:
                height = row.view.height_for(width)
                row.width = width
                has_changed = has_changed or height != row.height
                row.height = height
        return has_changed

    def _place(self) -> None:
        left, width = self._column()
        top = self._top_margin() - self.verticalScrollBar().value()
        keep = self._near(self.viewport().height() * 2)
        for number, row in enumerate(self._rows):
            if row.view is None:
                continue
            if number in keep:
                row.view.move(left - GUTTER, top + self._offsets[number])  # by itself: then its pixels are moved along
                row.view.resize(width + 2 * GUTTER, row.height)
                row.view.place()
                if row.view.isHidden():
                    row.view.show()
            elif not row.view.selected_text():
                self._drop(row)
            else:
                row.view.hide()

    def _make(self, message: ShownMessage) -> MessageView:
        view = MessageView(message, self.viewport())
        view.regenerate_requested.connect(self.regenerate_requested)
        view.edit_requested.connect(self.edit_requested)
        view.branch_requested.connect(self.branch_requested)
        view.experts_requested.connect(self.experts_requested)
        view.reasoning_toggled.connect(self.unfold_reasoning)
        view.set_unfolded(message.id in self._unfolded)
        return view

    def unfold_reasoning(self, message_id: int, is_unfolded: bool) -> None:
        """Show a message's reasoning, or only that there is some; its line stays where it is on the screen."""
        (self._unfolded.add if is_unfolded else self._unfolded.discard)(message_id)
        number = self._index.get(message_id)
        if number is None:
            return
        row = self._rows[number]
        if row.view is not None:
            row.view.set_unfolded(is_unfolded)
        row.width = 0
        self._follows = self._follows and row.message.state.is_live
        self._relayout(self._anchor())

    def _drop(self, row: _Row) -> None:
        if row.view is not None:
            row.view.hide()
            row.view.deleteLater()
            row.view = None

    def _mark_last(self) -> None:
        for number, row in enumerate(self._rows):
            if row.view is not None:
                row.view.set_last(number == len(self._rows) - 1)

    def _show_jump(self) -> None:
        """Offer the way back. While the view is scrolled the button is hidden: what lies below another widget is
        painted anew at every move, and all else need not be."""
        bar = self.verticalScrollBar()
        self._offers_jump = not self._follows and bar.maximum() - bar.value() > _FOLLOW_SLACK_PX
        self._jump.setVisible(self._offers_jump and not self._rest.isActive())
        if not self._jump.isHidden():
            left = (self.viewport().width() - self._jump.width()) // 2
            self._jump.move(left, self.height() - self._jump.height() - 12)
            self._jump.raise_()

    def _restyle(self) -> None:
        for row in self._rows:
            row.width = 0
            if row.view is not None:
                row.view.restyle()
        self._relayout(self._anchor())

    # -- events

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self.viewport()).fillRect(event.rect(), current_theme().color("surface"))

    def scrollContentsBy(self, _dx: int, _dy: int) -> None:
        if self._is_adjusting:
            return
        self._rest.start()
        bar = self.verticalScrollBar()
        self._follows = bar.value() >= bar.maximum() - _FOLLOW_SLACK_PX
        self.followed.emit(self._follows)
        anchor = self._anchor()
        at_end = self._follows and bar.value() < bar.maximum()
        if at_end:  # close to the end is not yet the end: stay put until new text comes
            self._follows = False
            self._relayout(self._anchor())
            self._follows = True
            self._show_jump()
        else:
            self._relayout(anchor)

    def resizeEvent(self, event: QResizeEvent) -> None:
        anchor = self._anchor()
        super().resizeEvent(event)
        _, width = self._column()
        for row in self._rows:
            if row.view is None and row.width and row.width != width:
                row.height = max(1, row.height * row.width // width)
                row.width = 0
        self._relayout(anchor)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        bar = self.verticalScrollBar()
        bar.ensurePolished()  # the style sheet takes the attribute away
        bar.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self._relayout(self._anchor())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        moves: dict[int, Callable[[], None]] = {
            Qt.Key.Key_Home: lambda: bar.setValue(0),
            Qt.Key.Key_End: self.jump_to_latest,
        }
        if event.key() in moves:
            moves[event.key()]()
        else:
            super().keyPressEvent(event)
