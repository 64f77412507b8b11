"""Writes Markdown tokens into a QTextDocument with the theme's formats."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from urllib.parse import urlsplit

from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QFont,
    QFontMetricsF,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextFrameFormat,
    QTextLength,
    QTextTableFormat,
)

from ui.theme import current_theme

QUOTE_INDENT, LIST_INDENT, CODE_INDENT = 18, 26, 12
_LINE_SPACING, _HEADING_SPACING = 1.52, 1.3  # of the font's size
_HEADING_SIZES = {1: 21, 2: 18, 3: 16}
_ALIGNMENTS = {
    "left": Qt.AlignmentFlag.AlignLeft,
    "center": Qt.AlignmentFlag.AlignHCenter,
    "right": Qt.AlignmentFlag.AlignRight,
}


class BlockProperty(IntEnum):
    """Marks on text blocks that the view paints behind the text."""

    QUOTE_DEPTH = QTextFormat.Property.UserProperty + 1
    RULE = QTextFormat.Property.UserProperty + 2
    CODE = QTextFormat.Property.UserProperty + 3
    MARKER = QTextFormat.Property.UserProperty + 4  # of a list item: its number with a dot, or "•"


def is_safe_link(url: str) -> bool:
    """Only web addresses are ever opened."""
    return urlsplit(url).scheme in {"http", "https"}


@dataclass
class _ListLevel:
    next_number: int | None  # None: bullets
    item_begins: bool = False

    def take_marker(self) -> str:
        self.item_begins = False
        if self.next_number is None:
            return "•"
        self.next_number += 1
        return f"{self.next_number - 1}."


@dataclass
class DocumentWriter:
    """Appends blocks to one document; call :meth:`write` once per top-level block."""

    document: QTextDocument
    text_size: float = 15
    color: str = "text"  # a token of the theme
    _lists: list[_ListLevel] = field(default_factory=list)
    _quotes: int = 0
    _is_empty: bool = True
    _strong: int = 0
    _emphasis: int = 0
    _struck: int = 0
    _link: str = ""
    _heading: int = 0

    def __post_init__(self) -> None:
        theme = current_theme()
        self.document.setDocumentMargin(0)
        self.document.setDefaultFont(theme.font(self.text_size))
        self._cursor = QTextCursor(self.document)

    def clear(self) -> None:
        """Empty the document."""
        self.document.clear()
        self._cursor = QTextCursor(self.document)
        self._is_empty = True

    def write(self, tokens: list[Token]) -> None:
        """Append one top-level block."""
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        self._cursor.beginEditBlock()
        index = 0
        while index < len(tokens):
            if tokens[index].type == "table_open":
                end = next(i for i in range(index, len(tokens)) if tokens[i].type == "table_close")
                self._table(tokens[index : end + 1])
                index = end
            else:
                self._token(tokens[index])
            index += 1
        self._cursor.endEditBlock()

    def write_plain(self, text: str) -> None:
        """Replace everything by text that is shown as it is."""
        self.clear()
        for line in text.split("\n"):
            self._begin_block(after=0)
            self._cursor.insertText(line, self._char_format())

    def _token(self, token: Token) -> None:
        match token.type:
            case "heading_open":
                self._heading = int(token.tag[1])
                self._begin_block(before=8, after=8)
            case "heading_close":
                self._heading = 0
            case "paragraph_open":
                self._begin_block(after=4 if token.hidden else 10)
            case "inline":
                self._inline(token.children or [])
            case "bullet_list_open" | "ordered_list_open":
                self._open_list(token)
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
                if not self._lists:
                    self._space_after(10)
            case "list_item_open":
                self._lists[-1].item_begins = True
            case "blockquote_open":
                self._quotes += 1
            case "blockquote_close":
                self._quotes -= 1
            case "hr":
                self._begin_block(before=6, after=12, rule=True)
            case "fence" | "code_block":
                self._nested_code(token.content)
            case "html_block":
                self._begin_block(after=10)
                self._cursor.insertText(token.content.rstrip("\n"), self._char_format())
            case _:
                pass

    def _open_list(self, token: Token) -> None:
        is_ordered = token.type == "ordered_list_open"
        self._lists.append(_ListLevel(int(token.attrGet("start") or 1) if is_ordered else None))

    def _begin_block(self, *, before: int = 0, after: int = 10, rule: bool = False, code: bool = False) -> None:
        theme = current_theme()
        block = QTextBlockFormat()
        block.setTopMargin(0 if self._is_empty else theme.px(before))
        block.setBottomMargin(theme.px(after))
        char = self._char_format()
        spacing = _HEADING_SPACING if self._heading else _LINE_SPACING
        natural = QFontMetricsF(char.font()).height() / char.font().pixelSize()
        percent = 100 * max(1.0, spacing / natural)
        block.setLineHeight(percent, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        indent = theme.px(QUOTE_INDENT) * self._quotes + theme.px(LIST_INDENT) * len(self._lists)
        block.setLeftMargin(indent + (theme.px(CODE_INDENT) if code else 0))
        if self._quotes:
            block.setProperty(BlockProperty.QUOTE_DEPTH, self._quotes)
        if rule:
            block.setProperty(BlockProperty.RULE, True)
        if code:
            block.setProperty(BlockProperty.CODE, True)
        if self._lists and self._lists[-1].item_begins:
            block.setProperty(BlockProperty.MARKER, self._lists[-1].take_marker())
        if self._is_empty:
            self._cursor.setBlockFormat(block)
            self._cursor.setBlockCharFormat(char)
            self._is_empty = False
        else:
            self._cursor.insertBlock(block, char)

    def _space_after(self, margin: int) -> None:
        block = self._cursor.blockFormat()
        block.setBottomMargin(current_theme().px(margin))
        self._cursor.setBlockFormat(block)

    def _nested_code(self, content: str) -> None:
        lines = content.rstrip("\n").split("\n")
        for number, line in enumerate(lines):
            self._begin_block(before=0, after=10 if number == len(lines) - 1 else 0, code=True)
            self._cursor.insertText(line, self._code_format(inline=False))

    def _char_format(self) -> QTextCharFormat:
        theme = current_theme()
        char = QTextCharFormat()
        size = _HEADING_SIZES.get(self._heading, self.text_size)
        is_strong = self._strong > 0 or self._heading > 0
        char.setFont(theme.font(size, QFont.Weight.DemiBold if is_strong else QFont.Weight.Normal))
        char.setFontItalic(self._emphasis > 0)
        char.setFontStrikeOut(self._struck > 0)
        char.setForeground(QBrush(theme.color("text_muted" if self._quotes else self.color)))
        if self._link:
            char.setForeground(QBrush(theme.color("link")))
            char.setToolTip(self._link)
            if is_safe_link(self._link):
                char.setAnchor(True)
                char.setAnchorHref(self._link)
                char.setFontUnderline(True)
        return char

    def _code_format(self, *, inline: bool) -> QTextCharFormat:
        theme = current_theme()
        char = QTextCharFormat()
        char.setFont(theme.code_font(_HEADING_SIZES.get(self._heading, self.text_size) * 0.88))
        char.setForeground(QBrush(theme.color("code_text")))
        if inline:
            char.setBackground(QBrush(theme.color("code_inline")))
        if self._link and is_safe_link(self._link):
            char.setAnchor(True)
            char.setAnchorHref(self._link)
        return char

    def _inline(self, children: list[Token]) -> None:
        for token in children:
            match token.type:
                case "text" | "html_inline":
                    self._cursor.insertText(token.content, self._char_format())
                case "code_inline":
                    self._cursor.insertText(f"\u2009{token.content}\u2009", self._code_format(inline=True))
                case "softbreak" | "hardbreak":
                    self._cursor.insertText("\u2028", self._char_format())
                case "strong_open":
                    self._strong += 1
                case "strong_close":
                    self._strong -= 1
                case "em_open":
                    self._emphasis += 1
                case "em_close":
                    self._emphasis -= 1
                case "s_open":
                    self._struck += 1
                case "s_close":
                    self._struck -= 1
                case "link_open":
                    self._link = str(token.attrGet("href") or "")
                case "link_close":
                    self._link = ""
                case "image":
                    self._image(token)
                case _:
                    pass

    def _image(self, token: Token) -> None:
        """Nothing is fetched from the net: a picture is shown as a link to it."""
        self._link = str(token.attrGet("src") or "")
        self._cursor.insertText(token.content or self._link, self._char_format())
        self._link = ""

    def _table(self, tokens: list[Token]) -> None:
        theme = current_theme()
        rows: list[list[tuple[Token, str]]] = []
        for token in tokens:
            if token.type == "tr_open":
                rows.append([])
            elif token.type in {"th_open", "td_open"}:
                style = str(token.attrGet("style") or "")
                align = style.removeprefix("text-align:")
            elif token.type == "inline":
                rows[-1].append((token, align))
        if not rows or not rows[0]:
            return
        table_format = QTextTableFormat()
        table_format.setBorder(1)
        table_format.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        table_format.setBorderBrush(QBrush(theme.color("border")))
        table_format.setBorderCollapse(True)
        table_format.setCellPadding(theme.px(7))
        table_format.setCellSpacing(0)
        table_format.setHeaderRowCount(1)
        table_format.setBottomMargin(0)
        n_columns = max(len(row) for row in rows)
        table_format.setColumnWidthConstraints([QTextLength(QTextLength.Type.VariableLength, 0)] * n_columns)
        table = self._cursor.insertTable(len(rows), n_columns, table_format)
        for row_index, row in enumerate(rows):
            for column, (token, align) in enumerate(row):
                cell = table.cellAt(row_index, column)
                cell_format = cell.format()
                if row_index == 0:
                    cell_format.setBackground(QBrush(theme.color("code_header")))
                cell.setFormat(cell_format)
                self._cursor = cell.firstCursorPosition()
                block = QTextBlockFormat()
                block.setAlignment(_ALIGNMENTS.get(align, _ALIGNMENTS["left"]))
                block.setLineHeight(100, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
                self._cursor.setBlockFormat(block)
                self._strong = int(row_index == 0)
                self._inline(token.children or [])
                self._strong = 0
        self._cursor = QTextCursor(self.document)
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        last = QTextBlockFormat()
        last.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        self._cursor.setBlockFormat(last)
        self._is_empty = False
