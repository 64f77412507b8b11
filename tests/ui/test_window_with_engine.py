"""The window with the real engine and a small mixture of experts (random weights: it writes nonsense)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from qasync import QEventLoop

from app.chats import ChatStore
from app.engine_service import EngineService
from app.library import Library
from app.settings import SettingsFile
from ui.chat.drafts import Drafts
from ui.chat.shown_message import MessageState
from ui.main_window import MainWindow, Services
from ui.models.model_loader import LoadState
from ui.stall_watch import StallWatch

MODEL = Path(__file__).resolve().parents[1] / "data" / "fixtures" / "mixtral-mixed.gguf"
N_TOKENS = 24
LOAD_S = 240  # kernels are compiled if this machine has none yet

pytestmark = pytest.mark.slow


async def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), seconds)


async def story(window: MainWindow) -> None:
    """Load, ask, look at the experts, regenerate, stop, unload: one load for all of it."""
    loader, page, view = window.loader, window.page, window.page.view
    window.load_model(MODEL)
    assert loader.state in {LoadState.EMPTY, LoadState.LOADING}
    await until(lambda: loader.state is LoadState.READY, LOAD_S)
    assert page.picker.button.text().startswith(loader.name)
    assert window.status.state_text.endswith("Ready")

    window.dock.panel.poll()
    assert window.dock.panel.is_showing_map
    page.composer.set_text("Hello there")
    page.composer.submit()
    assert page.composer.is_generating
    await until(lambda: len(view.messages) == 2 and not page.is_busy)
    await asyncio.sleep(0.1)
    assert not page.composer.is_generating
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
    await until(lambda: not page.is_busy)
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
    await until(lambda: not page.is_busy, 5)
    assert view.messages[3].state in {MessageState.STOPPED, MessageState.COMPLETE}

    loader.unload()
    await until(lambda: loader.state is LoadState.EMPTY and window.services.engine.info is None)
    window.dock.panel.poll()
    assert not window.dock.panel.is_showing_map


def test_a_model_with_experts_answers_in_the_window(
    qapp: QApplication, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLIBRI_HOME", str(tmp_path))
    loop = QEventLoop(qapp, already_running=False)
    asyncio.set_event_loop(loop)
    settings = SettingsFile(tmp_path / "settings.json")
    sampling = replace(settings.settings.sampling, seed=1, max_tokens=N_TOKENS)
    settings.change(sampling=sampling, context_length=512)
    store, engine = ChatStore(tmp_path / "chats.db"), EngineService()
    window = MainWindow(Services(store, engine, settings, Drafts(tmp_path / "drafts.json")))
    qtbot.addWidget(window)
    window.attach_library(Library(lambda: settings.settings))
    window.show()
    qtbot.waitExposed(window)
    stalls: list[float] = []
    watch = StallWatch(lambda _late_ms, used_ms: stalls.append(used_ms))
    try:
        loop.run_until_complete(story(window))
    finally:
        watch.stop()
        loop.run_until_complete(window.finish())
        engine.close()
        settings.flush()
        store.close()
        loop.close()
        asyncio.set_event_loop(None)
    assert [used_ms for used_ms in stalls if used_ms > 50] == []
