"""The page on which model files are made: of published models, or of dense ones that are cut into experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QPushButton, QStackedWidget, QVBoxLayout, QWidget

from app.library import ModelEntry
from ui.carve.carve_page import CarvePage
from ui.carve.carving_task import CarvingTask
from ui.convert.conversion_task import ConversionTask
from ui.convert.convert_page import ConvertPage
from ui.widgets.page_header import PageHeader


class MakingPage(QWidget):
    """Two ways, each a page of its own, made when it is first shown; two buttons in the header choose."""

    chat_requested = Signal(object)  # Path: with a converted model
    watch_requested = Signal(object)  # Path: with a carved one
    reveal_requested = Signal(object)  # Path

    def __init__(
        self,
        conversion: ConversionTask,
        carving: CarvingTask,
        entries: Callable[[], Sequence[ModelEntry]],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("Page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.convert = ConvertPage(conversion, self)
        self._carving, self._entries = carving, entries
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.convert)
        header = PageHeader(self.tr("Make a model file"), self)
        self._group = QButtonGroup(self)
        self.convert_button = self._tab(self.tr("Convert"), header)
        self.carve_button = self._tab(self.tr("Cut into experts"), header)
        self.convert_button.setChecked(True)
        self._group.buttonToggled.connect(self._on_toggled)
        self.convert.carve_requested.connect(self.show_carving)
        self.convert.chat_requested.connect(self.chat_requested)
        self.convert.reveal_requested.connect(self.reveal_requested)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(header)
        layout.addWidget(self._stack, 1)

    @cached_property
    def carve(self) -> CarvePage:
        page = CarvePage(self._carving, self._entries, self)
        page.chat_requested.connect(self.watch_requested)
        page.reveal_requested.connect(self.reveal_requested)
        self._stack.addWidget(page)
        return page

    def _tab(self, text: str, header: PageHeader) -> QPushButton:
        button = QPushButton(text, self)
        button.setProperty("kind", "tab")
        button.setCheckable(True)
        button.setAccessibleName(text)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._group.addButton(button)
        header.add(button)
        return button

    def show_carving(self) -> None:
        """The way from a dense model to one with experts."""
        self.carve_button.setChecked(True)

    def show_converting(self) -> None:
        """The way from a published model to a model file."""
        self.convert_button.setChecked(True)

    @property
    def is_carving(self) -> bool:
        return self.carve_button.isChecked()

    def look_around(self) -> None:
        """Look again for what is on this machine."""
        self.convert.look_around()
        if self.is_carving:
            self.carve.look_around()

    def _on_toggled(self, button: QPushButton, is_on: bool) -> None:
        if not is_on:
            return
        is_carving = button is self.carve_button
        self._stack.setCurrentWidget(self.carve if is_carving else self.convert)
        if is_carving:
            self.carve.look_around()
