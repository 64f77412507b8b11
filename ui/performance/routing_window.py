"""A window that shows which experts served an answer or a word, and two of them side by side."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.routing import RouteBook, likeness
from ui.performance.routing_side import RoutingSide

_WIDTH, _HEIGHT = 900, 620


class RoutingWindow(QWidget):
    """One or two answers of the book; stays beside the main window and follows what is added."""

    def __init__(self, book: RouteBook, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("DialogPage")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle(self.tr("Experts of answers"))
        self.resize(_WIDTH, _HEIGHT)
        hint = QLabel(
            self.tr(
                "The stronger a cell's colour, the more calls of the chosen tokens its expert served. Choose a second "
                "answer, or the same one with other words, to compare two topics."
            ),
            self,
        )
        hint.setWordWrap(True)
        hint.setProperty("tone", "muted")
        self.left = RoutingSide(book, self.tr("First answer"), self)
        self.right = RoutingSide(book, self.tr("Second answer"), self)
        self.verdict = QLabel(self)
        self.verdict.setProperty("tone", "strong")
        self.verdict.setWordWrap(True)
        sides = QHBoxLayout()
        sides.setSpacing(20)
        sides.addWidget(self.left, 1)
        sides.addWidget(self.right, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(12)
        column.addWidget(hint)
        column.addLayout(sides, 1)
        column.addWidget(self.verdict)
        book.on_change(self._refresh)
        for side in (self.left, self.right):
            side.changed.connect(self._compare)
        self._compare()

    def show_answer(self, message_id: int, words: str = "") -> None:
        """Show an answer, or the words of it, on the left; what was there moves to the right."""
        before = self.left.answer
        if before is not None:
            self.right.words.setText(self.left.words.text())
            self.right.choose(before.message_id)
        self.left.words.clear()
        self.left.choose(message_id, words)
        self.show()
        self.raise_()
        self.activateWindow()

    def _refresh(self) -> None:
        self.left.refresh()
        self.right.refresh()

    def _compare(self) -> None:
        one, other = self.left.counts, self.right.counts
        if one is None or other is None:
            self.verdict.setText("")
        elif one.shape != other.shape:
            self.verdict.setText(self.tr("These answers are of models with different experts."))
        else:
            share = f"{100 * likeness(one, other):.0f}"
            self.verdict.setText(self.tr("{share} % of their calls go to the same experts.").format(share=share))

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.left.choose(None)
        self.right.choose(None)
