"""What all tests of the window share: no display, a fresh light theme, and failure on any Qt warning."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import pytest
from PySide6.QtCore import QEvent, QLocale
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from tests.support.qt_loop import Run, qt_loop
from tests.support.waiting import PATIENCE_S
from ui.theme.theme import Theme, current_theme, forget_theme


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/ui" in item.path.as_posix():
            item.add_marker(pytest.mark.qt_log_level_fail("WARNING"))
            item.add_marker(pytest.mark.qt_log_ignore("propagateSizeHints", "does not support raise", extend=True))


@pytest.fixture(scope="session", autouse=True)
def collection_on_the_main_thread_only() -> Iterator[None]:
    """As in the program: a worker thread that collects garbage would destroy Qt objects there."""
    gc.disable()
    yield
    gc.enable()


class PatientBot(QtBot):  # type: ignore[misc]
    """pytest-qt's robot, for a machine that may be busy with something else for a while."""

    def waitUntil(self, callback: Callable[[], bool | None], *, timeout: int = round(PATIENCE_S * 1e3)) -> None:
        super().waitUntil(callback, timeout=timeout)

    def waitSignal(self, signal: Any, *, timeout: int = round(PATIENCE_S * 1e3), **options: Any) -> Any:
        return super().waitSignal(signal, timeout=timeout, **options)

    def waitExposed(self, widget: Any, *, timeout: int = round(PATIENCE_S * 1e3)) -> Any:
        return super().waitExposed(widget, timeout=timeout)


@pytest.fixture
def qtbot(qapp: QApplication, request: pytest.FixtureRequest) -> QtBot:
    return PatientBot(request)


@pytest.fixture
def run(qapp: QApplication) -> Iterator[Run]:
    """Runs a coroutine on Qt's event loop."""
    with qt_loop(qapp) as run:
        yield run


@pytest.fixture(autouse=True)
def theme(qapp: QApplication) -> Iterator[Theme]:
    QLocale.setDefault(QLocale("en"))
    qapp.setStyle("Fusion")
    forget_theme()
    theme = current_theme()
    theme.set_mode("light")
    theme.apply()
    yield theme
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    forget_theme()
    theme.deleteLater()
    gc.collect(1)
