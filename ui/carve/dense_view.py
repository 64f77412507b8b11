"""The first step of a carving: which model, of those that can be carved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.carving_request import CarvingRequest
from ui import format as fmt
from ui.carve.carving_task import CarvingTask
from ui.theme import current_theme, themed_icon
from ui.wizard.shell import StageView
from ui.wizard.unfinished_card import UnfinishedCard

if TYPE_CHECKING:
    from app.carving_plan import Candidate

_MOST_SHOWN = 20


class DenseView(StageView):
    """Lists the library's dense models; any other file can be looked at too."""

    chosen = Signal(object)  # Path
    file_requested = Signal()

    def __init__(self, task: CarvingTask, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._task = task
        self.unfinished = UnfinishedCard(self.tr("A carving was interrupted"), self)
        title = QLabel(self.tr("Make a model with experts of one without"), self)
        title.setProperty("tone", "hero-small")
        title.setWordWrap(True)
        text = QLabel(
            self.tr(
                "Each feed-forward network of a dense model is cut into parts: some work for every token, and a router "
                "chooses among the others. Nothing is trained. With all parts on, the model computes what it did; with "
                "fewer it loses, and before you decide you see measured how much. It shows how routing works; for "
                "daily use take a model that was trained with experts."
            ),
            self,
        )
        text.setProperty("tone", "muted")
        text.setWordWrap(True)
        self._list_title = QLabel(self.tr("Dense models on this machine"), self)
        self._list_title.setProperty("tone", "section")
        self.empty = QLabel(self)
        self.empty.setProperty("tone", "muted")
        self.empty.setWordWrap(True)
        self._list = QVBoxLayout()
        self._list.setSpacing(6)
        self.file_button = QPushButton(self.tr("Choose another file…"), self)
        self.file_button.clicked.connect(self.file_requested)
        self._buttons: list[QPushButton] = []
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        for widget in (self.unfinished, title, text):
            column.addWidget(widget)
        column.addSpacing(4)
        column.addWidget(self._list_title)
        column.addWidget(self.empty)
        column.addLayout(self._list)
        column.addWidget(self.file_button, 0, Qt.AlignmentFlag.AlignLeft)
        current_theme().changed.connect(self._restyle)

    def show_unfinished(self, request: CarvingRequest | None) -> None:
        """Offer to go on with a carving that was interrupted."""
        text = "" if request is None else f"{request.name or request.source}  →  {Path(request.target).name}"
        self.unfinished.show_request(request, text)

    def refresh(self) -> None:
        """Show which models can be carved, as far as they have been looked through."""
        candidates = self._task.candidates
        for old in self._buttons:
            self._list.removeWidget(old)
            old.hide()
            old.deleteLater()
        fitting = [candidate for candidate in candidates or [] if not candidate.problem]
        self._buttons = [self._button(candidate) for candidate in fitting[:_MOST_SHOWN]]
        for button in self._buttons:
            self._list.addWidget(button)
        if candidates is None:
            self.empty.setText(self.tr("Looking through the models…"))
        else:
            self.empty.setText(
                self.tr(
                    "None of your models can be carved. It takes a dense model as a GGUF file (Llama, SmolLM2, "
                    "Mistral, TinyLlama, Qwen2.5, Qwen3 and others); the starter model is one."
                )
            )
        self.empty.setVisible(not fitting)
        self._restyle()

    @property
    def buttons(self) -> list[QPushButton]:
        return list(self._buttons)

    def focus(self) -> None:
        """Put the keyboard on the first model."""
        (self._buttons[0] if self._buttons else self.file_button).setFocus(Qt.FocusReason.OtherFocusReason)

    def _button(self, candidate: Candidate) -> QPushButton:
        button = QPushButton(self)
        button.setProperty("kind", "card")
        text = f"{candidate.name}  ·  {fmt.size(candidate.file_bytes)}"
        button.setAccessibleName(text)
        button.setToolTip(str(candidate.path))
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setText(button.fontMetrics().elidedText(text, Qt.TextElideMode.ElideMiddle, 560))
        button.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        button.clicked.connect(lambda: self.chosen.emit(candidate.path))
        return button

    def _restyle(self) -> None:
        size = current_theme().px(18)
        for button in self._buttons:
            button.setIcon(themed_icon("model", "accent", size))
            button.setIconSize(QSize(size, size))
