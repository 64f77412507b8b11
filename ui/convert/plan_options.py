"""What few people change about a conversion, folded away: name, routers, experts for each token, the comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QCheckBox, QFormLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from ui.theme import current_theme, themed_icon
from ui.widgets.combo_box import ComboBox
from ui.widgets.number_field import IntegerField

if TYPE_CHECKING:
    from app.conversion_plan import Examination

_ROUTERS = ("fp32", "bf16", "fp16")


class PlanOptions(QWidget):
    """`router`, `top_k`, `name` are None or the usual where nothing was changed."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._found: Examination | None = None
        self.toggle = QPushButton(self.tr("More options"), self)
        self.toggle.setProperty("kind", "reasoning")
        self.toggle.setCheckable(True)
        self.toggle.setCursor(Qt.CursorShape.PointingHandCursor)
        self.toggle.setAccessibleName(self.tr("More options"))
        self.toggle.toggled.connect(self._on_toggled)
        self._body = QWidget(self)
        form = QFormLayout(self._body)
        form.setContentsMargins(0, 4, 0, 4)
        form.setHorizontalSpacing(24)
        form.setVerticalSpacing(10)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        self._form = form
        self.name_field = QLineEdit(self)
        self.name_field.setMaxLength(200)
        self._row(self.tr("Name"), self.name_field, self.tr("As it is shown in lists of models"))
        self.router_field = ComboBox(self)
        self.router_field.addItems([self.tr("fp32 (exact)"), "bf16", "fp16"])
        self._row(
            self.tr("Router precision"), self.router_field, self.tr("Less than fp32 can choose other experts at times")
        )
        self.top_k_field = IntegerField(1, 1, 1, self)
        self._row(
            self.tr("Experts for each token"),
            self.top_k_field,
            self.tr("Fewer are faster, and worse: the model was trained with the number given"),
        )
        self.proof_field = QCheckBox(self.tr("Let both read a text, and count how often they agree"), self)
        self._row(
            self.tr("Compare with the source"),
            self.proof_field,
            self.tr("The figures are kept in the file. For a large model it takes some minutes"),
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.toggle, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._body)
        self._body.hide()
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def _row(self, title: str, field: QWidget, hint: str) -> None:
        field.setAccessibleName(title)
        note = QLabel(hint, self)
        note.setProperty("tone", "faint")
        note.setWordWrap(True)
        box = QWidget(self)
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        column.addWidget(field)
        column.addWidget(note)
        label = QLabel(title, self)
        label.setMinimumWidth(current_theme().px(150))
        self._form.addRow(label, box)

    def show_examination(self, found: Examination) -> None:
        self._found = found
        self.name_field.setText(found.model_name)
        self.router_field.setCurrentIndex(0)
        self.proof_field.setChecked(True)
        has_experts = bool(found.n_experts and found.top_k)
        for row in (1, 2):
            self._form.setRowVisible(row, has_experts)
        self.top_k_field.setRange(1, found.n_experts or 1)
        self.top_k_field.setValue(found.top_k or 1)

    @property
    def router(self) -> str:
        return _ROUTERS[max(0, self.router_field.currentIndex())]

    @property
    def top_k(self) -> int | None:
        value = self.top_k_field.value()
        return None if self._found is None or not self._found.n_experts or value == self._found.top_k else value

    @property
    def name(self) -> str | None:
        text = self.name_field.text().strip()
        return None if self._found is None or text in {"", self._found.model_name} else text

    @property
    def proves(self) -> bool:
        return self.proof_field.isChecked()

    def _on_toggled(self, is_open: bool) -> None:
        self._body.setVisible(is_open)
        self._restyle()

    def _restyle(self) -> None:
        size = current_theme().px(14)
        icon = "chevron-down" if self.toggle.isChecked() else "chevron-right"
        self.toggle.setIcon(themed_icon(icon, "text_muted", size))
        self.toggle.setIconSize(QSize(size, size))
