"""The pages beside the chat that have to do with model files: Models and Convert."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.library import ModelEntry
from ui.carve.carving_task import CarvingTask
from ui.convert.conversion_task import ConversionTask
from ui.convert.making_page import MakingPage
from ui.desktop import reveal
from ui.models.model_loader import LoadState
from ui.models.model_removal import ModelRemoval
from ui.models.models_page import ModelsPage
from ui.wizard.long_task import Stage

if TYPE_CHECKING:
    from ui.main_window import MainWindow

MODELS, CONVERT = "models", "convert"


class Management(QObject):
    """Made once for a window; adds its pages to it."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._models_page: ModelsPage | None = None
        self._refreshing: asyncio.Task[object] | None = None
        self.conversion = ConversionTask(window.loader.engine_config)
        self.conversion.made.connect(self._on_converted)
        self.carving = CarvingTask()
        self.carving.made.connect(self._on_carved)
        self.carving.changed.connect(self._on_carving)
        self.removal = ModelRemoval(window)
        window.pages.add(MODELS, "model", self.tr("Models"), self._make_models_page, "Ctrl+Shift+M")
        window.pages.add(CONVERT, "convert", self.tr("Convert"), self._make_convert_page, "Ctrl+Shift+K")
        window.pages.shown.connect(self._on_page)

    def convert(self, source: Path) -> None:
        """Show what a checkpoint is, and offer to convert it."""
        self._show_making(is_carving=False)
        if self.conversion.is_running:
            self._window.toast.show_message(self.tr("A conversion is running; wait for it, or cancel it first."))
        else:
            self.conversion.choose(source)

    def open_dropped(self, path: Path) -> None:
        """A model file is opened, anything else is looked at as a checkpoint."""
        if path.suffix.lower() == ".gguf" and path.is_file():
            self.chat_with(path)
        else:
            self.convert(path)

    def carve(self, source: Path) -> None:
        """Show what a dense model could be cut into."""
        self._show_making(is_carving=True)
        if self.carving.is_busy:
            self._window.toast.show_message(self.tr("A carving is under way; decide about it, or cancel it first."))
        else:
            self.carving.choose(source)

    def watch(self, path: Path) -> None:
        """Open a model with experts, and beside the chat the panel that shows them."""
        self.chat_with(path)
        self._window.dock.show()

    def chat_with(self, path: Path) -> None:
        """Open a model, unless it is open, and a chat with it."""
        loader = self._window.loader
        if not (loader.state is LoadState.READY and loader.path == path):
            self._window.load_model(path)
        self._window.new_chat()

    def refresh_library(self) -> None:
        """Look for models again."""
        library = self._window.loader.library
        if library is not None:
            self._refreshing = asyncio.get_running_loop().create_task(library.refresh())

    @property
    def is_converting(self) -> bool:
        """Whether work is under way that the program's end cuts short."""
        return self.conversion.is_running or self.carving.is_running

    def leave(self) -> None:
        """The program ends."""
        self.conversion.leave()
        self.carving.leave()
        if self._models_page is not None:
            self._models_page.leave()

    def show_library(self) -> None:
        """The library has changed."""
        if self._models_page is not None:
            self._models_page.refresh()

    def _make_models_page(self) -> QWidget:
        window = self._window
        page = ModelsPage(window.loader, window.services.settings, self.carving, window)
        page.chat_requested.connect(self._chat_or_watch)
        page.load_requested.connect(window.load_model)
        page.unload_requested.connect(window.loader.unload)
        page.reveal_requested.connect(lambda path: reveal(path, self))
        page.delete_requested.connect(self.removal.ask)
        page.folder_requested.connect(window.choose_model_folder)
        page.convert_requested.connect(lambda: window.pages.show_page(CONVERT))
        page.refresh_requested.connect(self.refresh_library)
        page.carve_requested.connect(self.carve)
        page.carving_shown.connect(lambda: self._show_making(is_carving=True))
        self._models_page = page
        return page

    def _make_convert_page(self) -> QWidget:
        page = MakingPage(self.conversion, self.carving, self._entries, self._window)
        page.chat_requested.connect(self.chat_with)
        page.watch_requested.connect(self.watch)
        page.reveal_requested.connect(lambda path: reveal(path, self))
        return page

    def _show_making(self, *, is_carving: bool) -> None:
        self._window.pages.show_page(CONVERT)
        page = self._window.pages.page(CONVERT)
        assert isinstance(page, MakingPage)
        page.show_carving() if is_carving else page.show_converting()

    def _entries(self) -> list[ModelEntry]:
        library = self._window.loader.library
        return list(library.entries) if library is not None else []

    def _chat_or_watch(self, path: Path) -> None:
        if path == self.carving.result:
            self.watch(path)
        else:
            self.chat_with(path)

    def _on_page(self, key: str) -> None:
        if key == MODELS and self._models_page is not None:
            self.refresh_library()
            self._models_page.list.setFocus()
        if key == CONVERT:
            page = self._window.pages.page(CONVERT)
            assert isinstance(page, MakingPage)
            page.look_around()

    def _on_converted(self, path: Path) -> None:
        self.refresh_library()
        if self._window.pages.current != CONVERT:
            text = self.tr("{name} is converted").format(name=path.name)
            self._window.toast.show_message(text, self.tr("Chat with it"), lambda: self.chat_with(path))

    def _on_carved(self, path: Path) -> None:
        self.refresh_library()
        if self._window.pages.current != CONVERT:
            text = self.tr("{name} is made").format(name=path.name)
            self._window.toast.show_message(text, self.tr("Chat with it"), lambda: self.watch(path))

    def _on_carving(self) -> None:
        if self.carving.stage is Stage.DECIDE and self._window.pages.current != CONVERT:
            self._window.toast.show_message(
                self.tr("The carving is measured"), self.tr("Decide"), lambda: self._show_making(is_carving=True)
            )
