"""A card that offers to go on with what was interrupted, or to discard it."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.widgets.elided_label import ElidedLabel


class UnfinishedCard(QFrame):
    """Hidden while there is nothing to go on with."""

    resumed = Signal(object)  # the request
    discarded = Signal(object)

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("Notice")
        self._request: object = None
        label = QLabel(title, self)
        label.setProperty("tone", "strong")
        self._text = ElidedLabel(self)
        self.resume = QPushButton(self.tr("Go on"), self)
        self.resume.setProperty("kind", "primary")
        self.resume.clicked.connect(lambda: self.resumed.emit(self._request))
        self.discard = QPushButton(self.tr("Discard"), self)
        self.discard.clicked.connect(lambda: self.discarded.emit(self._request))
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(label)
        texts.addWidget(self._text)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 11, 12, 11)
        row.addLayout(texts, 1)
        row.addWidget(self.discard)
        row.addWidget(self.resume)
        self.hide()

    def show_request(self, request: object, text: str) -> None:
        """`text`: what it is about; None hides the card."""
        self._request = request
        self._text.setText(text)
        self.setVisible(request is not None)
