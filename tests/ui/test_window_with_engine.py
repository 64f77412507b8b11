"""The window with the real engine and a small mixture of experts (random weights: it writes nonsense)."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.chats import ChatStore
from app.engine_service import EngineService
from app.library import Library
from app.settings import SettingsFile
from engine import Engine
from tests.support.qt_loop import Run
from tests.support.waiting import until
from ui.chat.drafts import Drafts
from ui.chat.shown_message import MessageState
from ui.main_window import MainWindow, Services
from ui.models.model_loader import LoadState

MODEL = Path(__file__).resolve().parents[1] / "data" / "fixtures" / "mixtral-mixed.gguf"
N_TOKENS = 24

pytestmark = pytest.mark.slow


def can_send(window: MainWindow) -> bool:
    """Whether the answer has ended and the composer, which hears of it a turn of the loop later, knows it too."""
    return not window.page.is_busy and not window.page.composer.is_generating


async def story(window: MainWindow) -> None:
    """Load, ask, look at the experts, regenerate, stop, unload: one load for all of it."""
    loader, page, view = window.loader, window.page, window.page.view
    window.load_model(MODEL)
    assert loader.state in {LoadState.EMPTY, LoadState.LOADING}
    await until(lambda: loader.state is LoadState.READY)
    assert page.picker.button.text().startswith(loader.name)
    assert window.status.state_text.endswith("Ready")

    window.dock.panel.poll()
    assert window.dock.panel.is_showing_map
    page.composer.set_text("Hello there")
    page.composer.submit()
    assert page.composer.is_generating
    await until(lambda: len(view.messages) == 2 and can_send(window))
    answer = view.messages[1]
    assert answer.state is MessageState.COMPLETE and answer.was_cut
    assert answer.n_tokens == N_TOKENS
    assert answer.ttft_ms > 0 and answer.tokens_per_second > 0
    window.dock.panel.poll()
    n_layers, n_experts = window.dock.panel.heat_map.shape
    assert n_layers > 0 and n_experts > 1
    assert window.dock.panel.heat_map.n_calls >= N_TOKENS * n_layers
    assert "tok/s" in window.status.text and "Context" in window.status.text

    page.regenerate_last()
    await until(lambda: can_send(window))
    second = view.messages[1]
    row = view.view_of(second.id)
    assert second.id != answer.id
    assert row is not None and row.actions_row.position_text == "2/2"

    settings = window.services.settings
    settings.change(sampling=replace(settings.settings.sampling, max_tokens=None))
    page.composer.set_text("Now without end")
    page.composer.submit()
    await until(lambda: len(view.messages) == 4 and view.messages[3].text != "")
    page.stop()
    await until(lambda: not page.is_busy)
    assert view.messages[3].state in {MessageState.STOPPED, MessageState.COMPLETE}

    loader.unload()
    await until(lambda: loader.state is LoadState.EMPTY and window.services.engine.info is None)
    window.dock.panel.poll()
    assert not window.dock.panel.is_showing_map


def threads_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[int]]:
    """On which threads each of the engine's long calls is made, from now on."""
    threads: dict[str, set[int]] = {}

    def watch(name: str) -> None:
        whole = getattr(Engine, name)

        def noted(*arguments: Any, **options: Any) -> Any:
            threads.setdefault(name, set()).add(threading.get_ident())
            return whole(*arguments, **options)

        monkeypatch.setattr(Engine, name, noted)

    for name in ("open", "step", "close"):
        watch(name)
    return threads


def test_a_model_with_experts_answers_in_the_window(
    run: Run, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLIBRI_HOME", str(tmp_path))
    threads = threads_of_the_engine(monkeypatch)
    settings = SettingsFile(tmp_path / "settings.json")
    sampling = replace(settings.settings.sampling, seed=1, max_tokens=N_TOKENS)
    settings.change(sampling=sampling, context_length=512)
    store, engine = ChatStore(tmp_path / "chats.db"), EngineService()
    window = MainWindow(Services(store, engine, settings, Drafts(tmp_path / "drafts.json")))
    qtbot.addWidget(window)
    window.attach_library(Library(lambda: settings.settings))
    with qtbot.waitExposed(window):
        window.show()
    try:
        run(story(window))
    finally:
        run(window.finish())
        engine.close()
        settings.flush()
        store.close()
    assert set(threads) == {"open", "step", "close"}  # nothing of it holds the window up
    assert all(threading.get_ident() not in idents for idents in threads.values())
