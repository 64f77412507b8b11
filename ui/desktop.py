"""Asks the desktop to show a file in its file manager."""

from __future__ import annotations

import logging
from pathlib import Path

from PySide6.QtCore import QObject, QUrl
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusPendingCallWatcher
from PySide6.QtGui import QDesktopServices

log = logging.getLogger(__name__)

_NAME = "org.freedesktop.FileManager1"


def reveal(path: Path, parent: QObject) -> None:
    """Show the file selected in the file manager, or where there is none that can do so, its folder."""
    bus = QDBusConnection.sessionBus()
    if not bus.isConnected():
        open_folder(path)
        return
    message = QDBusMessage.createMethodCall(_NAME, "/org/freedesktop/FileManager1", _NAME, "ShowItems")
    message.setArguments([[QUrl.fromLocalFile(str(path)).toString()], ""])
    watcher = QDBusPendingCallWatcher(bus.asyncCall(message), parent)
    watcher.finished.connect(lambda done: _on_answer(done, path))


def open_folder(path: Path) -> None:
    """Open the folder in which a file lies."""
    if not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path.parent))):
        log.warning("%s: the desktop has no program that shows folders", path.parent)


def _on_answer(watcher: QDBusPendingCallWatcher, path: Path) -> None:
    if watcher.isError():
        log.info("no file manager that shows single files: %s", watcher.error().message())
        open_folder(path)
    watcher.deleteLater()
