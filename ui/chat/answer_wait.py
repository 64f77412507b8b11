"""Tells the conversation what an answer waits for while the model cannot begin it: its loading, or a measurement."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.engine_service import EngineService
from app.jobs import Job
from ui.chat.chat_page import ChatPage
from ui.models.model_loader import ModelLoader


class AnswerWait(QObject):
    """Lives as long as its page."""

    def __init__(self, page: ChatPage, loader: ModelLoader, engine: EngineService) -> None:
        super().__init__(page)
        self._page, self._loader, self._engine = page, loader, engine
        self._followed: Job | None = None
        loader.changed.connect(self.show)
        endings = (engine.on_change(self.show),)
        page.destroyed.connect(lambda: [end() for end in endings])
        self.show()

    def show(self) -> None:
        """Say what is under way, or nothing."""
        progress, measuring = self._loader.progress, self._engine.measuring
        if progress is not None:
            text = f"{progress.title}  ·  {progress.detail}" if progress.detail else progress.title
            self._page.set_wait(text, progress.fraction)
        elif measuring is not None:
            self._follow(measuring)
            self._page.set_wait(self.tr("The speed is being measured first"), measuring.fraction)
        else:
            self._page.set_wait("")

    def _follow(self, job: Job) -> None:
        if job is not self._followed:
            self._followed = job
            job.on_change(lambda changed: self.show() if changed is self._engine.measuring else None)
