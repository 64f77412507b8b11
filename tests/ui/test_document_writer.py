"""Blocks written again: the document is the same as one written at once, and only what differs is touched."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from PySide6.QtGui import QTextDocument

from ui.chat.document_writer import DocumentWriter

pytestmark = pytest.mark.usefixtures("qapp")

PIECES = st.sampled_from(
    [
        "word ",
        "**",
        "*",
        "`",
        "\n",
        "- ",
        "1. ",
        "> ",
        "  ",
        "# ",
        "~~",
        "[a](https://b.org) ",
        "😀",
        "字",
        "---\n",
        "|a|",
    ]
)
MARKDOWN = st.lists(PIECES, min_size=1, max_size=30).map("".join)


def parsed(text: str) -> Any:
    return MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"]).parse(text)


def contents(document: QTextDocument) -> list[Any]:
    """Every block's format with its runs of characters of one format."""
    found = []
    block = document.begin()
    while block.isValid():
        runs = []
        fragments = block.begin()
        while not fragments.atEnd():
            fragment = fragments.fragment()
            runs.append((fragment.text(), fragment.charFormat()))
            fragments += 1
        found.append((block.blockFormat(), runs))
        block = block.next()
    return found


def written(*texts: str) -> QTextDocument:
    document = QTextDocument()
    writer = DocumentWriter(document)
    for text in texts:
        writer.rewrite(parsed(text))
    return document


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MARKDOWN, MARKDOWN)
def test_a_block_written_again_is_as_if_it_had_been_written_at_once(first: str, more: str) -> None:
    for before, after in ((first, first + more), (first + more, first), (first, more)):
        assert contents(written(before, after)) == contents(written(after))


QUOTED_TABLE = "> | a | b |\n> |---|---|\n> | 1 | 2 |"


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(MARKDOWN, st.lists(MARKDOWN | st.just(QUOTED_TABLE), min_size=1, max_size=4), MARKDOWN)
def test_an_open_block_behind_settled_ones_is_as_if_it_had_been_written_once(
    settled: str, forms: list[str], last: str
) -> None:
    changed, straight, without = (DocumentWriter(QTextDocument()) for _ in range(3))
    for writer in (changed, straight, without):
        writer.write(parsed(settled))
    for form in forms:
        changed.rewrite(parsed(form))
    changed.write(parsed(forms[-1]))
    straight.write(parsed(forms[-1]))
    assert contents(changed.document) == contents(straight.document)
    changed.rewrite(parsed(last))
    straight.rewrite(parsed(last))
    assert contents(changed.document) == contents(straight.document)
    for form in forms:
        without.rewrite(parsed(form))
    without.drop_open()
    once = DocumentWriter(QTextDocument())
    once.write(parsed(settled))
    assert contents(without.document) == contents(once.document)
    assert without.document.rootFrame().childFrames() == []


def test_settling_a_block_as_it_was_touches_nothing() -> None:
    document = QTextDocument()
    writer = DocumentWriter(document)
    writer.write(parsed("One."))
    writer.rewrite(parsed("Two *three*."))
    changes: list[int] = []
    document.documentLayout()
    document.contentsChange.connect(lambda at, _removed, _added: changes.append(at))
    assert writer.write(parsed("Two *three*.")) > document.characterCount() - 1
    assert changes == []


def changes_of(first: str, second: str) -> tuple[list[tuple[int, int, int]], int]:
    """Where a document was changed, as (position, removed, added), and what the writer says of it."""
    document = QTextDocument()
    writer = DocumentWriter(document)
    writer.rewrite(parsed(first))
    changes: list[tuple[int, int, int]] = []
    document.documentLayout()  # without one nobody is told of changes
    document.contentsChange.connect(lambda at, removed, added: changes.append((at, removed, added)))
    return changes, writer.rewrite(parsed(second))


def test_text_that_goes_on_is_only_appended() -> None:
    first = "Hummingbirds **hover** by flapping"
    changes, changed_from = changes_of(first, first + " their wings.")
    assert changed_from == len("Hummingbirds hover by flapping")
    assert changes == [(changed_from, 0, len(" their wings."))]


def test_a_new_item_leaves_the_items_before_it_alone() -> None:
    changes, changed_from = changes_of("1. one\n2. two 😀", "1. one\n2. two 😀\n3. three")
    assert changed_from >= len("one\ntwo ") + 2  # an emoji takes two places
    assert min(at for at, _, _ in changes) >= len("one\n")


def test_what_turns_out_to_be_emphasis_is_written_again_from_there() -> None:
    changes, changed_from = changes_of("They eat **nectar", "They eat **nectar**")
    assert changed_from == len("They eat ")
    assert min(at for at, _, _ in changes) == changed_from


def test_nothing_is_touched_when_nothing_changes() -> None:
    changes, changed_from = changes_of("A *b* c", "A *b* c")
    assert changes == []
    assert changed_from >= len("A b c")
