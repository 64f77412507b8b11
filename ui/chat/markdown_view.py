"""Renders a message's Markdown as a column of segments and re-renders only what may still change."""

from __future__ import annotations

from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from ui.chat.code_view import CodeView
from ui.chat.joint_selection import JointSelection
from ui.chat.markdown_stream import Block, MarkdownStream
from ui.chat.prose_view import ProseView, StaticTextEdit
from ui.theme import current_theme

_GAP = 12


def _is_code(block: Block) -> bool:
    return block[0].type in {"fence", "code_block"}


def _is_table(block: Block) -> bool:
    return block[0].type == "table_open"


def _language(token: Token) -> str:
    words = token.info.split()
    return words[0].lower().strip("{.}") if words else ""


class MarkdownView(QWidget):
    """``set_text`` may be called with a longer text again and again; finished blocks are not touched.

    Finished prose blocks share one text widget, so that a selection runs across paragraphs. The open block has a
    segment of its own until it is finished.
    """

    def __init__(self, parent: QWidget | None = None, text_size: float = 15, *, color: str = "text") -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)  # grows without being painted anew
        self._text_size, self._color = text_size, color
        self._stream = MarkdownStream()
        self._segments: list[ProseView | CodeView] = []
        self._open: ProseView | CodeView | None = None
        self._text = ""
        self._is_final = False
        self.selection = JointSelection(self._text_widgets, self)
        self.n_renders = 0  # blocks written so far, for tests of the promise above

    @property
    def text(self) -> str:
        return self._text

    @property
    def segments(self) -> list[ProseView | CodeView]:
        """Everything shown, from top to bottom."""
        return [*self._segments, self._open] if self._open is not None else list(self._segments)

    def set_text(self, text: str, *, is_final: bool) -> None:
        """Show ``text``; when it is final, the last block is closed too."""
        text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
        if text == self._text and is_final == self._is_final:
            return
        if self._is_final or not self._stream.continues(text):
            self._clear()
        self._text, self._is_final = text, is_final
        closed, last = self._stream.update(text)
        for block in closed:
            self._close(block)
        if last and is_final:
            self._close(last)
        elif last:
            self._show_open(last)
        elif self._open is not None:
            self._drop_open()
        self.updateGeometry()

    def restyle(self) -> None:
        """Render everything again with the theme now in force."""
        text, is_final = self._text, self._is_final
        self._clear()
        self._text = ""
        self.set_text(text, is_final=is_final)

    def _clear(self) -> None:
        for segment in self.segments:
            segment.hide()
            segment.deleteLater()
        self._segments, self._open = [], None
        self._stream = MarkdownStream()
        self._is_final = False

    def _drop_open(self) -> None:
        if self._open is not None:
            self._open.hide()
            self._open.deleteLater()
            self._open = None

    def _close(self, block: Block) -> None:
        self.n_renders += 1
        if _is_code(block):
            view = self._open if isinstance(self._open, CodeView) else self._new_code()
            self._open = None if view is self._open else self._open
            self._write_code(view, block, is_final=True)
            self._drop_open()
            self._segments.append(view)
        elif _is_table(block):
            self._drop_open()
            table = self._new_prose()
            table.add_block(block)
            table.setProperty("is_table", True)
            self._segments.append(table)
        else:
            self._drop_open()
            last = self._segments[-1] if self._segments else None
            if not isinstance(last, ProseView) or last.property("is_table"):
                last = self._new_prose()
                self._segments.append(last)
            last.add_block(block)

    def _show_open(self, block: Block) -> None:
        self.n_renders += 1
        wanted = CodeView if _is_code(block) else ProseView
        if not isinstance(self._open, wanted):
            self._drop_open()
            self._open = self._new_code() if wanted is CodeView else self._new_prose()
        if isinstance(self._open, CodeView):
            self._write_code(self._open, block, is_final=False)
        elif isinstance(self._open, ProseView):
            self._open.set_block(block)

    def _write_code(self, view: CodeView, block: Block, *, is_final: bool) -> None:
        view.set_language(_language(block[0]))
        view.set_code(block[0].content, is_final=is_final)

    def _new_code(self) -> CodeView:
        view = CodeView(parent=self)
        self.selection.add(view.text_widget)
        view.show()
        return view

    def _new_prose(self) -> ProseView:
        view = ProseView(self, self._text_size, color=self._color, ground="surface")
        self.selection.add(view)
        view.show()
        return view

    def height_for(self, width: int) -> int:
        """The height that all segments need at ``width``."""
        return self._lay_out(width, move=False)

    def place(self, width: int) -> None:
        """Put the segments below one another."""
        self._lay_out(width, move=True)

    def _lay_out(self, width: int, *, move: bool) -> int:
        y = 0
        gap = 0
        for segment in self.segments:
            y += gap
            height = segment.height_for(width)
            if move:
                segment.setGeometry(0, y, width, height)
            y += height
            gap = current_theme().px(_GAP)
        return y

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.place(self.width())

    def _text_widgets(self) -> list[StaticTextEdit]:
        return [segment if isinstance(segment, ProseView) else segment.text_widget for segment in self.segments]

    def selected_text(self) -> str:
        """What the user has selected, if anything."""
        return self.selection.text()
