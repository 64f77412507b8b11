"""Paints one row of the chat list."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from ui.chat.chat_list_model import ChatRole, ShownChat
from ui.theme import current_theme, themed_pixmap

_ROW, _ROW_WITH_SNIPPET, _HEADER = 36, 52, 30


class ChatDelegate(QStyledItemDelegate):
    def sizeHint(self, _option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        theme = current_theme()
        if index.data(ChatRole.IS_HEADER):
            return QSize(80, theme.px(_HEADER))
        chat: ShownChat = index.data(ChatRole.CHAT)
        return QSize(80, theme.px(_ROW_WITH_SNIPPET if chat.snippet else _ROW))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect: QRect = option.rect
        if index.data(ChatRole.IS_HEADER):
            self._paint_header(painter, rect, str(index.data()))
        else:
            self._paint_chat(painter, rect, option.state, index.data(ChatRole.CHAT))
        painter.restore()

    def _paint_header(self, painter: QPainter, rect: QRect, text: str) -> None:
        theme = current_theme()
        painter.setFont(theme.font(12, QFont.Weight.DemiBold))
        painter.setPen(theme.color("text_faint"))
        box = rect.adjusted(theme.px(12), theme.px(4), 0, 0)
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, text)

    def _paint_chat(self, painter: QPainter, rect: QRect, state: QStyle.StateFlag, chat: ShownChat) -> None:
        theme = current_theme()
        is_selected = bool(state & QStyle.StateFlag.State_Selected)
        box = rect.adjusted(2, 1, -2, -1)
        if is_selected or state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("selected" if is_selected else "hover"))
            painter.drawRoundedRect(box, 8, 8)
        inner = box.adjusted(theme.px(10), 0, -theme.px(8), 0)
        if chat.is_pinned:
            size = theme.px(14)
            pin = themed_pixmap("pin", "text_faint", size, painter.device().devicePixelRatioF())
            painter.drawPixmap(inner.right() - size, inner.center().y() - size // 2 + 1, pin)
            inner.setRight(inner.right() - size - 6)
        font = theme.font(14, QFont.Weight.Medium if is_selected else QFont.Weight.Normal)
        title_box = QRect(inner)
        if chat.snippet:
            title_box.setHeight(inner.height() // 2 + 3)
            snippet_box = inner.adjusted(0, inner.height() // 2, 0, -4)
            self._draw_line(painter, snippet_box, chat.snippet, theme.font(12), "text_faint")
        self._draw_line(painter, title_box, chat.title, font, "text")

    def _draw_line(self, painter: QPainter, box: QRect, text: str, font: QFont, token: str) -> None:
        painter.setFont(font)
        painter.setPen(current_theme().color(token))
        line = QFontMetrics(font).elidedText(" ".join(text.split()), Qt.TextElideMode.ElideRight, box.width())
        painter.drawText(box, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, line)

    def createEditor(
        self, parent: QWidget, _option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex
    ) -> QWidget:
        editor = QLineEdit(parent)
        editor.setAccessibleName(self.tr("New title"))
        return editor

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex
    ) -> None:
        editor.setGeometry(option.rect.adjusted(2, 0, -2, 0))
