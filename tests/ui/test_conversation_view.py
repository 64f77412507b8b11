from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QWidget

from ui.chat.code_view import CodeView
from ui.chat.conversation_view import ConversationView
from ui.chat.message_view import MessageView
from ui.chat.shown_message import MessageState, ShownMessage
from ui.widgets.icon_button import IconButton

GAPS = [" "] * 12 + [".\n\n", ".\n\n- ", " **so** ", "\n"]
PARAGRAPH = "The hummingbird beats its wings some fifty times a second, and hovers. " * 4


def thread(n_messages: int) -> list[ShownMessage]:
    return [
        ShownMessage(number, "assistant" if number % 2 else "user", f"{number}. {PARAGRAPH}\n\n- a\n- b")
        for number in range(n_messages)
    ]


@pytest.fixture
def view(qtbot: Any) -> ConversationView:
    view = ConversationView()
    qtbot.addWidget(view)
    view.resize(900, 700)
    with qtbot.waitExposed(view):
        view.show()
    return view


def picture(view: ConversationView) -> QImage:
    """What is on the screen beside the scroll bar, once all that waits for it has been painted."""
    QApplication.sendPostedEvents()
    QApplication.sendEvent(view, QEvent(QEvent.Type.UpdateRequest))
    beside_scroll_bar = view.rect().adjusted(0, 0, -20, 0)
    return view.screen().grabWindow(view.winId(), *beside_scroll_bar.getRect()).toImage()


def assert_is_as_painted_at_once(view: ConversationView, what: object) -> None:
    before = picture(view)
    for widget in (view, *view.findChildren(QWidget)):
        widget.update()
    assert before == picture(view), what


def test_an_answer_that_grows_looks_as_if_it_had_been_painted_at_once(view: ConversationView) -> None:
    random, text = Random(3), ""
    answer = ShownMessage(1, "assistant", "", state=MessageState.STREAMING)
    view.set_messages([ShownMessage(0, "user", "Tell me."), answer])
    for _ in range(60):
        text += " ".join(random.choices(PARAGRAPH.split(), k=random.randint(1, 9))) + random.choice(GAPS)
        view.update_message(replace(answer, text=text))
        view.flush()
        assert_is_as_painted_at_once(view, text)


def test_blocks_of_all_kinds_that_grow_look_as_if_they_had_been_painted_at_once(
    view: ConversationView, qtbot: Any
) -> None:
    text = (
        "A list:\n\n1. one\n2. `two`\n\n```python\nx = 1\n```\n\n> quoted\n\n|a|b|\n|-|-|\n|1|2|\n\n# Head\n\nThe end."
    )
    answer = ShownMessage(1, "assistant", "", state=MessageState.STREAMING)
    view.set_messages([ShownMessage(0, "user", "Tell me."), answer])
    for end in range(2, len(text), 3):
        view.update_message(replace(answer, text=text[:end]))
        view.flush()
        qtbot.waitUntil(lambda: not any(code.is_being_coloured for code in view.findChildren(CodeView)))
        assert_is_as_painted_at_once(view, text[:end])


def test_a_view_that_is_scrolled_looks_as_if_it_had_been_painted_at_once(view: ConversationView, qtbot: Any) -> None:
    view.set_messages(thread(12))
    picture(view)
    bar = view.verticalScrollBar()
    for step in (-400, -24, -7, -24, 24, 300, -24):
        bar.setValue(bar.value() + step)
        assert_is_as_painted_at_once(view, step)
    button = view.findChild(IconButton)
    assert view.is_jump_shown
    assert button.isHidden(), "it would have everything painted anew at every step"
    qtbot.waitUntil(button.isVisible)
    assert_is_as_painted_at_once(view, "at rest")


def test_a_thousand_messages_open_with_few_widgets(view: ConversationView, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def make(message: ShownMessage, *arguments: Any) -> MessageView:
        made.append(message.id)
        return MessageView(message, *arguments)

    monkeypatch.setattr("ui.chat.conversation_view.MessageView", make)
    view.set_messages(thread(1000))
    assert 0 < view.n_widgets <= len(made) < 30


def test_scrolling_through_a_long_chat_keeps_few_widgets(view: ConversationView) -> None:
    view.set_messages(thread(300))
    bar = view.verticalScrollBar()
    for position in range(bar.maximum(), 0, -900):
        bar.setValue(position)
        assert view.n_widgets < 40
    bar.setValue(0)
    assert view.view_of(0) is not None
    assert view.view_of(299) is None


def test_a_new_thread_is_shown_from_its_end(view: ConversationView) -> None:
    view.set_messages(thread(50))
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    assert view.view_of(49) is not None


def test_growing_text_is_followed_at_the_end(view: ConversationView) -> None:
    view.set_messages(thread(20))
    for _ in range(5):
        last = view.message(19)
        assert last is not None
        view.change(19, text=last.text + "\n\n" + PARAGRAPH)
        view.flush()
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()


def test_a_reader_further_up_is_left_alone(view: ConversationView, qtbot: Any) -> None:
    view.set_messages(thread(40))
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() - 2500)
    assert not view.follows
    top = next(number for number in range(40) if (v := view.view_of(number)) is not None and v.y() + v.height() > 0)
    shown = view.view_of(top)
    assert shown is not None
    y = shown.y()
    view.change(39, text=PARAGRAPH * 10)
    view.flush()
    view.append(ShownMessage(40, "assistant", "new"))
    shown = view.view_of(top)
    assert shown is not None and shown.y() == y
    assert view.is_jump_shown
    view.jump_to_latest()
    assert view.follows and not view.is_jump_shown
    assert bar.value() == bar.maximum()


def test_reaching_the_end_follows_again(view: ConversationView) -> None:
    view.set_messages(thread(40))
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() - 1500)
    bar.setValue(bar.maximum())
    assert view.follows


def test_what_the_user_says_is_always_followed(view: ConversationView) -> None:
    view.set_messages(thread(40))
    view.verticalScrollBar().setValue(100)
    view.append(ShownMessage(40, "user", "a question"))
    assert view.follows
    assert view.view_of(40) is not None


def test_many_updates_become_few_redraws(view: ConversationView, qtbot: Any) -> None:
    view.set_messages([ShownMessage(0, "user", "q"), ShownMessage(1, "assistant", "", MessageState.WAITING)])
    text = ""
    for number in range(500):
        text += f"word{number} "
        view.change(1, text=text, state=MessageState.STREAMING)
    message_view = view.view_of(1)
    assert message_view is not None
    assert message_view.message.text == ""
    qtbot.waitUntil(lambda: message_view.message.text == text)
    assert message_view.content.n_renders <= 2  # type: ignore[union-attr]


def test_resizing_keeps_the_reader_at_the_end(view: ConversationView) -> None:
    view.set_messages(thread(60))
    view.resize(560, 500)
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    last = view.view_of(59)
    assert last is not None and last.y() + last.height() <= view.viewport().height()


def test_another_branch_keeps_the_widgets_of_what_stays(view: ConversationView) -> None:
    messages = thread(4)
    view.set_messages(messages)
    first = view.view_of(0)
    view.set_messages([*messages[:3], ShownMessage(99, "assistant", "another answer")], keep_position=True)
    assert view.view_of(0) is first
    assert view.view_of(3) is None
    assert view.view_of(99) is not None


def test_what_is_costly_is_asked_for_only_near_the_view(view: ConversationView) -> None:
    asked: list[int] = []

    def prepare(message: ShownMessage) -> ShownMessage:
        asked.append(message.id)
        return message

    view.prepare = prepare
    view.set_messages(thread(500))
    assert 0 < len(asked) < 30
    assert 0 not in asked


def test_home_and_end_move_through_the_thread(view: ConversationView, qtbot: Any) -> None:
    view.set_messages(thread(40))
    qtbot.keyClick(view, Qt.Key.Key_Home)
    assert view.verticalScrollBar().value() == 0
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert view.follows
