"""How runs and paragraphs of a message look: plain values that can be compared, and the Qt formats they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from urllib.parse import urlsplit

from PySide6.QtGui import QBrush, QFont, QFontMetricsF, QTextBlockFormat, QTextCharFormat, QTextFormat

from ui.theme import current_theme

QUOTE_INDENT, LIST_INDENT, CODE_INDENT = 18, 26, 12
_LINE_SPACING, _HEADING_SPACING = 1.52, 1.3  # of the font's size
_CODE_SIZE = 0.88  # of the text around it


class BlockProperty(IntEnum):
    """Marks on text blocks that the view paints behind the text."""

    QUOTE_DEPTH = QTextFormat.Property.UserProperty + 1
    RULE = QTextFormat.Property.UserProperty + 2
    CODE = QTextFormat.Property.UserProperty + 3
    MARKER = QTextFormat.Property.UserProperty + 4  # of a list item: its number with a dot, or "•"


def is_safe_link(url: str) -> bool:
    """Only web addresses are ever opened."""
    return urlsplit(url).scheme in {"http", "https"}


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How a run of characters looks; sizes are those of the base text size."""

    size: float
    color: str  # a token of the theme
    is_strong: bool = False
    is_heading: bool = False
    is_emphasised: bool = False
    is_struck: bool = False
    is_code: bool = False
    is_inline: bool = False  # of code: with its own ground
    link: str = ""

    def format(self) -> QTextCharFormat:
        theme = current_theme()
        char = QTextCharFormat()
        if self.is_code:
            char.setFont(theme.code_font(self.size * _CODE_SIZE))
            char.setForeground(QBrush(theme.color("code_text")))
            if self.is_inline:
                char.setBackground(QBrush(theme.color("code_inline")))
        else:
            char.setFont(theme.font(self.size, QFont.Weight.DemiBold if self.is_strong else QFont.Weight.Normal))
            char.setFontItalic(self.is_emphasised)
            char.setFontStrikeOut(self.is_struck)
            char.setForeground(QBrush(theme.color("link" if self.link else self.color)))
            if self.link:
                char.setToolTip(self.link)
        if is_safe_link(self.link):
            char.setAnchor(True)
            char.setAnchorHref(self.link)
            char.setFontUnderline(not self.is_code)
        return char


@dataclass(frozen=True, slots=True)
class ParagraphStyle:
    """How a paragraph is set; lengths are those of the base text size."""

    text: TextStyle  # of its first character, also where there is none
    before: int = 0
    after: int = 10
    n_quotes: int = 0
    n_lists: int = 0
    is_rule: bool = False
    is_code: bool = False
    marker: str = ""

    def format(self, *, is_first: bool) -> QTextBlockFormat:
        """`is_first`: nothing stands above it, so that it needs no room there."""
        theme = current_theme()
        block = QTextBlockFormat()
        block.setTopMargin(0 if is_first else theme.px(self.before))
        block.setBottomMargin(theme.px(self.after))
        spacing = _HEADING_SPACING if self.text.is_heading else _LINE_SPACING
        font = self.text.format().font()
        natural = QFontMetricsF(font).height() / font.pixelSize()
        percent = 100 * max(1.0, spacing / natural)
        block.setLineHeight(percent, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        indent = theme.px(QUOTE_INDENT) * self.n_quotes + theme.px(LIST_INDENT) * self.n_lists
        block.setLeftMargin(indent + (theme.px(CODE_INDENT) if self.is_code else 0))
        if self.n_quotes:
            block.setProperty(BlockProperty.QUOTE_DEPTH, self.n_quotes)
        if self.is_rule:
            block.setProperty(BlockProperty.RULE, True)
        if self.is_code:
            block.setProperty(BlockProperty.CODE, True)
        if self.marker:
            block.setProperty(BlockProperty.MARKER, self.marker)
        return block
