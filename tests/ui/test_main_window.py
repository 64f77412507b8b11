from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel

from app.chats import ChatStore
from app.engine_service import EngineService
from app.library import Library
from app.settings import SettingsFile
from engine.recommended_sampling import recommended_sampling
from tests.app.test_routing import made
from tests.support.qt_loop import Run
from tests.support.waiting import until
from ui.chat.drafts import Drafts
from ui.chat.shown_message import MessageState
from ui.diagnostics.system_page import SystemPage
from ui.inside import PERFORMANCE
from ui.main_window import MainWindow, Services
from ui.models.model_loader import LoadState
from ui.performance.performance_page import PerformancePage
from ui.performance.routing_window import RoutingWindow
from ui.widgets.late_page import LatePage


@pytest.fixture
def services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Iterator[Services]:
    monkeypatch.setenv("COLIBRI_HOME", str(tmp_path))
    store = ChatStore(tmp_path / "chats.db")
    engine = EngineService()
    settings = SettingsFile(tmp_path / "settings.json")
    yield Services(store, engine, settings, Drafts(tmp_path / "drafts.json"))
    engine.close()
    settings.flush()
    store.close()


@pytest.fixture
def window(services: Services, qtbot: Any) -> MainWindow:
    window = MainWindow(services)
    qtbot.addWidget(window)
    with qtbot.waitExposed(window):
        window.show()
    return window


def add_chat(services: Services, title: str, *texts: str) -> int:
    chat = services.store.create_chat(title)
    parent: int | None = None
    for number, text in enumerate(texts):
        parent = services.store.add_message(chat.id, parent, "assistant" if number % 2 else "user", text).id
    return chat.id


def titles(window: MainWindow) -> list[str]:
    model = window.sidebar.model
    rows = (model.chat_at(row) for row in range(model.rowCount()))
    return [chat.title for chat in rows if chat is not None]


def test_the_window_opens_with_the_last_chat(services: Services, qtbot: Any) -> None:
    first = add_chat(services, "First", "question", "an answer")
    add_chat(services, "Second")
    services.settings.change(last_chat_id=first)
    window = MainWindow(services)
    qtbot.addWidget(window)
    assert window.current_chat_id() == first
    assert window.page.title.text() == "First"
    assert [message.text for message in window.page.view.messages] == ["question", "an answer"]
    assert titles(window) == ["Second", "First"]


def test_without_a_model_nothing_is_sent_and_the_text_is_kept(window: MainWindow, qtbot: Any) -> None:
    assert window.page.empty.state_text == "No model  ·  Choose one above to begin"
    field = window.page.composer.field
    qtbot.keyClicks(field, "hello")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert window.page.composer.text() == "hello"
    assert window.toast.isVisible() and "your text is kept" in window.toast.text()
    assert titles(window) == []


def test_a_failed_answer_is_shown_in_its_place(window: MainWindow, run: Run) -> None:
    async def scene() -> None:
        window.page.first_message.emit("hello")
        conversation = window.page.conversation
        assert conversation is not None
        await until(lambda: not conversation.is_busy and not window.page.composer.is_generating)

    run(scene())
    assert not window.page.composer.is_generating
    question, answer = window.page.view.messages
    assert (question.text, question.is_user) == ("hello", True)
    assert answer.state is MessageState.ERROR
    assert "No model is open" in answer.error
    assert titles(window) == ["hello"]
    view = window.page.view.view_of(answer.id)
    assert view is not None and view.error_text == answer.error


def test_deleting_can_be_undone(window: MainWindow, services: Services) -> None:
    chat_id = add_chat(services, "Precious", "a", "b")
    window.open_chat(chat_id)
    window.delete_chat(chat_id)
    assert titles(window) == []
    assert window.current_chat_id() is None
    assert window.toast.text() == 'Deleted "Precious"'
    assert window.toast.height() < 80 and window.rect().contains(window.toast.geometry())
    assert abs(window.toast.geometry().center().x() - window.rect().center().x()) <= 1
    window.toast.act()
    assert titles(window) == ["Precious"]
    assert window.current_chat_id() == chat_id
    assert len(window.page.view.messages) == 2


def test_renaming_and_pinning_reach_the_store(window: MainWindow, services: Services) -> None:
    chat_id = add_chat(services, "Old title")
    window.open_chat(chat_id)
    window.rename_chat(chat_id, "New title")
    window.pin_chat(chat_id, True)
    assert services.store.chat(chat_id).title == "New title"
    assert services.store.chat(chat_id).pinned
    assert window.page.title.text() == "New title"


def test_search_finds_what_was_said(window: MainWindow, services: Services, qtbot: Any) -> None:
    add_chat(services, "Birds", "do hummingbirds sleep", "yes")
    add_chat(services, "Fish", "do fish sleep")
    window.sidebar.search_field.setText("hummingbird")
    qtbot.waitUntil(lambda: titles(window) == ["Birds"])
    chat = window.sidebar.model.chat_at(1)
    assert chat is not None and "hummingbirds" in chat.snippet
    window.sidebar.clear_search()
    qtbot.waitUntil(lambda: len(titles(window)) == 2)


def test_each_chat_keeps_its_draft(window: MainWindow, services: Services, qtbot: Any) -> None:
    one, two = add_chat(services, "One"), add_chat(services, "Two")
    window.open_chat(one)
    qtbot.keyClicks(window.page.composer.field, "for one")
    window.open_chat(two)
    assert window.page.composer.text() == ""
    window.open_chat(one)
    assert window.page.composer.text() == "for one"
    services.drafts.save()
    assert Drafts(Path(services.drafts.path)).text(one) == "for one"


def test_editing_branches_and_the_switcher_leads_back(window: MainWindow, services: Services, run: Run) -> None:
    chat_id = add_chat(services, "Chat", "first question", "first answer")
    window.open_chat(chat_id)

    async def scene() -> None:
        window.page.edit_last()
        assert window.page.composer.is_editing
        assert window.page.composer.text() == "first question"
        window.page.composer.set_ready(True)
        window.page.composer.set_text("second question")
        window.page.composer.submit()
        conversation = window.page.conversation
        assert conversation is not None
        await until(lambda: not conversation.is_busy)

    run(scene())
    question = window.page.view.messages[0]
    assert question.text == "second question"
    view = window.page.view.view_of(question.id)
    assert view is not None
    assert view.actions_row.position_text == "2/2"
    view.actions_row.step.emit(-1)
    assert [message.text for message in window.page.view.messages] == ["first question", "first answer"]


def test_shortcuts_do_what_the_help_says(window: MainWindow, services: Services, qtbot: Any) -> None:
    chat_id = add_chat(services, "Chat", "question", "the answer")
    window.open_chat(chat_id)
    control = Qt.KeyboardModifier.ControlModifier
    qtbot.keyClick(window, Qt.Key.Key_C, control | Qt.KeyboardModifier.ShiftModifier)
    assert QGuiApplication.clipboard().text() == "the answer"
    qtbot.keyClick(window, Qt.Key.Key_N, control)
    assert window.current_chat_id() is None
    qtbot.keyClick(window, Qt.Key.Key_E, control)
    assert window.dock.isHidden()
    qtbot.keyClick(window, Qt.Key.Key_B, control)
    assert window.sidebar.isHidden()
    qtbot.keyClick(window, Qt.Key.Key_F, control)
    assert not window.sidebar.isHidden()


def test_text_size_is_changed_and_remembered(window: MainWindow, services: Services, theme: Any, qtbot: Any) -> None:
    qtbot.keyClick(window, Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    assert theme.font_size_px == 15
    assert services.settings.settings.font_size == 15
    qtbot.keyClick(window, Qt.Key.Key_0, Qt.KeyboardModifier.ControlModifier)
    assert theme.font_size_px == 14


def test_theme_follows_the_setting(window: MainWindow, services: Services, theme: Any) -> None:
    services.settings.change(theme="dark")
    assert theme.is_dark
    services.settings.change(theme="light")
    assert not theme.is_dark


def test_a_model_that_cannot_be_opened_is_explained(
    window: MainWindow, services: Services, run: Run, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"this is no model")

    async def scene() -> None:
        window.attach_library(Library(lambda: services.settings.settings))
        window.load_model(bad)
        await until(lambda: window.loader.state is LoadState.ERROR)

    run(scene())
    assert "bad.gguf" in window.page.notice.text
    assert window.status.state_text.startswith("No model")
    assert services.settings.settings.model_path == ""


def test_layout_is_remembered(window: MainWindow, services: Services, qtbot: Any) -> None:
    window.dock.close()
    window.save_layout()
    again = MainWindow(services)
    qtbot.addWidget(again)
    assert again.dock.isHidden()


def test_everything_that_can_be_used_has_an_accessible_name(window: MainWindow) -> None:
    from PySide6.QtWidgets import QAbstractButton, QLineEdit, QListView, QTextEdit

    nameless = [
        widget
        for kind in (QAbstractButton, QLineEdit, QListView, QTextEdit)
        for widget in window.findChildren(kind)
        if not widget.accessibleName() and widget.isVisible() and not widget.objectName().startswith("qt_")
    ]
    assert nameless == []


def test_settings_take_effect_at_once(window: MainWindow, services: Services, qtbot: Any, theme: Any) -> None:
    from ui.settings.settings_dialog import SettingsDialog

    dialog = SettingsDialog(services.settings, 4, window)
    qtbot.addWidget(dialog)
    dialog.theme.setCurrentIndex(2)
    dialog.theme.activated.emit(2)
    dialog.font_size.setValue(16)
    dialog.threads.activated.emit(2)
    dialog.top_k.setValue(7)
    dialog.max_tokens.setValue(256)
    dialog.add_folder("/models")
    settings = services.settings.settings
    assert (settings.theme, settings.font_size, settings.threads) == ("dark", 16, 2)
    assert (settings.sampling.top_k, settings.sampling.max_tokens) == (7, 256)
    assert settings.model_folders == ("/models",)
    assert theme.is_dark and theme.font_size_px == 16


def test_the_settings_show_what_is_recommended_until_the_user_chooses(
    window: MainWindow, services: Services, qtbot: Any
) -> None:
    from ui.settings.settings_dialog import SettingsDialog

    sampling = recommended_sampling({"general.basename": "smollm2"}, 135_000_000)
    model: Any = SimpleNamespace(name="SmolLM2 135M", sampling=sampling)
    dialog = SettingsDialog(services.settings, 4, window, model=model)
    qtbot.addWidget(dialog)
    assert (dialog.temperature.value(), dialog.top_p.value(), dialog.top_k.value()) == (0.2, 0.9, 40)
    texts = " ".join(label.text() for label in dialog.findChildren(QLabel))
    assert "does best with temperature 0.2, top p 0.9, repetition penalty 1.1." in texts
    assert not dialog.recommended.isEnabled()
    dialog.temperature.setValue(1.1)
    assert services.settings.settings.sampling.temperature == 1.1 and dialog.recommended.isEnabled()
    dialog.recommended.click()
    assert services.settings.settings.sampling.is_untouched and dialog.temperature.value() == 0.2


def test_help_lists_the_shortcuts(window: MainWindow, qtbot: Any) -> None:
    from ui.help_dialog import HelpDialog

    dialog = HelpDialog(window)
    qtbot.addWidget(dialog)
    texts = {label.text() for label in dialog.findChildren(QLabel)}
    assert {"Ctrl+N", "New chat", "Shift+Enter", "F1"} <= texts


def test_a_chat_is_shown_whatever_page_was_there(services: Services, window: MainWindow, qtbot: Any) -> None:
    chat_id = add_chat(services, "Old", "question", "an answer")
    window.open_chat(chat_id)
    window.pages.add("notes", "pen", "Notes", lambda: QLabel("notes"))
    window.pages.show_page("notes")
    assert not window.sidebar.list.selectionModel().hasSelection()
    window.open_chat(chat_id)
    assert window.pages.currentWidget() is window.page
    window.pages.show_page("notes")
    window.new_chat()
    assert window.pages.currentWidget() is window.page


def test_the_experts_of_an_answer_open_in_a_window_of_their_own(window: MainWindow, services: Services) -> None:
    chat_id = add_chat(services, "Birds", "What is a hummingbird?", "The hummingbird hovers.")
    answer = services.store.thread(chat_id)[1]
    services.engine.routes.keep(replace(made(["The hummingbird", " hovers."]), message_id=answer.id))
    window.open_chat(chat_id)
    window.page.view.experts_requested.emit(answer.id, "hovers")
    (routing,) = window.findChildren(RoutingWindow)
    assert routing.isVisible() and routing.left.figures.text().startswith("1 of 2 tokens")
    routing.close()


def test_the_performance_page_opens_with_the_question_why(window: MainWindow, run: Run) -> None:
    async def look() -> None:
        window.pages.show_page(PERFORMANCE)
        late = window.pages.currentWidget()
        assert isinstance(late, LatePage)
        await until(lambda: late.widget is not None)
        assert isinstance(late.widget, PerformancePage) and late.widget.why is not None

    run(look())


def test_the_system_check_opens_as_a_page_and_looks_at_this_machine(window: MainWindow, run: Run) -> None:
    async def look() -> None:
        window.show_system_check()
        late = window.pages.currentWidget()
        assert isinstance(late, LatePage)
        await until(lambda: late.widget is not None)
        page = late.widget
        assert isinstance(page, SystemPage)
        await until(lambda: bool(page.rows) and page.is_complete)
        assert len(page.rows) > 25
        await window.finish()

    run(look())
