"""Renders a message's Markdown as a column of segments and re-renders only what may still change."""

from __future__ import annotations

from enum import Enum, auto

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


class _Kind(Enum):
    """What sort of segment a block needs: prose shares one with the prose before it."""

    PROSE = auto()
    TABLE = auto()
    CODE = auto()

    @classmethod
    def of(cls, block: Block) -> _Kind:
        match block[0].type:
            case "fence" | "code_block":
                return cls.CODE
            case "table_open":
                return cls.TABLE
            case _:
                return cls.PROSE


def _language(token: Token) -> str:
    words = token.info.split()
    return words[0].lower().strip("{.}") if words else ""


class MarkdownView(QWidget):
    """``set_text`` may be called with a longer text again and again; finished blocks are not touched.

    Prose blocks that follow each other share one text widget, so that a selection runs across paragraphs, and an answer
    that is still being written needs no other widget for its last paragraph.
    """

    def __init__(self, parent: QWidget | None = None, text_size: float = 15, *, color: str = "text") -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)  # grows without being painted anew
        self._text_size, self._color = text_size, color
        self._stream = MarkdownStream()
        self._segments: list[ProseView | CodeView] = []
        self._kinds: list[_Kind] = []  # of the segments
        self._open: ProseView | CodeView | None = None  # the last segment, while its last block may still change
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
        return list(self._segments)

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
            self._write(block, is_final=True)
        if last:
            self._write(last, is_final=is_final)
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
        for segment in self._segments:
            segment.hide()
            segment.deleteLater()
        self._segments, self._kinds, self._open = [], [], None
        self._stream = MarkdownStream()
        self._is_final = False

    def _write(self, block: Block, *, is_final: bool) -> None:
        """Write a block in place of the open one."""
        self.n_renders += 1
        kind = _Kind.of(block)
        if self._open is not None and kind is not self._kinds[-1]:
            self._drop_open()
        view = self._open or self._segment_for(kind)
        if isinstance(view, CodeView):
            self._write_code(view, block, is_final=is_final)
        elif is_final:
            view.add_block(block)
        else:
            view.set_open_block(block)
        self._open = None if is_final else view

    def _segment_for(self, kind: _Kind) -> ProseView | CodeView:
        """Where the next block of this kind is written."""
        if kind is _Kind.PROSE and self._kinds and self._kinds[-1] is kind:
            return self._segments[-1]
        view = self._new_code() if kind is _Kind.CODE else self._new_prose()
        self._segments.append(view)
        self._kinds.append(kind)
        return view

    def _drop_open(self) -> None:
        view, self._open = self._open, None
        if isinstance(view, ProseView):
            view.drop_open_block()
        if view is not None and (isinstance(view, CodeView) or view.is_empty()):
            self._segments.pop()
            self._kinds.pop()
            view.hide()
            view.deleteLater()

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
        for segment in self._segments:
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
        return [segment if isinstance(segment, ProseView) else segment.text_widget for segment in self._segments]

    def selected_text(self) -> str:
        """What the user has selected, if anything."""
        return self.selection.text()
