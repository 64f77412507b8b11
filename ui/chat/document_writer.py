"""Writes planned blocks into a QTextDocument, and changes only what differs when a block is written again."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import zip_longest

from markdown_it.token import Token
from PySide6.QtCore import Qt
from PySide6.QtGui import (
    QBrush,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFrameFormat,
    QTextLength,
    QTextTableFormat,
)

from ui.chat.block_plan import Paragraph, Plan, Run, Table, plan_of
from ui.chat.text_styles import ParagraphStyle, TextStyle
from ui.theme import current_theme

_ALIGNMENTS = {
    "left": Qt.AlignmentFlag.AlignLeft,
    "center": Qt.AlignmentFlag.AlignHCenter,
    "right": Qt.AlignmentFlag.AlignRight,
}


class DocumentWriter:
    """Fills one document in the theme of the moment: make another one when the theme has changed.

    The last block may be open: :meth:`rewrite` writes it again and again, in place, until :meth:`write` settles it.
    """

    def __init__(self, document: QTextDocument, text_size: float = 15, color: str = "text") -> None:
        """`color` is a token of the theme."""
        self.document, self._text_size, self._color = document, text_size, color
        document.setDocumentMargin(0)
        document.setDefaultFont(current_theme().font(text_size))
        self._is_empty = True
        self._open_from = 0  # the position at which the open block begins
        self._open: list[Paragraph] | None = None  # what it is made of; None: it has a table, or there is none
        self._settled_format = QTextBlockFormat(), QTextCharFormat()  # of the last line of what is settled
        self._char_format: Callable[[TextStyle], QTextCharFormat] = cache(TextStyle.format)
        self._block_format: Callable[..., QTextBlockFormat] = cache(ParagraphStyle.format)

    def write(self, tokens: list[Token]) -> int:
        """Write one top-level block in place of the open one, or behind what there is, and settle it.

        Returns from which position on the document differs from what it was.
        """
        changed_from = self.rewrite(tokens)
        last = self.document.lastBlock()
        self._settled_format = last.blockFormat(), last.charFormat()
        self._open, self._open_from = None, self._next
        return changed_from

    def rewrite(self, tokens: list[Token]) -> int:
        """Write one top-level block in place of the open one, or behind what there is, and leave it open.

        Returns from which position on the document differs from what it was.
        """
        plan = plan_of(tokens, self._text_size, self._color)
        paragraphs = [item for item in plan if isinstance(item, Paragraph)]
        has_table = len(paragraphs) != len(plan)
        if self._open is None or has_table or not paragraphs:
            changed_from = self.drop_open()
            self._append(plan)
        else:
            changed_from = self._change(self._open, paragraphs)
        self._open = None if has_table else paragraphs
        return changed_from

    def drop_open(self) -> int:
        """Take the open block out. Returns from which position on the document differs from what it was."""
        self._open = None
        if self._open_from == 0:
            self.clear()
        elif self._open_from < self._next:
            cursor = QTextCursor(self.document)
            cursor.beginEditBlock()
            self._cut(cursor, self._open_from - 1)
            block, char = self._settled_format  # the cut may have changed them
            self._set_formats(cursor, block, char)
            cursor.endEditBlock()
        return max(0, self._open_from - 1)

    def write_plain(self, text: str) -> None:
        """Replace everything by text that is shown as it is."""
        self.clear()
        style = TextStyle(self._text_size, self._color)
        self._append([Paragraph(ParagraphStyle(style, after=0), [Run(line, style)]) for line in text.split("\n")])

    def clear(self) -> None:
        """Empty the document."""
        self.document.clear()
        self._is_empty, self._open, self._open_from = True, None, 0

    def _append(self, plan: Plan) -> None:
        cursor = self._at_end()
        cursor.beginEditBlock()
        for item in plan:
            if isinstance(item, Table):
                cursor = self._add_table(cursor, item)
            else:
                self._begin(cursor, item.style)
                self._insert(cursor, item.runs)
        cursor.endEditBlock()

    def _change(self, old: list[Paragraph], new: list[Paragraph]) -> int:
        """Make paragraphs into others, which often only go on. Returns the first position that is not as it was."""
        place, position = 0, self._open_from
        is_first = position == 0
        for before, after in zip(old, new, strict=False):
            if before != after:
                break
            position += sum(length_of(run.text) for run in after.runs) + 1
            place += 1
        if place == len(old) == len(new):
            return position
        cursor = QTextCursor(self.document)
        cursor.beginEditBlock()
        if place < min(len(old), len(new)):
            position = self._change_paragraph(cursor, position, old[place], new[place])
            self._restyle(cursor, new[place].style, is_first=is_first and place == 0)
            place += 1
        elif place < len(old):
            self._cut(cursor, position - 1)
            self._restyle(
                cursor, new[-1].style, is_first=is_first and place == 1
            )  # a cut at its end may have changed it
        else:
            cursor.setPosition(self._end)
        for paragraph in new[place:]:
            self._begin(cursor, paragraph.style)
            self._insert(cursor, paragraph.runs)
        cursor.endEditBlock()
        return position

    def _change_paragraph(self, cursor: QTextCursor, position: int, before: Paragraph, after: Paragraph) -> int:
        """Keep what two paragraphs have in common, drop the rest of the document, and go on from there."""
        rest: list[Run] = []
        is_alike = True
        for was, is_now in zip_longest(before.runs, after.runs):
            kept = ""
            if is_alike and was is not None and is_now is not None and was.style == is_now.style:
                kept = common_start(was.text, is_now.text)
                position += length_of(kept)
            is_alike = is_alike and was is not None and kept == was.text
            if is_now is not None and len(kept) < len(is_now.text):
                is_alike = False
                rest.append(Run(is_now.text[len(kept) :], is_now.style))
        self._cut(cursor, position)
        self._insert(cursor, rest)
        return position

    def _restyle(self, cursor: QTextCursor, style: ParagraphStyle, *, is_first: bool) -> None:
        self._set_formats(cursor, self._block_format(style, is_first=is_first), self._char_format(style.text))

    @staticmethod
    def _set_formats(cursor: QTextCursor, block: QTextBlockFormat, char: QTextCharFormat) -> None:
        if cursor.blockFormat() != block:
            cursor.setBlockFormat(block)
        if cursor.blockCharFormat() != char:
            cursor.setBlockCharFormat(char)

    def _cut(self, cursor: QTextCursor, position: int) -> None:
        """Drop everything from a position on, and leave the cursor there."""
        cursor.setPosition(position)
        if position < self._end:
            cursor.setPosition(self._end, QTextCursor.MoveMode.KeepAnchor)
            cursor.removeSelectedText()

    @property
    def _end(self) -> int:
        return self.document.characterCount() - 1

    @property
    def _next(self) -> int:
        """Where a block begins that is appended now."""
        return 0 if self._is_empty else self._end + 1

    def _at_end(self) -> QTextCursor:
        cursor = QTextCursor(self.document)
        cursor.setPosition(self._end)  # moving there would lay everything out
        return cursor

    def _begin(self, cursor: QTextCursor, style: ParagraphStyle) -> None:
        block = self._block_format(style, is_first=self._is_empty)
        char = self._char_format(style.text)
        if self._is_empty:
            cursor.setBlockFormat(block)
            cursor.setBlockCharFormat(char)
            self._is_empty = False
        else:
            cursor.insertBlock(block, char)

    def _insert(self, cursor: QTextCursor, runs: list[Run]) -> None:
        for run in runs:
            cursor.insertText(run.text, self._char_format(run.style))

    def _add_table(self, cursor: QTextCursor, table: Table) -> QTextCursor:
        """Returns a cursor behind the table."""
        theme = current_theme()
        table_format = QTextTableFormat()
        table_format.setBorder(1)
        table_format.setBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        table_format.setBorderBrush(QBrush(theme.color("border")))
        table_format.setBorderCollapse(True)
        table_format.setCellPadding(theme.px(7))
        table_format.setCellSpacing(0)
        table_format.setHeaderRowCount(1)
        table_format.setBottomMargin(0)
        n_columns = max(len(row) for row in table.rows)
        table_format.setColumnWidthConstraints([QTextLength(QTextLength.Type.VariableLength, 0)] * n_columns)
        written = cursor.insertTable(len(table.rows), n_columns, table_format)
        for row_index, row in enumerate(table.rows):
            for column, content in enumerate(row):
                cell = written.cellAt(row_index, column)
                cell_format = cell.format()
                if row_index == 0:
                    cell_format.setBackground(QBrush(theme.color("code_header")))
                cell.setFormat(cell_format)
                block = QTextBlockFormat()
                block.setAlignment(_ALIGNMENTS.get(content.align, _ALIGNMENTS["left"]))
                block.setLineHeight(100, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
                inside = cell.firstCursorPosition()
                inside.setBlockFormat(block)
                self._insert(inside, content.runs)
        after = self._at_end()
        last = QTextBlockFormat()
        last.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        after.setBlockFormat(last)
        self._is_empty = False
        return after


def length_of(text: str) -> int:
    """In a document's positions, which count UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2


def common_start(first: str, second: str) -> str:
    """The characters with which both begin."""
    if second.startswith(first):
        return first
    ends = (place for place, (one, other) in enumerate(zip(first, second, strict=False)) if one != other)
    return first[: next(ends, min(len(first), len(second)))]
