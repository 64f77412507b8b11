"""The plan of a carving: how many experts, how many of them for every token, where the file goes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFormLayout, QFrame, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.carving_request import CarvingRequest
from app.model_details import parameters
from app.target_errors import SPARE_BYTES
from ui import format as fmt
from ui.carve.carving_task import CarvingTask
from ui.carve.cut_picture import CutPicture
from ui.widgets.combo_box import ComboBox
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.fact_grid import FactGrid
from ui.widgets.notice import InlineNotice
from ui.widgets.number_field import IntegerField
from ui.wizard.shell import StageView
from ui.wizard.target_row import TargetRow

_COPIES = 2  # while the table is written into the file


class CutView(StageView):
    """Everything has an answer already: one click starts. `start` and `back` are for the page's foot."""

    started = Signal(object)  # CarvingRequest
    back_requested = Signal()
    text_requested = Signal()

    def __init__(self, task: CarvingTask, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._task = task
        self._base: CarvingRequest | None = None
        self._build()

    def _build(self) -> None:
        self._name = ElidedLabel(self)
        self._name.setProperty("tone", "title")
        self._path = ElidedLabel(self)
        self._path.setProperty("tone", "small")
        self.facts = FactGrid(self)
        card = QFrame(self)
        card.setObjectName("Card")
        inside = QVBoxLayout(card)
        inside.setContentsMargins(18, 15, 18, 16)
        inside.setSpacing(4)
        for widget in (self._name, self._path, self.facts):
            inside.addWidget(widget)
        self.picture = CutPicture(self)
        self.experts = ComboBox(self)
        self.experts.currentIndexChanged.connect(lambda _index: self._on_experts())
        self.shared = IntegerField(1, 1, 1, self)
        self.shared.valueChanged.connect(lambda _value: self._show_plan())
        self.whole = IntegerField(0, 1, 0, self)
        self.whole.valueChanged.connect(lambda _value: self._show_plan())
        self.text = QLineEdit(self)
        self.text.setPlaceholderText(self.tr("English, Chinese and code that come with Colibri"))
        self.text.textChanged.connect(lambda _text: self._show_plan())
        self.target = TargetRow(self)
        self.target.changed.connect(self._show_plan)
        self.notice = InlineNotice(self)
        self.start = QPushButton(self.tr("Cut and measure"), self)
        self.start.setProperty("kind", "primary")
        self.start.clicked.connect(self._on_start)
        self.back = QPushButton(self.tr("Back"), self)
        self.back.clicked.connect(self.back_requested)
        browse_text = QPushButton(self.tr("Choose…"), self)
        browse_text.setAccessibleName(self.tr("Choose a text"))
        browse_text.clicked.connect(self.text_requested)
        form = QFormLayout()
        form.setHorizontalSpacing(24)
        form.setVerticalSpacing(12)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for title, field, button, hint in (
            (
                self.tr("Parts of each network"),
                self.experts,
                None,
                self.tr("More parts route finer and cost more time"),
            ),
            (
                self.tr("Shared by all tokens"),
                self.shared,
                None,
                self.tr("The parts that are busiest on the text; a quarter of them is a good choice"),
            ),
            (
                self.tr("First layers left whole"),
                self.whole,
                None,
                self.tr("What the first layers lose is never made up for"),
            ),
            (
                self.tr("Text to watch it on"),
                self.text,
                browse_text,
                self.tr("Parts that work at the same time become one expert"),
            ),
            (self.tr("Save as"), self.target, None, ""),
        ):
            form.addRow(*self._row(title, field, button, hint))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addWidget(card)
        column.addWidget(self.picture)
        column.addLayout(form)
        column.addWidget(self.notice)

    def _row(self, title: str, field: QWidget, button: QPushButton | None, hint: str) -> tuple[QLabel, QWidget]:
        field.setAccessibleName(title)
        box = QWidget(self)
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(3)
        line = QHBoxLayout()
        line.addWidget(field, 1)
        if button is not None:
            line.addWidget(button)
        column.addLayout(line)
        if hint:
            note = QLabel(hint, self)
            note.setProperty("tone", "faint")
            note.setWordWrap(True)
            column.addWidget(note)
        label = QLabel(title, self)
        label.setMinimumWidth(150)
        label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        return label, box

    def refresh(self) -> None:
        """Another model, or the same one again."""
        model = self._task.model
        if model is None or (self._base is not None and self._base.source == str(model.path)):
            self._show_plan()
            return
        self._name.setText(model.name)
        self._path.setText(str(model.path))
        self.facts.set_facts(
            [
                (self.tr("Parameters"), parameters(model.n_parameters)),
                (self.tr("Layers"), fmt.count(model.n_layers)),
                (self.tr("Neurons of a network"), fmt.count(model.n_feed_forward)),
                (self.tr("Size"), fmt.size(model.file_bytes)),
            ]
        )
        base = model.request()
        self._base = None  # nothing is shown until all fields are filled
        self.experts.clear()
        self.experts.addItems([str(n) for n in model.expert_counts])
        self.experts.setCurrentIndex(model.expert_counts.index(base.n_experts))
        self.shared.setRange(1, base.n_experts - 2)
        self.shared.setValue(base.n_shared)
        self.whole.setRange(0, model.n_layers - 1)
        self.whole.setValue(base.n_dense_layers)
        self.text.clear()
        self.target.is_own = False
        self.target.propose(Path(base.target))
        self._base = base
        self._show_plan()

    def set_text(self, path: str) -> None:
        self.text.setText(path)

    def request(self) -> CarvingRequest | None:
        """What was chosen so far."""
        if self._base is None or not self.experts.currentText():
            return None
        text = self.text.text().strip()
        return replace(
            self._base,
            target=str(self.target.path),
            n_experts=int(self.experts.currentText()),
            n_shared=self.shared.value(),
            n_dense_layers=self.whole.value(),
            text=str(Path(text).expanduser()) if text else None,
        )

    def _on_experts(self) -> None:
        if self._base is not None and self.experts.currentText():
            n_experts = int(self.experts.currentText())
            self.shared.setRange(1, n_experts - 2)
            self.shared.setValue(max(1, n_experts // 4))
            self._show_plan()

    def _show_plan(self) -> None:
        request, model = self.request(), self._task.model
        if request is None or model is None:
            return
        self.picture.show_cut(request.n_experts, request.n_shared)
        problem = self._problem(request, model.n_bytes)
        self.notice.say("danger", problem)
        self.start.setEnabled(not problem)

    def _problem(self, request: CarvingRequest, n_bytes: int) -> str:
        problem = self.target.problem(n_bytes, _COPIES * n_bytes + SPARE_BYTES)
        if not problem and request.text is not None and not Path(request.text).is_file():
            return self.tr("There is no such text. Choose another, or leave the field empty.")
        return problem

    def _on_start(self) -> None:
        request = self.request()
        if request is not None:
            self.started.emit(request)

    def focus(self) -> None:
        """Put the keyboard where Enter starts."""
        self.start.setFocus(Qt.FocusReason.OtherFocusReason)
