"""How many experts a model is opened with: its own number, or another; for carved models with what each costs."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.model_details import ModelDetails
from ui import format as fmt
from ui.carve.loss_table import LossTable
from ui.widgets.number_field import IntegerField


class ExpertChoice(QWidget):
    """Hidden for models without experts. Tells the number that is wanted; None: the model's own."""

    chosen = Signal(object)  # int or None
    load_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._details: ModelDetails | None = None
        self._top_k = 0
        self.field = IntegerField(1, 1, 1, self)
        self.field.setAccessibleName(self.tr("Experts for each token"))
        self.field.valueChanged.connect(self._on_value)
        self.usual = QPushButton(self.tr("The model's own"), self)
        self.usual.clicked.connect(self._on_usual)
        self.again = QPushButton(self.tr("Load again"), self)
        self.again.setProperty("kind", "primary")
        self.again.clicked.connect(self.load_requested)
        self.table = LossTable(self, is_narrow=True)
        self.table.chosen.connect(self._on_value)
        self._text = QLabel(self)
        self._text.setProperty("tone", "small")
        self._text.setWordWrap(True)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.field)
        row.addWidget(self.usual)
        row.addWidget(self.again)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.table)
        column.addLayout(row)
        column.addWidget(self._text)
        self.hide()

    def show_model(self, details: ModelDetails | None, wanted: int | None, loaded_with: int | None) -> None:
        """`wanted`: the user's number; `loaded_with`: the one in use now, None while the model is not loaded."""
        n_experts = details.n_experts if details is not None else None
        own = details.top_k if details is not None else None
        self.setVisible(bool(n_experts and own))
        if details is None or not n_experts or not own:
            self._details = None
            return
        self._details = None  # while the fields are filled nothing is told
        self._top_k = min(wanted or own, n_experts)
        self.field.setRange(1, n_experts)
        self.field.setValue(self._top_k)
        self.table.setVisible(bool(details.losses))
        self.table.show_losses(details.losses, self._top_k)
        self.usual.setVisible(self._top_k != own)
        self.again.setVisible(loaded_with is not None and loaded_with != self._top_k)
        self._text.setText(self._described(own, has_table=bool(details.losses)))
        self._details = details

    def _described(self, own: int, *, has_table: bool) -> str:
        if has_table:
            return self.tr("Measured when it was carved, against the dense model. The file says {k}.").format(
                k=fmt.count(own)
            )
        if self._top_k == own:
            return self.tr("The number it was trained with.")
        if self._top_k < own:
            return self.tr("It was trained with {k}: fewer are faster, and worse.").format(k=fmt.count(own))
        return self.tr("It was trained with {k}: more are slower, and seldom better.").format(k=fmt.count(own))

    def _on_value(self, top_k: int) -> None:
        if self._details is not None and top_k != self._top_k:
            self.chosen.emit(None if top_k == self._details.top_k else top_k)

    def _on_usual(self) -> None:
        self.chosen.emit(None)
