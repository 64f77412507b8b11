"""The first step: a model is dropped, chosen, or taken from those that other programs have fetched."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.model_places import checkpoint_name
from app.unfinished import ConversionRequest
from ui.convert.drop_zone import DropZone
from ui.theme import current_theme, themed_icon
from ui.wizard.shell import StageView
from ui.wizard.unfinished_card import UnfinishedCard

_MOST_SHOWN = 12


class ChooseView(StageView):
    """Asks for a checkpoint or a file; what it is, is found out later."""

    chosen = Signal(object)  # Path
    folder_requested = Signal()
    file_requested = Signal()
    carve_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.unfinished = UnfinishedCard(self.tr("A conversion was interrupted"), self)
        self.drop_zone = DropZone(self)
        self.drop_zone.dropped.connect(self.chosen)
        self.drop_zone.folder_requested.connect(self.folder_requested)
        self.drop_zone.file_requested.connect(self.file_requested)
        note = QLabel(
            self.tr(
                "A model file in the GGUF format is made of it: one file that Colibri and other programs open at once. "
                "The original is only read, and nothing leaves this machine."
            ),
            self,
        )
        note.setProperty("tone", "muted")
        note.setWordWrap(True)
        self.carve = self._card(self.tr("Or cut a dense model into experts…"))
        self.carve.setToolTip(
            self.tr("A model without experts becomes one with experts, so that you can see them work")
        )
        self.carve.clicked.connect(self.carve_requested)
        self._found_title = QLabel(self.tr("Found on this machine"), self)
        self._found_title.setProperty("tone", "section")
        self._found = QVBoxLayout()
        self._found.setSpacing(6)
        self._buttons: list[QPushButton] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(14)
        column.addWidget(self.unfinished)
        column.addWidget(self.drop_zone)
        column.addWidget(note)
        column.addWidget(self.carve)
        column.addSpacing(6)
        column.addWidget(self._found_title)
        column.addLayout(self._found)
        self._found_title.hide()
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def show_unfinished(self, request: ConversionRequest | None) -> None:
        """Offer to go on with a conversion that was interrupted."""
        text = "" if request is None else f"{checkpoint_name(Path(request.source))}  →  {Path(request.target).name}"
        self.unfinished.show_request(request, text)

    def set_found(self, folders: list[Path]) -> None:
        """Offer checkpoints that are on this machine."""
        for old in self._buttons:
            self._found.removeWidget(old)
            old.hide()
            old.deleteLater()
        self._buttons = [self._button(folder) for folder in folders[:_MOST_SHOWN]]
        for button in self._buttons:
            self._found.addWidget(button)
        self._found_title.setVisible(bool(self._buttons))
        self._restyle()

    def focus(self) -> None:
        """Put the keyboard on the button that asks for a folder."""
        self.drop_zone.folder_button.setFocus(Qt.FocusReason.OtherFocusReason)

    @property
    def found(self) -> list[QPushButton]:
        return list(self._buttons)

    def _button(self, folder: Path) -> QPushButton:
        button = self._card(checkpoint_name(folder))
        button.setToolTip(str(folder))
        button.clicked.connect(lambda: self.chosen.emit(folder))
        return button

    def _card(self, text: str) -> QPushButton:
        button = QPushButton(self)
        button.setProperty("kind", "card")
        button.setAccessibleName(text)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setText(button.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, 560))
        button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        return button

    def _restyle(self) -> None:
        size = current_theme().px(18)
        for button in self._buttons:
            button.setIcon(themed_icon("folder", "accent", size))
            button.setIconSize(QSize(size, size))
        self.carve.setIcon(themed_icon("experts", "accent", size))
        self.carve.setIconSize(QSize(size, size))
