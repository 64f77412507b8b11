"""Shows one code block: language, copy button, coloured text that scrolls sideways."""

from __future__ import annotations

from time import perf_counter

from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtGui import QGuiApplication, QPainter, QPaintEvent, QResizeEvent, QTextCursor, QTextOption, QWheelEvent
from PySide6.QtWidgets import QLabel, QWidget

from ui.chat.highlight import Highlight, apply_spans, highlighter
from ui.chat.prose_view import StaticTextEdit
from ui.theme import current_theme
from ui.widgets.icon_button import IconButton

_COPIED_MS = 1600
_RECOLOUR_LOAD = 6  # colouring that took t waits 6 t before the growing code is coloured again
_HEADER, _PADDING, _RADIUS, _SCROLL_BAR = 34, 12, 10, 14


class _CodeText(StaticTextEdit):
    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWordWrapMode(QTextOption.WrapMode.NoWrap)
        self.setLineWrapMode(StaticTextEdit.LineWrapMode.NoWrap)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)

    def wheelEvent(self, event: QWheelEvent) -> None:
        sideways = event.angleDelta().x() or (event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
        if sideways and self.horizontalScrollBar().maximum() > 0:
            delta = event.angleDelta().x() or event.angleDelta().y()
            bar = self.horizontalScrollBar()
            bar.setValue(bar.value() - delta)
            event.accept()
        else:
            event.ignore()


class CodeView(QWidget):
    """Text may grow while it is written: new characters are appended, colours follow at their own pace."""

    def __init__(self, language: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.language = ""
        self._code = ""
        self._recolour_at = 0.0
        self._asked_s = 0.0
        self._request: int | None = None  # the answer of the highlighter that is waited for
        self._wants_colour = False
        highlighter().finished.connect(self._on_highlight)
        theme = current_theme()
        self._label = QLabel(self)
        self._label.setProperty("tone", "small")
        self._copy = IconButton("copy", self.tr("Copy code"), self, size=26, icon_size=15)
        self._copy.clicked.connect(self.copy)
        self._text = _CodeText(self)
        self._text.document().setDefaultFont(theme.code_font(13))
        self._text.setAccessibleName(self.tr("Code"))
        self._restore = QTimer(self)
        self._restore.setSingleShot(True)
        self._restore.timeout.connect(self._show_copy_icon)
        self.set_language(language)

    @property
    def code(self) -> str:
        return self._code

    @property
    def language_label(self) -> str:
        return self._label.text()

    @property
    def text_widget(self) -> StaticTextEdit:
        return self._text

    def set_language(self, language: str) -> None:
        if language != self.language or not self._label.text():
            self.language = language
            self._label.setText(language.capitalize() or self.tr("Code"))

    def set_code(self, code: str, *, is_final: bool) -> None:
        """Show ``code``; while it is not final, colours may lag a moment behind."""
        code = code.removesuffix("\n")
        if code != self._code:
            cursor = QTextCursor(self._text.document())
            if self._code and code.startswith(self._code):
                cursor.movePosition(QTextCursor.MoveOperation.End)
                cursor.insertText(code[len(self._code) :])
            else:
                cursor.select(QTextCursor.SelectionType.Document)
                cursor.insertText(code)
            self._code = code
        self._wants_colour = bool(self.language)
        if is_final or perf_counter() >= self._recolour_at:
            self._ask_for_colour()

    @property
    def is_being_coloured(self) -> bool:
        """Whether colours are still to come for what has been shown."""
        return self._request is not None

    def _ask_for_colour(self) -> None:
        if self._wants_colour and self._request is None:
            self._wants_colour = False
            self._asked_s = perf_counter()
            self._request = highlighter().request(self._code, self.language)

    def _on_highlight(self, request: int, result: Highlight) -> None:
        if request != self._request:
            return
        self._request = None
        now_s = perf_counter()
        self._recolour_at = now_s + (now_s - self._asked_s) * _RECOLOUR_LOAD
        if result.name:
            self._label.setText(result.name)
        apply_spans(self._text.document(), result.spans)
        self._ask_for_colour()  # for what has been written meanwhile

    def height_for(self, width: int) -> int:
        theme = current_theme()
        size = self._text.document().size()
        overflows = size.width() > width - 2 * theme.px(_PADDING + 2)
        text_height = round(size.height() + 0.49) + (_SCROLL_BAR if overflows else 0)
        return theme.px(_HEADER) + text_height + 2 * theme.px(_PADDING)

    def copy(self) -> None:
        """Put the code on the clipboard and say so for a moment."""
        QGuiApplication.clipboard().setText(self._code)
        self._copy.set_icon("check", "ok")
        self._copy.set_label(self.tr("Copied"))
        self._restore.start(_COPIED_MS)

    def _show_copy_icon(self) -> None:
        self._copy.set_icon("copy", "text_muted")
        self._copy.set_label(self.tr("Copy code"))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        theme = current_theme()
        header, padding = theme.px(_HEADER), theme.px(_PADDING)
        inner_height = self.height() - header
        self._label.setGeometry(padding + 2, 0, self.width() - 80, header)
        self._copy.move(self.width() - self._copy.width() - 6, (header - self._copy.height()) // 2)
        inner_width = self.width() - 2 * (padding + 2)
        self._text.setGeometry(padding + 2, header + padding, inner_width, inner_height - 2 * padding)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(0.5, 0.5, self.width() - 1, self.height() - 1)
        painter.setPen(theme.color("border"))
        painter.setBrush(theme.color("code_background"))
        painter.drawRoundedRect(box, _RADIUS, _RADIUS)
        painter.setClipRect(QRectF(0, 0, self.width(), theme.px(_HEADER)))
        painter.setBrush(theme.color("code_header"))
        painter.drawRoundedRect(box, _RADIUS, _RADIUS)
        painter.setClipping(False)
        painter.drawLine(1, theme.px(_HEADER), self.width() - 2, theme.px(_HEADER))
