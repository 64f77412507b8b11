"""Shows a run of Markdown blocks (paragraphs, lists, quotes, headings, one table) as selectable text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from markdown_it.token import Token
from PySide6.QtCore import QMimeData, QPoint, QPointF, QRect, QRectF, QSize, Qt, QUrl, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QDesktopServices,
    QFontMetricsF,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QTextBlock,
    QTextCursor,
    QWheelEvent,
)
from PySide6.QtWidgets import QTextEdit, QWidget

from ui.chat.document_writer import DocumentWriter
from ui.chat.text_styles import CODE_INDENT, QUOTE_INDENT, BlockProperty, is_safe_link
from ui.theme import current_theme

_LONG_LINE = 400  # characters: wider than any bubble


class StaticTextEdit(QTextEdit):
    """A read-only text that is as high as its content and leaves scrolling to the conversation.

    Its message is told of presses and drags, so that a selection can run on into the next text.
    """

    pressed = Signal()
    dragged = Signal(QPoint)  # where the pointer is, on the screen
    copy_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setFrameShape(QTextEdit.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
            | Qt.TextInteractionFlag.LinksAccessibleByMouse
            | Qt.TextInteractionFlag.LinksAccessibleByKeyboard
        )
        self.viewport().setAutoFillBackground(False)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.document().setUndoRedoEnabled(False)
        self.document().setDocumentMargin(0)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        if event.button() == Qt.MouseButton.LeftButton:
            self.pressed.emit()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        if event.buttons() & Qt.MouseButton.LeftButton:
            self.dragged.emit(event.globalPosition().toPoint())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy_requested.emit()
        else:
            super().keyPressEvent(event)

    def select_between(self, anchor: int, position: int) -> None:
        """Select from one place in the text to another."""
        cursor = self.textCursor()
        cursor.setPosition(anchor)
        cursor.setPosition(position, QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)

    def clear_selection(self) -> None:
        cursor = self.textCursor()
        cursor.clearSelection()
        self.setTextCursor(cursor)

    @property
    def end(self) -> int:
        """The last place in the text."""
        return self.document().characterCount() - 1

    def selected_text(self) -> str:
        return self.createMimeDataFromSelection().text() if self.textCursor().hasSelection() else ""

    def createMimeDataFromSelection(self) -> QMimeData:
        data = QMimeData()
        text = self.textCursor().selection().toPlainText()
        data.setText(text.replace("\u2009", "").replace("\u2028", "\n"))
        return data


class ProseView(StaticTextEdit):
    """Blocks are appended with :meth:`add_block` and never written again; the last one may still be open."""

    def __init__(
        self, parent: QWidget | None = None, text_size: float = 15, *, color: str = "text", ground: str = ""
    ) -> None:
        """`ground`: the token of the colour behind the text; "": whatever the widgets behind it paint."""
        super().__init__(parent)
        self._text_size, self._color, self._ground = text_size, color, ground
        if ground:
            self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
            self.viewport().setAttribute(Qt.WidgetAttribute.WA_StaticContents)  # grows without being painted anew
            self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self._writer = DocumentWriter(self.document(), text_size, color)
        self.setAccessibleName(self.tr("Message text"))
        self._pressed_link = ""
        self.viewport().setMouseTracking(True)

    def add_block(self, block: list[Token]) -> None:
        """Write one more top-level block at the end, in place of the open one."""
        self._change(lambda: self._writer.write(block))

    def set_open_block(self, block: list[Token]) -> None:
        """Write a block that may still change, in place of the one that was open."""
        self._change(lambda: self._writer.rewrite(block))

    def drop_open_block(self) -> None:
        """Take the open block away."""
        self._change(self._writer.drop_open)

    def _change(self, write: Callable[[], int]) -> None:
        """Change the text from the position on that `write` returns; only the lines that change are painted anew."""
        layout = self.document().documentLayout()
        layout.blockSignals(True)  # it would have everything painted
        changed_from = write()
        self.document().size()  # lays out what was changed
        layout.blockSignals(False)
        if changed_from > self.end:
            return
        place = self.document().findBlock(changed_from)
        top = layout.blockBoundingRect(place).top()
        line = place.layout().lineForTextPosition(changed_from - place.position())
        if line.isValid():
            top = place.layout().position().y() + line.y() - line.height()
        first = max(math.floor(top), 0)
        self.viewport().update(0, first, self.viewport().width(), self.viewport().height() - first)

    def set_plain_text(self, text: str) -> None:
        """Show text as it is, without reading Markdown in it."""
        self._writer.write_plain(text)

    def restyle_plain(self, text: str) -> None:
        """Show plain text again with the theme now in force."""
        self._writer = DocumentWriter(self.document(), self._text_size, self._color)
        self._writer.write_plain(text)

    def is_empty(self) -> bool:
        return self.document().isEmpty()

    def height_for(self, width: int) -> int:
        document = self.document()
        if round(document.textWidth()) != width:
            # the text edit answers a new size by laying out for its own, still older, width
            document.documentLayout().blockSignals(True)
            document.setTextWidth(width)
            height = document.size().height()
            document.documentLayout().blockSignals(False)
            self.viewport().update()
            return math.ceil(height)
        return math.ceil(document.size().height())

    def natural_width(self) -> int:
        """The width that the text would take without any wrapping."""
        metrics = QFontMetricsF(current_theme().font(self._text_size))
        lines = self.document().toPlainText().split("\n")
        return round(max(metrics.horizontalAdvance(line[:_LONG_LINE]) for line in lines) + 2.5)

    def paintEvent(self, event: QPaintEvent) -> None:
        rects: Iterable[QRect] = event.region()  # type: ignore[assignment]
        for rect in rects:  # one after the other: all the lines from the first to the last are many more
            painter = QPainter(self.viewport())
            if self._ground:
                painter.fillRect(rect, current_theme().color(self._ground))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            self._paint_marks(painter, rect.top(), rect.bottom())
            painter.end()
            super().paintEvent(QPaintEvent(rect))

    def _paint_marks(self, painter: QPainter, top: int, bottom: int) -> None:
        document, layout = self.document(), self.document().documentLayout()
        block = document.findBlock(layout.hitTest(QPointF(0, top), Qt.HitTestAccuracy.FuzzyHit))
        if block.previous().isValid():
            block = block.previous()  # its mark may reach down to here
        while block.isValid():
            if block.blockFormat().propertyCount():
                rect = layout.blockBoundingRect(block)
                if rect.top() > bottom:
                    break
                self._paint_mark(painter, block, rect)
            block = block.next()

    def _paint_mark(self, painter: QPainter, block: QTextBlock, rect: QRectF) -> None:
        theme = current_theme()
        block_format = block.blockFormat()
        marker = str(block_format.property(BlockProperty.MARKER) or "")
        if marker:
            self._paint_marker(painter, block, rect, marker)
        painter.setPen(Qt.PenStyle.NoPen)
        depth = block_format.intProperty(BlockProperty.QUOTE_DEPTH)
        bottom = rect.bottom()
        following = block.next()
        if depth and following.isValid() and following.blockFormat().intProperty(BlockProperty.QUOTE_DEPTH):
            bottom = self.document().documentLayout().blockBoundingRect(following).top()
        for level in range(depth):
            painter.setBrush(theme.color("border_strong"))
            painter.drawRect(QRectF(level * theme.px(QUOTE_INDENT), rect.top(), 3, bottom - rect.top()))
        if block_format.boolProperty(BlockProperty.RULE):
            painter.setBrush(theme.color("border"))
            painter.drawRect(QRectF(0, rect.center().y(), self.viewport().width(), 1))
        if block_format.boolProperty(BlockProperty.CODE):
            left = block_format.leftMargin() - theme.px(CODE_INDENT)
            painter.setBrush(theme.color("code_background"))
            painter.drawRect(QRectF(left, rect.top(), self.viewport().width() - left, rect.height() + 1))

    def _paint_marker(self, painter: QPainter, block: QTextBlock, rect: QRectF, marker: str) -> None:
        """A bullet or a number in the space before the item's first line."""
        theme = current_theme()
        line = block.layout().lineAt(0)
        if not line.isValid():
            return
        right = block.blockFormat().leftMargin() - theme.px(9)
        baseline = block.layout().position().y() + line.y() + line.ascent()
        if marker == "•":
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("text_faint"))
            radius = theme.px(5) / 2
            painter.drawEllipse(QPointF(right - radius - 1, baseline - theme.px(5)), radius, radius)
        else:
            painter.setFont(theme.font(self._text_size))
            painter.setPen(theme.color("text_muted"))
            width = painter.fontMetrics().horizontalAdvance(marker)
            painter.drawText(QPointF(right - width + theme.px(2), baseline), marker)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._pressed_link = self._link_at(event.position().toPoint())
        super().mousePressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        link = self._link_at(event.position().toPoint())
        is_click = event.button() == Qt.MouseButton.LeftButton and not self.textCursor().hasSelection()
        if is_click and link and link == self._pressed_link:
            self.open_link(link)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        over_link = bool(self._link_at(event.position().toPoint()))
        self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if over_link else Qt.CursorShape.IBeamCursor)

    def _link_at(self, position: QPoint) -> str:
        return self.anchorAt(position)

    def open_link(self, link: str) -> bool:
        """Hand a web address to the desktop's browser; anything else is left alone."""
        return is_safe_link(link) and QDesktopServices.openUrl(QUrl(link))

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        event.ignore()  # the message shows its own menu
