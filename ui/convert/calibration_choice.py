"""Whether errors are weighted by what matters on a text, and on which one."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.unfinished import INCLUDED_TEXTS
from ui.widgets.combo_box import ComboBox

_INCLUDED, _OWN, _NONE = range(3)


class CalibrationChoice(QWidget):
    """`value` is what a request takes: INCLUDED_TEXTS, a path, or "" for none."""

    changed = Signal()
    text_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.field = ComboBox(self)
        self.field.setAccessibleName(self.tr("Calibration"))
        self.field.addItems(
            [
                self.tr("On English, Chinese and code (recommended)"),
                self.tr("On a text of your own"),
                self.tr("None (quicker)"),
            ]
        )
        self.field.currentIndexChanged.connect(self._on_chosen)
        self.path = QLineEdit(self)
        self.path.setAccessibleName(self.tr("Text for calibration"))
        self.path.setPlaceholderText(self.tr("A text file in UTF-8; 100 kB are enough"))
        self.path.textChanged.connect(lambda _text: self.changed.emit())
        self.browse = QPushButton(self.tr("Choose…"), self)
        self.browse.setAccessibleName(self.tr("Choose a text"))
        self.browse.clicked.connect(self.text_requested)
        self._hint = QLabel(self)
        self._hint.setProperty("tone", "small")
        self._hint.setWordWrap(True)
        own = QHBoxLayout()
        own.addWidget(self.path, 1)
        own.addWidget(self.browse)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(self.field)
        column.addLayout(own)
        column.addWidget(self._hint)
        self._show()

    @property
    def value(self) -> str:
        index = self.field.currentIndex()
        return {_INCLUDED: INCLUDED_TEXTS, _OWN: self.path.text().strip()}.get(index, "")

    @property
    def is_incomplete(self) -> bool:
        """Whether a text of one's own is wanted and not named yet."""
        return self.field.currentIndex() == _OWN and not self.path.text().strip()

    def set_text(self, path: str) -> None:
        """The text that the user chose."""
        self.field.setCurrentIndex(_OWN)
        self.path.setText(path)

    def _on_chosen(self) -> None:
        self._show()
        self.changed.emit()
        if self.is_incomplete and self.isVisible():
            self.path.setFocus()

    def _show(self) -> None:
        index = self.field.currentIndex()
        self.path.setVisible(index == _OWN)
        self.browse.setVisible(index == _OWN)
        self._hint.setText(
            {
                _INCLUDED: self.tr(
                    "The model reads them first, so that every expert keeps best what it really uses. It takes some "
                    "minutes for a large model."
                ),
                _OWN: self.tr("Best of the kind that the model will be used for."),
            }.get(index, self.tr("All weights count alike: a little less exact, most of all in four bits."))
        )
