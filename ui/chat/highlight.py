"""Colours source code: pygments tokens become text formats of the theme."""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass
from functools import cache, lru_cache
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QBrush, QTextCharFormat, QTextDocument, QTextLayout

from ui.theme import current_theme

if TYPE_CHECKING:
    from pygments.lexer import Lexer

log = logging.getLogger(__name__)

_LARGEST_STATE = 0x7FFFFFFF  # of a block's user state, which keeps the fingerprint of its colours
_COLORS = (  # the first prefix that fits wins
    ("Token.Comment.Preproc", "code_builtin"),
    ("Token.Comment", "code_comment"),
    ("Token.Keyword.Type", "code_type"),
    ("Token.Keyword", "code_keyword"),
    ("Token.Operator.Word", "code_keyword"),
    ("Token.Literal.String", "code_string"),
    ("Token.Literal.Number", "code_number"),
    ("Token.Name.Function", "code_function"),
    ("Token.Name.Class", "code_type"),
    ("Token.Name.Namespace", "code_type"),
    ("Token.Name.Decorator", "code_builtin"),
    ("Token.Name.Builtin", "code_builtin"),
    ("Token.Name.Exception", "code_type"),
    ("Token.Name.Tag", "code_keyword"),
    ("Token.Name.Attribute", "code_function"),
    ("Token.Operator", "code_operator"),
    ("Token.Punctuation", "code_operator"),
    ("Token.Generic.Heading", "code_function"),
    ("Token.Generic.Deleted", "code_error"),
    ("Token.Generic.Inserted", "code_string"),
)


@dataclass(frozen=True, slots=True)
class Span:
    """A run of one colour, as offsets into the whole text."""

    start: int
    length: int
    token: str


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer | None:
    from pygments.lexers import get_lexer_by_name  # noqa: PLC0415  (half the start-up time of pygments is its lexers)
    from pygments.util import ClassNotFound  # noqa: PLC0415

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@lru_cache(maxsize=512)
def _color_of(kind: Any) -> str:
    name = str(kind)
    return next((color for prefix, color in _COLORS if name.startswith(prefix)), "")


@dataclass(frozen=True, slots=True)
class Highlight:
    """The outcome for one text: its language's proper name and its coloured runs."""

    name: str
    spans: list[Span]


def highlight(code: str, language: str) -> Highlight:
    """Find the coloured runs of ``code``; none when the language is unknown. Takes a while the first time."""
    lexer = _lexer(language) if language else None
    return Highlight(str(lexer.name) if lexer is not None else "", spans(code, language))


class Highlighter(QObject):
    """Runs :func:`highlight` on one thread of its own; ``finished`` is emitted for the main thread."""

    finished = Signal(int, object)  # request number, Highlight

    def __init__(self) -> None:
        super().__init__()
        self._requests: SimpleQueue[tuple[int, str, str]] = SimpleQueue()
        self._n_requests = 0
        self._thread: threading.Thread | None = None

    def request(self, code: str, language: str) -> int:
        """Ask for a text to be coloured; returns the number that ``finished`` will carry."""
        self._n_requests += 1
        self._requests.put((self._n_requests, code, language))
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="highlight", daemon=True)
            self._thread.start()
        return self._n_requests

    def _work(self) -> None:
        while True:
            number, code, language = self._requests.get()
            try:
                result = highlight(code, language)
            except Exception:  # a lexer that fails on odd input costs the colours, nothing else
                log.exception("no colours for %s", language)
                result = Highlight("", [])
            try:
                self.finished.emit(number, result)
            except RuntimeError:  # the application is gone
                return


@cache
def highlighter() -> Highlighter:
    """The application's one highlighter."""
    return Highlighter()


def spans(code: str, language: str) -> list[Span]:
    """The coloured runs of ``code``; none when the language is unknown."""
    lexer = _lexer(language) if language else None
    if lexer is None:
        return []
    found: list[Span] = []
    offset = 0
    for kind, value in lexer.get_tokens(code):
        color = _color_of(kind)
        if color and not value.isspace():
            found.append(Span(offset, len(value), color))
        offset += len(value)
    return found


def apply_spans(document: QTextDocument, found: list[Span]) -> int:
    """Colour a document that begins with the highlighted text, line by line, without touching the text.

    ``found`` is in the order of the text. Only lines whose colours have changed are laid out again; returns how many.
    """
    formats: dict[str, QTextCharFormat] = {}
    n_changed = 0
    first = 0
    block = document.begin()
    while block.isValid():
        start, end = block.position(), block.position() + block.length() - 1
        while first < len(found) and found[first].start + found[first].length <= start:
            first += 1
        pieces: list[tuple[int, int, str]] = []
        number = first
        while number < len(found) and found[number].start < end:
            span = found[number]
            begin = max(start, span.start)
            pieces.append((begin - start, min(end, span.start + span.length) - begin, span.token))
            number += 1
        fingerprint = hash(tuple(pieces)) & _LARGEST_STATE
        if block.userState() != fingerprint:
            block.setUserState(fingerprint)
            block.layout().setFormats([_piece(*piece, formats) for piece in pieces])
            document.markContentsDirty(start, block.length())
            n_changed += 1
        block = block.next()
    return n_changed


def _piece(start: int, length: int, token: str, formats: dict[str, QTextCharFormat]) -> QTextLayout.FormatRange:
    char = formats.get(token)
    if char is None:
        char = formats[token] = QTextCharFormat()
        char.setForeground(QBrush(current_theme().color(token)))
        char.setFontItalic(token == "code_comment")
    piece = QTextLayout.FormatRange()
    piece.start, piece.length, piece.format = start, length, char
    return piece
