from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu

from ui.chat.message_view import MessageView
from ui.chat.shown_message import MessageState, ShownMessage

ANSWER = ShownMessage(
    2, "assistant", "An *answer*.", tokens_per_second=38.24, ttft_ms=212, n_tokens=1187, model="SmolLM2"
)


def make(qtbot: Any, message: ShownMessage) -> MessageView:
    view = MessageView(message)
    qtbot.addWidget(view)
    view.resize(600, view.height_for(600))
    view.place()
    return view


def test_an_answer_shows_its_figures(qtbot: Any) -> None:
    view = make(qtbot, ANSWER)
    figures = view.actions_row.figures(ANSWER)
    assert [part.strip() for part in figures.split("·")] == [
        "38.2 tok/s",
        "first token 212 ms",
        "1,187 tokens",
        "SmolLM2",
    ]


def test_reading_the_prompt_says_how_far_it_is(qtbot: Any) -> None:
    view = make(qtbot, ShownMessage(2, "assistant", "", MessageState.READING, n_read=312, n_to_read=1024))
    assert view.progress_text == "Reading prompt 312 / 1,024"
    view.set_message(replace(view.message, state=MessageState.STREAMING, text="It"))
    assert view.progress_text == ""


def test_waiting_looks_like_thinking(qtbot: Any) -> None:
    assert make(qtbot, ShownMessage(2, "assistant", "", MessageState.WAITING)).progress_text == "Thinking…"


def test_an_error_says_what_happened_and_offers_another_try(qtbot: Any) -> None:
    view = make(qtbot, ShownMessage(2, "assistant", "half", MessageState.ERROR, error="The prompt has 9,000 tokens."))
    assert view.error_text == "The prompt has 9,000 tokens."
    with qtbot.waitSignal(view.regenerate_requested) as asked:
        view.retry()
    assert asked.args == [2]


def test_a_stopped_answer_says_so(qtbot: Any) -> None:
    message = replace(ANSWER, state=MessageState.STOPPED)
    assert make(qtbot, message).actions_row.figures(message).startswith("Stopped")


@pytest.mark.qt_log_ignore("grabbing the keyboard", "does not support raise", extend=True)
def test_the_menu_of_an_answer_asks_for_its_experts(qtbot: Any) -> None:
    view = make(qtbot, ANSWER)
    view.show()
    point = view.rect().center()
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, point, view.mapToGlobal(point))
    QApplication.sendEvent(view, event)
    (menu,) = view.findChildren(QMenu)
    action = next(action for action in menu.actions() if action.text() == "Experts of this answer")
    with qtbot.waitSignal(view.experts_requested) as asked:
        action.trigger()
    menu.close()
    assert asked.args == [2, ""]


def test_copy_takes_the_message_as_it_was_written(qtbot: Any) -> None:
    make(qtbot, ANSWER).copy()
    assert QGuiApplication.clipboard().text() == "An *answer*."


def test_branches_can_be_stepped_through(qtbot: Any) -> None:
    view = make(qtbot, replace(ANSWER, sibling_index=1, n_siblings=3))
    assert view.actions_row.position_text == "2/3"
    with qtbot.waitSignal(view.branch_requested) as asked:
        view.actions_row.step.emit(-1)
    assert asked.args == [2, -1]


def test_what_the_user_wrote_is_shown_as_it_is(qtbot: Any) -> None:
    view = make(qtbot, ShownMessage(1, "user", "2 * 3 * 4\n# not a heading"))
    assert view.content.toPlainText() == "2 * 3 * 4\n# not a heading"  # type: ignore[union-attr]


def test_a_bubble_is_as_wide_as_its_text(qtbot: Any) -> None:
    short, long = make(qtbot, ShownMessage(1, "user", "Hi")), make(qtbot, ShownMessage(1, "user", "word " * 200))
    assert short.content.width() < 60
    assert long.content.width() > 400
    assert long.height_for(600) > short.height_for(600) * 3


def test_actions_rest_while_an_answer_is_written(qtbot: Any) -> None:
    view = make(qtbot, replace(ANSWER, state=MessageState.STREAMING))
    view.set_last(True)
    assert view.actions_row.isHidden()
    view.set_message(ANSWER)
    assert not view.actions_row.isHidden()
