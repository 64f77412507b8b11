"""What stands under a question while the model cannot begin its answer: what is really going on."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.benchmark import Kind, SpeedTest
from app.chats import ChatStore
from app.engine_service import EngineService
from app.jobs import Job
from app.settings import SettingsFile
from tests.support.qt_loop import Run
from tests.support.waiting import until
from ui.chat.drafts import Drafts
from ui.chat.shown_message import MessageState
from ui.main_window import MainWindow, Services
from ui.models.model_loader import KERNELS, LoadState

MODEL = Path(__file__).resolve().parents[1] / "data" / "fixtures" / "mixtral-mixed.gguf"

pytestmark = pytest.mark.slow


class HeldEngine:
    """The real service, whose thread does nothing until it is let go."""

    def __init__(self, service: EngineService) -> None:
        self._go = threading.Event()
        service._post(self._wait)

    def _wait(self) -> None:
        self._go.wait()

    def let_go(self) -> None:
        self._go.set()


def said(window: MainWindow) -> str:
    """What stands under the last question."""
    window.page.view.flush()
    row = window.page.view.view_of(window.page.view.messages[-1].id)
    return "" if row is None else row.progress_text


async def ask(window: MainWindow) -> None:
    window.page.composer.set_text("Hello there")
    window.page.composer.submit()
    await until(lambda: len(window.page.view.messages) % 2 == 0 and len(window.page.view.messages) > 0)


async def answered(window: MainWindow) -> None:
    await until(lambda: window.page.view.messages[-1].state is MessageState.COMPLETE and not window.page.is_busy)


async def while_loading(window: MainWindow, held: HeldEngine) -> None:
    window.load_model(MODEL)
    await until(lambda: window.loader.state is LoadState.LOADING and window.loader.can_take_messages)
    await ask(window)
    assert said(window) == f"Loading {window.loader.name}"
    job = window.services.engine.loading
    assert job is not None
    job.report(KERNELS, fraction=34 / 126)
    await until(lambda: said(window).startswith("Preparing kernels for this processor  ·  27 %"))
    held.let_go()
    await until(lambda: window.loader.state is LoadState.READY)
    assert said(window) in {"Thinking…", ""} or said(window).startswith("Reading prompt")
    await answered(window)
    assert said(window) == ""


async def while_measuring(window: MainWindow) -> None:
    service = window.services.engine
    held = HeldEngine(service)
    measured = asyncio.ensure_future(service.measure(Job("speed"), [SpeedTest(Kind.GENERATE, 2)], 1))
    await until(lambda: service.measuring is not None)
    await ask(window)
    assert said(window) == "The speed is being measured first"
    held.let_go()
    await measured
    assert service.measuring is None
    await answered(window)


def test_an_answer_says_what_it_waits_for_until_the_model_can_begin(
    run: Run, qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLIBRI_HOME", str(tmp_path))
    settings = SettingsFile(tmp_path / "settings.json")
    settings.change(sampling=replace(settings.settings.sampling, seed=1, max_tokens=8), context_length=512)
    store, engine = ChatStore(tmp_path / "chats.db"), EngineService()
    window = MainWindow(Services(store, engine, settings, Drafts(tmp_path / "drafts.json")))
    qtbot.addWidget(window)
    window.resize(1100, 700)
    window.show()

    async def story() -> None:
        try:
            held = HeldEngine(engine)
            await while_loading(window, held)
            await while_measuring(window)
        finally:
            await window.finish()

    run(story())
    engine.close()
    settings.flush()
    store.close()
