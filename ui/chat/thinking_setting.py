"""Keeps the thinking button with the settings and with what the open model knows."""

from __future__ import annotations

from PySide6.QtCore import QObject

from app.engine_service import EngineService
from app.settings import SettingsFile
from ui.chat.thinking_button import ThinkingButton


class ThinkingSetting(QObject):
    """Lives as long as its button. One choice is kept for models that think or do not, one for those with efforts."""

    def __init__(self, button: ThinkingButton, engine: EngineService, settings: SettingsFile) -> None:
        super().__init__(button)
        self._button, self._engine, self._settings = button, engine, settings
        button.chosen.connect(self._choose)
        endings = (engine.on_change(self.show), settings.on_change(lambda _settings: self.show()))
        button.destroyed.connect(lambda: [end() for end in endings])
        self.show()

    def show(self) -> None:
        """Offer what the open model knows."""
        thinking, settings = self._engine.thinking, self._settings.settings
        if thinking is None:
            self._button.set_choices((), "")
            return
        chosen = thinking.first_of((settings.thinking, settings.thinking_effort))
        self._button.set_choices(thinking.choices, chosen or thinking.usual or "")

    def _choose(self, choice: str) -> None:
        name = "thinking" if choice in {"on", "off"} else "thinking_effort"
        self._settings.change(**{name: choice})
