"""A page whose modules are imported on another thread when it is first seen, so that opening it stalls nothing."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget


class LatePage(QWidget):
    """Empty until ``modules`` are imported; then holds what ``make`` gives. Needs a running event loop."""

    def __init__(self, modules: Sequence[str], make: Callable[[], QWidget], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("Page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._modules, self._make = modules, make
        self._task: asyncio.Task[None] | None = None
        self.widget: QWidget | None = None
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        self._layout = layout

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._fill())

    async def _fill(self) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self._import)
        self.widget = self._make()
        self._layout.addWidget(self.widget)

    def _import(self) -> None:
        for name in self._modules:
            importlib.import_module(name)
