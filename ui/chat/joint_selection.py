"""Lets one selection run through several texts that stand below one another."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QPoint
from PySide6.QtGui import QGuiApplication

from ui.chat.prose_view import StaticTextEdit


class JointSelection(QObject):
    """``texts`` gives what is there now, from top to bottom."""

    def __init__(self, texts: Callable[[], list[StaticTextEdit]], parent: QObject) -> None:
        super().__init__(parent)
        self._texts = texts
        self._first: StaticTextEdit | None = None
        self._anchor = 0

    def add(self, text: StaticTextEdit) -> None:
        """Take a new text in."""
        text.pressed.connect(lambda: self.begin(text))
        text.dragged.connect(self.extend)
        text.copy_requested.connect(self.copy)

    def begin(self, first: StaticTextEdit) -> None:
        """A press in one text ends every other selection."""
        self._first, self._anchor = first, first.textCursor().anchor()
        for text in self._texts():
            if text is not first:
                text.clear_selection()

    def extend(self, place: QPoint) -> None:
        """Select from where the press was to ``place`` on the screen."""
        texts = self._texts()
        if self._first not in texts:
            return
        first = texts.index(self._first)
        last = self._text_at(texts, place)
        low, high = min(first, last), max(first, last)
        for number, text in enumerate(texts):
            if number == first == last:
                continue
            if number == first:
                text.select_between(self._anchor, text.end if last > first else 0)
            elif number == last:
                position = text.cursorForPosition(text.viewport().mapFromGlobal(place)).position()
                text.select_between(0 if last > first else text.end, position)
            elif low < number < high:
                text.select_between(0, text.end)
            else:
                text.clear_selection()

    def text(self) -> str:
        """Everything selected, the texts on lines of their own."""
        return "\n".join(part for text in self._texts() if (part := text.selected_text()))

    def copy(self) -> None:
        """Put everything selected on the clipboard."""
        selected = self.text()
        if selected:
            QGuiApplication.clipboard().setText(selected)

    def _text_at(self, texts: list[StaticTextEdit], place: QPoint) -> int:
        """The text at a height of the screen: the last one that begins above it."""
        begun = [number for number, text in enumerate(texts) if text.mapToGlobal(QPoint(0, 0)).y() <= place.y()]
        return begun[-1] if begun else 0
