from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import pytest
from PySide6.QtCore import Qt

from ui.chat.chat_list_model import ChatListModel, ShownChat
from ui.chat.sidebar import Sidebar


def chats() -> list[ShownChat]:
    """Of this moment: a test run may go on past midnight."""
    now = datetime.now()
    return [
        ShownChat(1, "Pinned one", now - timedelta(days=9), is_pinned=True),
        ShownChat(2, "Just now", now),
        ShownChat(3, "Long ago", now - timedelta(days=3)),
    ]


def titles(model: ChatListModel) -> list[str]:
    return [str(model.index(row, 0).data()) for row in range(model.rowCount())]


@pytest.fixture
def sidebar(qtbot: Any) -> Sidebar:
    sidebar = Sidebar()
    qtbot.addWidget(sidebar)
    sidebar.resize(250, 500)
    sidebar.set_chats(chats(), 2)
    with qtbot.waitExposed(sidebar):
        sidebar.show()
    return sidebar


def test_chats_are_grouped(sidebar: Sidebar) -> None:
    assert titles(sidebar.model) == ["Pinned", "Pinned one", "Today", "Just now", "Earlier", "Long ago"]


def test_a_chat_of_yesterday_is_an_earlier_one() -> None:
    model = ChatListModel()
    model.set_chats([ShownChat(1, "x", datetime(2026, 5, 1, 23, 59))], today=date(2026, 5, 2))
    assert titles(model) == ["Earlier", "x"]


def test_filling_the_list_selects_nothing_by_itself(sidebar: Sidebar, qtbot: Any) -> None:
    with qtbot.assertNotEmitted(sidebar.chat_selected):
        sidebar.set_chats(chats(), 3)
    current = sidebar.model.chat_at(sidebar.list.currentIndex().row())
    assert current is not None and current.id == 3


def test_a_click_opens_a_chat(sidebar: Sidebar, qtbot: Any) -> None:
    place = sidebar.list.visualRect(sidebar.model.index(5, 0)).center()
    with qtbot.waitSignal(sidebar.chat_selected) as opened:
        qtbot.mouseClick(sidebar.list.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert opened.args == [3]


def test_headers_cannot_be_chosen(sidebar: Sidebar) -> None:
    assert sidebar.model.flags(sidebar.model.index(0, 0)) == Qt.ItemFlag.NoItemFlags


def test_a_new_title_is_passed_on_and_a_blank_one_is_not(sidebar: Sidebar, qtbot: Any) -> None:
    index = sidebar.model.index(3, 0)
    with qtbot.waitSignal(sidebar.rename_requested) as renamed:
        assert sidebar.model.setData(index, "  Better ")
    assert renamed.args == [2, "Better"]
    with qtbot.assertNotEmitted(sidebar.rename_requested):
        assert not sidebar.model.setData(index, "   ")


def test_delete_key_asks_to_delete(sidebar: Sidebar, qtbot: Any) -> None:
    with qtbot.waitSignal(sidebar.delete_requested) as deleted:
        qtbot.keyClick(sidebar.list, Qt.Key.Key_Delete)
    assert deleted.args == [2]


def test_the_menu_offers_rename_pin_and_delete(sidebar: Sidebar, qtbot: Any) -> None:
    actions = {action.text(): action for action in sidebar.menu_for(chats()[0]).actions() if action.text()}
    assert list(actions) == ["Rename", "Unpin", "Delete"]
    with qtbot.waitSignal(sidebar.pin_requested) as pinned:
        actions["Unpin"].trigger()
    assert pinned.args == [1, False]


def test_typing_in_the_search_field_becomes_one_search(sidebar: Sidebar, qtbot: Any) -> None:
    found: list[str] = []
    sidebar.search_changed.connect(found.append)
    sidebar.focus_search()
    qtbot.keyClicks(sidebar.search_field, "bird")
    qtbot.waitUntil(lambda: bool(found))
    qtbot.wait(200)
    assert found == ["bird"]
    sidebar.set_chats([ShownChat(3, "Long ago", datetime.now(), snippet="… a bird …")], None, is_search=True)
    assert titles(sidebar.model) == ["Found", "Long ago"]


def test_an_empty_list_says_so(sidebar: Sidebar) -> None:
    sidebar.set_chats([], None)
    assert sidebar.empty_text == "Your chats will be listed here"
    sidebar.set_chats([], None, is_search=True)
    assert sidebar.empty_text == "Nothing found"
