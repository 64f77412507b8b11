from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import QMimeData, Qt

from ui.chat.composer import MAX_LINES, Composer


@pytest.fixture
def composer(qtbot: Any) -> Composer:
    composer = Composer()
    qtbot.addWidget(composer)
    composer.resize(600, 60)
    composer.set_ready(True)
    with qtbot.waitExposed(composer):
        composer.show()
    return composer


def test_enter_sends_and_empties_the_field(composer: Composer, qtbot: Any) -> None:
    qtbot.keyClicks(composer.field, "  What is a hummingbird? ")
    with qtbot.waitSignal(composer.submitted) as sent:
        qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert sent.args == ["What is a hummingbird?"]
    assert composer.text() == ""


def test_shift_enter_breaks_the_line(composer: Composer, qtbot: Any) -> None:
    qtbot.keyClicks(composer.field, "one")
    qtbot.keyClick(composer.field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    qtbot.keyClicks(composer.field, "two")
    assert composer.text().splitlines() == ["one", "two"]


def test_blank_text_is_not_sent(composer: Composer, qtbot: Any) -> None:
    qtbot.keyClicks(composer.field, "   ")
    with qtbot.assertNotEmitted(composer.submitted):
        qtbot.keyClick(composer.field, Qt.Key.Key_Return)


def test_the_field_grows_with_the_text_up_to_a_limit(composer: Composer) -> None:
    heights = []
    for n_lines in (1, 3, MAX_LINES, MAX_LINES + 20):
        composer.set_text("\n".join(["line"] * n_lines))
        heights.append(composer.field.height())
    assert heights[0] < heights[1] < heights[2] == heights[3]


def test_without_a_model_the_text_is_kept(composer: Composer, qtbot: Any) -> None:
    composer.set_ready(False, "waiting")
    qtbot.keyClicks(composer.field, "hello")
    with qtbot.waitSignal(composer.refused), qtbot.assertNotEmitted(composer.submitted):
        qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert composer.text() == "hello"


def test_while_generating_one_can_type_and_stop_but_not_send(composer: Composer, qtbot: Any) -> None:
    composer.set_generating(True)
    qtbot.keyClicks(composer.field, "next")
    with qtbot.assertNotEmitted(composer.submitted):
        qtbot.keyClick(composer.field, Qt.Key.Key_Return)
    assert composer.text() == "next"
    with qtbot.waitSignal(composer.stop_requested):
        qtbot.keyClick(composer.field, Qt.Key.Key_Escape)
    with qtbot.waitSignal(composer.stop_requested):
        qtbot.mouseClick(composer.button, Qt.MouseButton.LeftButton)


def test_up_in_an_empty_field_asks_for_the_last_message(composer: Composer, qtbot: Any) -> None:
    with qtbot.waitSignal(composer.edit_last_requested):
        qtbot.keyClick(composer.field, Qt.Key.Key_Up)
    qtbot.keyClicks(composer.field, "text")
    with qtbot.assertNotEmitted(composer.edit_last_requested):
        qtbot.keyClick(composer.field, Qt.Key.Key_Up)


def test_escape_ends_editing(composer: Composer, qtbot: Any) -> None:
    composer.set_editing(True)
    with qtbot.waitSignal(composer.edit_cancelled):
        qtbot.keyClick(composer.field, Qt.Key.Key_Escape)
    assert not composer.is_editing


def test_pasted_text_loses_its_formats(composer: Composer) -> None:
    data = QMimeData()
    data.setHtml("<h1>Big</h1>")
    data.setText("Big")
    composer.field.insertFromMimeData(data)
    assert composer.text() == "Big"
    assert "<h1" not in composer.field.toHtml()


def test_a_restored_draft_is_no_new_draft(composer: Composer, qtbot: Any) -> None:
    with qtbot.assertNotEmitted(composer.draft_changed):
        composer.set_text("draft")
    with qtbot.waitSignal(composer.draft_changed):
        qtbot.keyClicks(composer.field, "!")
