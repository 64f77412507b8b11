from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from ui.chat.conversation_view import ConversationView
from ui.chat.message_view import MessageView
from ui.chat.reasoning_view import ReasoningView
from ui.chat.shown_message import MessageState, ShownMessage

THOUGHT = "First, **two** things.\n\n- one\n- two\n\n" + "A longer thought. " * 40
ANSWER = ShownMessage(2, "assistant", "Four.", reasoning=THOUGHT, thinking_ms=8400)


def make(qtbot: Any, message: ShownMessage) -> MessageView:
    view = MessageView(message)
    qtbot.addWidget(view)
    view.resize(600, view.height_for(600))
    view.place()
    view.show()
    return view


def reasoning_of(view: MessageView) -> ReasoningView:
    assert view.reasoning is not None
    return view.reasoning


def test_an_answer_without_reasoning_has_no_such_line(qtbot: Any) -> None:
    assert make(qtbot, replace(ANSWER, reasoning="")).reasoning is None


@pytest.mark.parametrize(
    ("thinking_ms", "label"),
    [(8400, "Thought for 8 s"), (125_000, "Thought for 2 min 5 s"), (300, "Thought briefly"), (0, "Thought briefly")],
)
def test_the_line_says_how_long_the_model_thought(qtbot: Any, thinking_ms: float, label: str) -> None:
    view = reasoning_of(make(qtbot, replace(ANSWER, thinking_ms=thinking_ms)))
    assert (view.button.text(), view.button.accessibleName()) == (label, label)


def test_reasoning_is_folded_above_the_answer_until_it_is_asked_for(qtbot: Any) -> None:
    view = make(qtbot, ANSWER)
    folded = view.height_for(600)
    assert not reasoning_of(view).is_unfolded
    assert reasoning_of(view).content.text == ""
    assert view.content.y() >= reasoning_of(view).geometry().bottom()
    view.set_unfolded(True)
    assert view.height_for(600) > folded + 100
    assert reasoning_of(view).content.text == THOUGHT
    assert view.content.y() >= reasoning_of(view).geometry().bottom()
    view.set_unfolded(False)
    assert view.height_for(600) == folded


def test_thinking_is_said_while_no_answer_has_begun(qtbot: Any) -> None:
    view = make(qtbot, replace(ANSWER, text="", state=MessageState.STREAMING, thinking_ms=0))
    assert reasoning_of(view).button.text() == "Thinking…"
    assert view.progress_text == ""
    view.set_message(replace(ANSWER, state=MessageState.STREAMING))
    assert reasoning_of(view).button.text() == "Thought for 8 s"
    view.set_message(replace(ANSWER, text="", state=MessageState.STOPPED))
    assert reasoning_of(view).button.text() == "Thought for 8 s"


def test_finished_paragraphs_are_written_once_while_thoughts_stream(qtbot: Any) -> None:
    view = make(qtbot, replace(ANSWER, text="", reasoning="One.\n\nTwo", state=MessageState.STREAMING))
    view.set_unfolded(True)
    content = reasoning_of(view).content
    first = content.segments[0]
    for n_words in range(1, 20):
        view.set_message(replace(view.message, reasoning="One.\n\nTwo" + " words" * n_words))
    assert content.segments[0] is first
    assert content.n_renders == 21


def test_copying_leaves_the_reasoning_out(qtbot: Any) -> None:
    make(qtbot, ANSWER).copy()
    assert QApplication.clipboard().text() == "Four."


def test_the_conversation_remembers_what_was_unfolded_and_keeps_its_place(qtbot: Any) -> None:
    view = ConversationView()
    qtbot.addWidget(view)
    view.resize(900, 700)
    with qtbot.waitExposed(view):
        view.show()
    view.set_messages([replace(ANSWER, id=number, text="Four. " * 60) for number in range(60)])
    last = view.view_of(59)
    assert last is not None
    top = last.mapTo(view, reasoning_of(last).pos()).y()
    qtbot.mouseClick(reasoning_of(last).button, Qt.MouseButton.LeftButton)
    assert reasoning_of(last).is_unfolded
    assert last.mapTo(view, reasoning_of(last).pos()).y() == top
    view.verticalScrollBar().setValue(0)
    assert view.view_of(59) is None
    view.jump_to_latest()
    again = view.view_of(59)
    assert again is not None and reasoning_of(again).is_unfolded


def test_it_opens_by_keyboard(qtbot: Any) -> None:
    view = ConversationView()
    qtbot.addWidget(view)
    view.resize(900, 700)
    with qtbot.waitExposed(view):
        view.show()
    view.set_messages([ANSWER])
    message = view.view_of(2)
    assert message is not None
    button = reasoning_of(message).button
    assert button.focusPolicy() & Qt.FocusPolicy.TabFocus
    assert button.accessibleDescription() == "Show the reasoning"
    button.setFocus()
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert reasoning_of(message).is_unfolded
    assert button.accessibleDescription() == "Hide the reasoning"
    qtbot.keyClick(button, Qt.Key.Key_Space)
    assert not reasoning_of(message).is_unfolded
