"""Takes a model away: asks first, moves its files to the trash, and offers a way back."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QMessageBox

from app.library import ModelEntry, without
from app.model_files import parts_of
from app.model_places import Place
from ui import format as fmt
from ui.models.trash import Trashed, delete, move_to_trash, restore

if TYPE_CHECKING:
    from ui.main_window import MainWindow

log = logging.getLogger(__name__)


class ModelRemoval(QObject):
    """Files that other programs index are theirs to remove."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._task: asyncio.Task[None] | None = None
        self.dialog: QMessageBox | None = None

    def ask(self, entry: ModelEntry) -> None:
        """Ask whether the model shall go, or say why it is not for Colibri to take."""
        advice = self._advice(entry)
        if advice:
            self._open(QMessageBox.Icon.Information, self.tr("This model belongs to another program"), advice, "")
            return
        size = fmt.size(entry.file_bytes)
        title = self.tr("Move {name} to the trash?").format(name=_short(entry.name))
        text = self.tr("{path}\n\n{size} are free again once the trash is emptied.").format(path=entry.path, size=size)
        dialog = self._open(QMessageBox.Icon.Question, title, text, self.tr("Move to the trash"))
        dialog.accepted.connect(lambda: self._start(self._move(entry)))

    def _advice(self, entry: ModelEntry) -> str:
        if entry.place is Place.OLLAMA:
            return self.tr(
                "Ollama keeps a list of its models. Remove it there, in a terminal:\n\nollama rm {name}"
            ).format(name=entry.name)
        if entry.place is Place.HUGGING_FACE:
            return self.tr(
                "The Hugging Face cache keeps a list of its models. Remove it there, in a terminal:\n\nhf cache delete"
            )
        return ""

    def _open(self, icon: QMessageBox.Icon, title: str, text: str, action: str) -> QMessageBox:
        dialog = QMessageBox(icon, "Colibri", title, parent=self._window)
        dialog.setInformativeText(text)
        if action:
            accept = dialog.addButton(action, QMessageBox.ButtonRole.AcceptRole)
            accept.setProperty("kind", "danger")
            dialog.setDefaultButton(dialog.addButton(QMessageBox.StandardButton.Cancel))
        else:
            dialog.addButton(QMessageBox.StandardButton.Close)
        self.dialog = dialog
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
        return dialog

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._task = asyncio.get_running_loop().create_task(work)

    async def _move(self, entry: ModelEntry) -> None:
        loop = asyncio.get_running_loop()
        window = self._window
        if window.loader.path == entry.path:
            window.loader.unload()
        files = parts_of(entry.path)
        moved = await loop.run_in_executor(None, move_to_trash, files)
        if moved is None:
            title = self.tr("There is no trash for this disk")
            text = self.tr("{path}\n\nThe file can only be deleted for good.").format(path=entry.path)
            dialog = self._open(QMessageBox.Icon.Warning, title, text, self.tr("Delete for good"))
            dialog.accepted.connect(lambda: self._start(self._delete(entry)))
            return
        self._forget(entry)
        text = self.tr('"{name}" is in the trash').format(name=_short(entry.name))
        window.toast.show_message(text, self.tr("Undo"), lambda: self._start(self._restore(moved)))

    async def _delete(self, entry: ModelEntry) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, delete, parts_of(entry.path))
        except OSError as error:
            self._say(error)
        self._forget(entry)

    async def _restore(self, moved: list[Trashed]) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(None, partial(restore, moved))
        except OSError as error:
            self._say(error)
        self._window.management.refresh_library()

    def _forget(self, entry: ModelEntry) -> None:
        settings = self._window.services.settings
        left = without(settings.settings, entry.path)
        settings.change(
            default_model=left.default_model,
            model_path=left.model_path,
            recent_models=left.recent_models,
            experts_per_token=left.experts_per_token,
        )
        self._window.management.refresh_library()

    def _say(self, error: OSError) -> None:
        log.warning("a model could not be removed or restored: %s", error)
        text = self.tr("{path}: {reason}").format(path=error.filename or "", reason=error.strerror or error)
        self._window.toast.show_message(text)


def _short(name: str) -> str:
    return name if len(name) <= 60 else name[:59] + "…"
