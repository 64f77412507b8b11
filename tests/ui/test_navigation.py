from __future__ import annotations

from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from ui.navigation import CHAT, Navigation, Pages


@pytest.fixture
def made(qtbot: Any) -> tuple[Pages, Navigation, list[str]]:
    navigation = Navigation()
    pages = Pages(QLabel("chat"), navigation)
    qtbot.addWidget(navigation)
    qtbot.addWidget(pages)
    made: list[str] = []

    def make(name: str) -> QLabel:
        made.append(name)
        return QLabel(name)

    pages.add("models", "model", "Models", lambda: make("models"))
    pages.add("convert", "convert", "Convert", lambda: make("convert"))
    return pages, navigation, made


def buttons(navigation: Navigation) -> dict[str, QPushButton]:
    return {button.text(): button for button in navigation.findChildren(QPushButton)}


def test_a_page_is_made_when_it_is_first_shown_and_kept(made: tuple[Pages, Navigation, list[str]], qtbot: Any) -> None:
    pages, navigation, names = made
    assert names == [] and pages.current == CHAT
    models = buttons(navigation)["Models"]
    with qtbot.waitSignal(pages.shown):
        qtbot.mouseClick(models, Qt.MouseButton.LeftButton)
    pages.show_page("convert")
    pages.show_page("models")
    assert names == ["models", "convert"]
    assert pages.currentWidget() is pages.page("models")


def test_only_the_button_of_the_page_shown_is_checked(made: tuple[Pages, Navigation, list[str]], qtbot: Any) -> None:
    pages, navigation, _ = made
    pages.show_page("convert")
    assert [name for name, button in buttons(navigation).items() if button.isChecked()] == ["Convert"]
    qtbot.mouseClick(buttons(navigation)["Convert"], Qt.MouseButton.LeftButton)
    assert pages.current == CHAT
    assert not any(button.isChecked() for button in buttons(navigation).values())
