from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it.token import Token

from ui.chat.markdown_stream import MarkdownStream, top_level_blocks

LINES = st.sampled_from(
    [
        "# Title",
        "words and *more* words",
        "- item",
        "  - deeper",
        "1. first",
        "```python",
        "x = 1",
        "```",
        "",
        "> quoted",
        "| a | b |",
        "|---|---|",
        "| 1 | 2 |",
        "---",
        "    indented",
        "a\\",
        "* * *",
        "~~~",
        "2) two",
    ]
)


def outline(blocks: list[list[Token]]) -> list[tuple[str, str, str]]:
    return [(token.type, token.content, token.info) for block in blocks for token in block]


@given(st.lists(LINES, max_size=30), st.integers(1, 9))
def test_growing_text_gives_the_blocks_of_the_whole_text(lines: list[str], step: int) -> None:
    text = "\n".join(lines)
    stream = MarkdownStream()
    finished: list[list[Token]] = []
    last: list[Token] = []
    for end in [*range(0, len(text), step), len(text)]:
        closed, last = stream.update(text[:end])
        finished += closed
    whole, whole_last = MarkdownStream().update(text)
    assert outline([*finished, last]) == outline([*whole, whole_last])


def test_a_block_is_finished_when_the_next_one_begins() -> None:
    stream = MarkdownStream()
    closed, last = stream.update("First paragraph\n\nSec")
    assert [block[1].content for block in closed] == ["First paragraph"]
    assert last[1].content == "Sec"
    assert stream.update("First paragraph\n\nSecond")[0] == []


@pytest.mark.parametrize("rest", ["2. second", "2) second", "23 birds", "2"])
def test_a_number_may_go_on_with_the_list_before_it(rest: str) -> None:
    stream, finished = MarkdownStream(), []
    text = f"1. first\n\n{rest}"
    for end in range(len(text) + 1):
        closed, last = stream.update(text[:end])
        finished += closed
    whole, whole_last = MarkdownStream().update(text)
    assert outline([*finished, last]) == outline([*whole, whole_last])


def test_a_different_beginning_is_refused() -> None:
    stream = MarkdownStream()
    stream.update("one\n\ntwo\n\nthree")
    with pytest.raises(ValueError, match="does not continue"):
        stream.update("other text that is longer than before")


def test_links_defined_earlier_are_known_later() -> None:
    stream = MarkdownStream()
    stream.update("[home]: https://example.org\n\nsome words")
    _, last = stream.update("[home]: https://example.org\n\nsome words\n\nsee [home]")
    children = last[1].children or []
    assert any(token.type == "link_open" and token.attrGet("href") == "https://example.org" for token in children)


def test_blocks_are_grouped_by_their_outermost_level() -> None:
    from markdown_it import MarkdownIt

    blocks = top_level_blocks(MarkdownIt().parse("- a\n  - b\n\n> q\n\ntext"))
    assert [block[0].type for block in blocks] == ["bullet_list_open", "blockquote_open", "paragraph_open"]
