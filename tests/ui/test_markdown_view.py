from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QMouseEvent, QTextCharFormat, QTextCursor

from ui.chat.code_view import CodeView
from ui.chat.markdown_view import MarkdownView
from ui.chat.prose_view import ProseView
from ui.chat.text_styles import BlockProperty, is_safe_link

ANSWER = """# Heading

A paragraph with **bold**, *italic*, `code` and a [link](https://example.org).

1. one
2. two
   - nested

```python
def add(a, b):
    return a + b
```

> quoted

| a | b |
|---|--:|
| 1 | 22 |

Last words."""


def contents(view: MarkdownView) -> list[tuple[str, str]]:
    return [
        (type(segment).__name__, segment.code if isinstance(segment, CodeView) else segment.toPlainText())
        for segment in view.segments
    ]


def prose_of(view: MarkdownView, number: int = 0) -> ProseView:
    segment = view.segments[number]
    assert isinstance(segment, ProseView)
    return segment


def format_at(view: ProseView, word: str) -> QTextCharFormat:
    cursor = view.document().find(word)
    assert not cursor.isNull(), word
    return cursor.charFormat()


def test_streamed_text_ends_like_text_set_at_once(qtbot: Any) -> None:
    streamed, whole = MarkdownView(), MarkdownView()
    qtbot.addWidget(streamed)
    qtbot.addWidget(whole)
    for end in range(1, len(ANSWER), 3):
        streamed.set_text(ANSWER[:end], is_final=False)
    streamed.set_text(ANSWER, is_final=True)
    whole.set_text(ANSWER, is_final=True)
    assert contents(streamed) == contents(whole)
    assert streamed.height_for(600) == whole.height_for(600)


def test_only_the_open_block_is_rendered_again(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    paragraphs = "\n\n".join(f"Paragraph number {number}." for number in range(200))
    view.set_text(paragraphs, is_final=False)
    before = view.n_renders
    for number in range(50):
        view.set_text(paragraphs + " more" * number, is_final=False)
    assert view.n_renders - before <= 50


def test_paragraphs_of_a_growing_answer_share_one_widget(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    text = "One.\n\nTwo.\n\n- three\n- four\n\nFive"
    for end in range(1, len(text) + 1):
        view.set_text(text[:end], is_final=False)
    assert contents(view) == [("ProseView", "One.\nTwo.\nthree\nfour\nFive")]


def test_what_turns_out_to_be_code_leaves_the_prose(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text("So:\n\n``", is_final=False)
    assert contents(view) == [("ProseView", "So:\n``")]
    view.set_text("So:\n\n```\nx", is_final=False)
    assert contents(view) == [("ProseView", "So:"), ("CodeView", "x")]


def test_growing_code_keeps_its_widget_and_its_scroll_position(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text("```python\nx = 1\n", is_final=False)
    code = view.segments[0]
    view.set_text("```python\nx = 1\ny = 2\n```\n\nDone", is_final=False)
    assert view.segments[0] is code
    assert isinstance(code, CodeView)
    assert code.code == "x = 1\ny = 2"


def test_code_can_be_copied_and_is_coloured(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text("```python\ndef add(a, b):\n    return a + b\n```", is_final=True)
    code = view.segments[0]
    assert isinstance(code, CodeView)
    code.copy()
    assert QGuiApplication.clipboard().text() == "def add(a, b):\n    return a + b"
    first_line = code.text_widget.document().begin().layout()
    qtbot.waitUntil(lambda: len(first_line.formats()) > 0)
    assert first_line.formats()[0].length == len("def")
    assert "Python" in code.language_label


def test_code_of_an_unknown_language_is_shown_plain(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text("```klingon\nqapla'\n```", is_final=True)
    code = view.segments[0]
    assert isinstance(code, CodeView)
    assert code.code == "qapla'"
    assert code.language_label == "Klingon"


def test_inline_formats_reach_the_document(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text("**bold** *italic* ~~gone~~ `code` [link](https://example.org)", is_final=True)
    prose = prose_of(view)
    assert format_at(prose, "bold").fontWeight() >= 600
    assert format_at(prose, "italic").fontItalic()
    assert format_at(prose, "gone").fontStrikeOut()
    assert format_at(prose, "link").anchorHref() == "https://example.org"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "ftp://example.org", "", "mailto:a@b.c"])
def test_only_web_addresses_can_be_opened(url: str, qtbot: Any) -> None:
    prose = ProseView()
    qtbot.addWidget(prose)
    assert not is_safe_link(url)
    assert prose.open_link(url) is False


def test_a_picture_is_a_link_and_nothing_is_fetched(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text("![a cat](https://example.org/cat.png)", is_final=True)
    assert prose_of(view).toPlainText() == "a cat"
    assert format_at(prose_of(view), "cat").anchorHref() == "https://example.org/cat.png"


def test_html_is_shown_as_text(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text("<b>bold</b> and <script>alert(1)</script>", is_final=True)
    assert prose_of(view).toPlainText() == "<b>bold</b> and <script>alert(1)</script>"


def test_list_items_carry_bullets_and_numbers(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text("3. three\n4. four\n   - nested\n\nafter", is_final=True)
    block = prose_of(view).document().begin()
    marks = []
    while block.isValid():
        marks.append((block.text(), block.blockFormat().property(BlockProperty.MARKER)))
        block = block.next()
    assert marks == [("three", "3."), ("four", "4."), ("nested", "•"), ("after", None)]


def test_a_text_that_begins_differently_replaces_the_old_one(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text("one\n\ntwo\n\nthree", is_final=True)
    view.set_text("four", is_final=True)
    assert contents(view) == [("ProseView", "four")]


def test_a_changed_theme_keeps_the_text(qtbot: Any, theme: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text(ANSWER, is_final=True)
    before = contents(view)
    theme.set_mode("dark")
    view.restyle()
    assert contents(view) == before
    assert format_at(prose_of(view), "paragraph").foreground().color() == theme.color("text")


def test_a_selection_runs_through_prose_and_code(qtbot: Any) -> None:
    view = MarkdownView()
    qtbot.addWidget(view)
    view.set_text("first words\n\n```\ncode line\n```\n\nlast words", is_final=True)
    view.resize(500, view.height_for(500))
    with qtbot.waitExposed(view):
        view.show()
    first, last = prose_of(view, 0), prose_of(view, 2)
    stop = first.mapFromGlobal(last.mapToGlobal(last.cursorRect(_at(last, 4)).center()))
    qtbot.mousePress(first.viewport(), Qt.MouseButton.LeftButton, pos=first.cursorRect(_at(first, 6)).center())
    move = QMouseEvent(
        QEvent.Type.MouseMove,
        QPointF(stop),
        QPointF(first.viewport().mapToGlobal(stop)),
        Qt.MouseButton.NoButton,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QGuiApplication.sendEvent(first.viewport(), move)
    assert view.selected_text() == "words\ncode line\nlast"
    qtbot.keyClick(first, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "words\ncode line\nlast"
    qtbot.mouseClick(last.viewport(), Qt.MouseButton.LeftButton)
    assert view.selected_text() == ""


def _at(view: ProseView, position: int) -> QTextCursor:
    cursor = QTextCursor(view.document())
    cursor.setPosition(position)
    return cursor
