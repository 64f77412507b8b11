"""Starts the window: settings, theme and chats first, then the paint, then the model."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, Qt, QtMsgType, qInstallMessageHandler
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication
from qasync import QEventLoop

from app import paths
from app.chats import ChatStore
from app.engine_service import EngineService
from app.settings import Settings, SettingsFile
from ui.chat.drafts import Drafts
from ui.collector import MainThreadCollector
from ui.crash_report import CrashReport
from ui.main_window import MainWindow, Services
from ui.resources import resource_path
from ui.stall_watch import BEAT_MS, SELDOM_MS, StallWatch
from ui.start_clock import process_age_ms
from ui.theme import current_theme
from ui.theme.theme import usual_font_size_px
from ui.translation import install_translation

if TYPE_CHECKING:
    from app.library import Library

log = logging.getLogger(__name__)

TIMINGS_VARIABLE = "COLIBRI_TIMINGS"
_LOG_BYTES = 1_000_000
SWITCH_INTERVAL_S = 0.001  # the engine's thread must not hold the window's up
_END_WITHIN_S = 0.8
_DRAFTS_EVERY_S = 2.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the window until it is closed; ``--model FILE`` opens a model other than the last one."""
    parser = argparse.ArgumentParser(prog="colibri window")
    parser.add_argument("-m", "--model", type=Path, help="the GGUF file to open")
    arguments = parser.parse_args(argv)
    _start_logging()
    report = CrashReport(paths.log_dir() / "crash.txt")
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    app = _application()
    settings = SettingsFile(paths.settings_file())
    install_translation(app, settings.settings.language)
    theme = current_theme()
    theme.set_font_size(settings.settings.font_size or usual_font_size_px())
    theme.set_mode(settings.settings.theme)  # type: ignore[arg-type]
    theme.apply()
    app.setWindowIcon(QIcon(str(resource_path("icons", "colibri-app.svg"))))
    loop = QEventLoop(app)
    asyncio.set_event_loop(loop)
    with loop:
        is_clean = loop.run_until_complete(_run(app, settings, report, arguments.model))
    logging.shutdown()
    if not is_clean:  # the engine or a conversion is at work: everything is saved, so do not wait for it
        os._exit(0)
    return 0


async def _run(app: QApplication, settings: SettingsFile, report: CrashReport, model: Path | None) -> bool:
    """The window's life; returns whether everything ended by itself."""
    loop = asyncio.get_running_loop()
    collector = MainThreadCollector(app)
    store = ChatStore(paths.chats_db())
    engine = EngineService()
    drafts = Drafts(paths.data_dir() / "drafts.json")
    window = MainWindow(Services(store, engine, settings, drafts, os.cpu_count() or 1))
    report.watch_loop(loop, window.show_error)
    ended = asyncio.Event()
    window.closed.connect(ended.set)
    first_paint = FirstPaint(window)
    window.show()
    await first_paint.wait()
    _note("window shown", process_age_ms())
    timed = _wants_timings()
    watch = StallWatch(_print_stall if timed else None, app, beat_ms=BEAT_MS if timed else SELDOM_MS)
    if timed:
        watch.trace()
    ready_from_s = time.perf_counter()
    window.loader.ready.connect(lambda: _note("model ready", (time.perf_counter() - ready_from_s) * 1000))
    library = await loop.run_in_executor(None, _library, settings)
    window.attach_library(library)
    if model is not None:
        window.loader.load(model.absolute())
    else:
        window.loader.start()
    collector.settle()
    FolderWatch(library, settings)
    refreshing = loop.create_task(library.refresh())
    saving = loop.create_task(_save_drafts(drafts))
    if report.previous:
        window.say_crashed()
    await ended.wait()
    window.hide()
    for task in (refreshing, saving):
        task.cancel()
    is_clean = await _end(window, engine, store, settings, drafts)
    log.info("longest stall of the event loop: %.0f ms", watch.worst_ms)
    watch.stop()
    report.close()
    collector.stop()
    window.deleteLater()
    return is_clean


async def _end(
    window: MainWindow, engine: EngineService, store: ChatStore, settings: SettingsFile, drafts: Drafts
) -> bool:
    """Save everything within less than a second, whatever the engine is doing."""
    loop = asyncio.get_running_loop()
    is_clean = True
    try:
        await asyncio.wait_for(window.finish(), _END_WITHIN_S / 2)
    except TimeoutError:
        is_clean = False
        log.warning("an answer could not be ended in time; what there is of it is kept")
    drafts.save()
    try:
        await asyncio.wait_for(loop.run_in_executor(None, engine.close, _END_WITHIN_S / 2), _END_WITHIN_S / 2)
    except TimeoutError:
        is_clean = False
    settings.flush()
    store.close()
    return is_clean and not _engine_lives() and not window.management.is_converting


def _engine_lives() -> bool:
    return any(thread.name == "engine" and thread.is_alive() for thread in threading.enumerate())


async def _save_drafts(drafts: Drafts) -> None:
    while True:
        await asyncio.sleep(_DRAFTS_EVERY_S)
        drafts.save()


def _library(settings: SettingsFile) -> Library:
    """Made on another thread, with all that the first model and the library's first look import.

    Both begin when this has ended: two threads that import a package and its modules at once may find half of them.
    """
    import engine.convert.proof  # noqa: PLC0415
    import engine.engine  # noqa: F401, PLC0415
    from app.library import Library  # noqa: PLC0415

    return Library(lambda: settings.settings)


class FolderWatch:
    """Looks for models again when the user has changed the list of folders."""

    def __init__(self, library: Library, settings: SettingsFile) -> None:
        self._library = library
        self._places = _model_places(settings.settings)
        self._task: asyncio.Task[object] | None = None
        settings.on_change(self._on_settings)

    def _on_settings(self, settings: Settings) -> None:
        if _model_places(settings) != self._places:
            self._places = _model_places(settings)
            self._task = asyncio.get_running_loop().create_task(self._library.refresh())


def _model_places(settings: Settings) -> object:
    return settings.model_folders, settings.scan_other_programs


class FirstPaint(QObject):
    """Waits until a window has been drawn for the first time."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._drawn = asyncio.Event()
        window.page.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            watched.removeEventFilter(self)
            asyncio.get_running_loop().call_soon(self._drawn.set)
        return False

    async def wait(self) -> None:
        await self._drawn.wait()


def _application() -> QApplication:
    QApplication.setHighDpiScaleFactorRoundingPolicy(Qt.HighDpiScaleFactorRoundingPolicy.PassThrough)
    existing = QApplication.instance()
    app = existing if isinstance(existing, QApplication) else QApplication(["colibri"])
    app.setApplicationName("colibri")
    app.setApplicationDisplayName("Colibri")
    app.setDesktopFileName("colibri")
    app.setStyle("Fusion")
    app.setQuitOnLastWindowClosed(False)
    return app


def _start_logging() -> None:
    handler = RotatingFileHandler(
        paths.log_dir() / "colibri.log", maxBytes=_LOG_BYTES, backupCount=2, encoding="utf-8", delay=True
    )
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for other in root.handlers:  # what a terminal shows stays as quiet as it was
        other.setLevel(max(other.level, root.level))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    logging.getLogger("qasync").setLevel(logging.WARNING)
    qInstallMessageHandler(_on_qt_message)


def _on_qt_message(kind: QtMsgType, _context: object, text: str) -> None:
    is_bad = kind in {QtMsgType.QtWarningMsg, QtMsgType.QtCriticalMsg, QtMsgType.QtFatalMsg}
    logging.getLogger("qt").log(logging.WARNING if is_bad else logging.DEBUG, "%s", text)


def _wants_timings() -> bool:
    return os.environ.get(TIMINGS_VARIABLE) == "1"


def _note(what: str, ms: float) -> None:
    text = f"{what} after {ms:.0f} ms"
    log.info("%s", text)
    if _wants_timings():
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _print_stall(late_ms: float, used_ms: float) -> None:
    sys.stderr.write(f"stall of {late_ms:.0f} ms, computing {used_ms:.0f} ms\n")
    sys.stderr.flush()
