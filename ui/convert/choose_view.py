"""The first step: a checkpoint is dropped, chosen, or taken from those that other programs have fetched."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.model_places import checkpoint_name
from app.unfinished import ConversionRequest
from ui.convert.drop_zone import DropZone
from ui.theme import current_theme, themed_icon
from ui.widgets.elided_label import ElidedLabel

_MOST_SHOWN = 12


class UnfinishedCard(QFrame):
    """A conversion that was interrupted: go on with it, or not."""

    resumed = Signal(object)  # ConversionRequest
    discarded = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("Notice")
        self._request: ConversionRequest | None = None
        title = QLabel(self.tr("A conversion was interrupted"), self)
        title.setProperty("tone", "strong")
        self._text = ElidedLabel(self)
        self.resume = QPushButton(self.tr("Go on"), self)
        self.resume.setProperty("kind", "primary")
        self.resume.clicked.connect(lambda: self.resumed.emit(self._request))
        self.discard = QPushButton(self.tr("Discard"), self)
        self.discard.clicked.connect(lambda: self.discarded.emit(self._request))
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(title)
        texts.addWidget(self._text)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 11, 12, 11)
        row.addLayout(texts, 1)
        row.addWidget(self.discard)
        row.addWidget(self.resume)
        self.hide()

    def show_request(self, request: ConversionRequest | None) -> None:
        self._request = request
        if request is not None:
            self._text.setText(f"{checkpoint_name(Path(request.source))}  →  {Path(request.target).name}")
        self.setVisible(request is not None)


class ChooseView(QWidget):
    """Asks for a checkpoint; what it is, is found out later."""

    chosen = Signal(object)  # Path
    folder_requested = Signal()
    file_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.unfinished = UnfinishedCard(self)
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
        column.addSpacing(6)
        column.addWidget(self._found_title)
        column.addLayout(self._found)
        self._found_title.hide()
        current_theme().changed.connect(self._restyle)

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

    @property
    def found(self) -> list[QPushButton]:
        return list(self._buttons)

    def _button(self, folder: Path) -> QPushButton:
        name = checkpoint_name(folder)
        button = QPushButton(self)
        button.setProperty("kind", "card")
        button.setAccessibleName(name)
        button.setToolTip(str(folder))
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setText(button.fontMetrics().elidedText(name, Qt.TextElideMode.ElideMiddle, 560))
        button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        button.clicked.connect(lambda: self.chosen.emit(folder))
        return button

    def _restyle(self) -> None:
        size = current_theme().px(18)
        for button in self._buttons:
            button.setIcon(themed_icon("folder", "accent", size))
            button.setIconSize(QSize(size, size))
