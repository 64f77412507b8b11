"""The plan: what the checkpoint is, which file shall come out, where it goes, and whether it will fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QPushButton, QVBoxLayout, QWidget

from app.model_details import parameters
from app.target_errors import SPARE_BYTES
from app.unfinished import ConversionRequest
from ui import format as fmt
from ui.convert.calibration_choice import CalibrationChoice
from ui.convert.conversion_task import ConversionTask
from ui.convert.plan_options import PlanOptions
from ui.convert.type_choice import TypeChoice
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.fact_grid import FactGrid
from ui.widgets.notice import InlineNotice
from ui.wizard.shell import StageView
from ui.wizard.target_row import TargetRow

if TYPE_CHECKING:
    from app.conversion_plan import Examination


class PlanView(StageView):
    """Everything has an answer already: one click starts. `start` and `back` are for the page's foot."""

    started = Signal(object)  # ConversionRequest
    back_requested = Signal()

    def __init__(self, task: ConversionTask, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._task = task
        self._examination: Examination | None = None
        self._is_type_own = False
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
        inside.addWidget(self._name)
        inside.addWidget(self._path)
        inside.addSpacing(8)
        inside.addWidget(self.facts)
        self.types = TypeChoice(self)
        self.types.chosen.connect(self._on_type)
        self.target = TargetRow(self)
        self.target.changed.connect(self._show_disk)
        self.notice = InlineNotice(self)
        self.doubts = InlineNotice(self)
        self.calibration = CalibrationChoice(self)
        self.calibration.changed.connect(self._show_disk)
        self._calibration_title = self._section(self.tr("Calibration"))
        self.options = PlanOptions(self)
        self.options.proof_field.toggled.connect(lambda _is_on: self._show_disk())
        self.start = QPushButton(self.tr("Convert"), self)
        self.start.setProperty("kind", "primary")
        self.start.clicked.connect(self._on_start)
        self.back = QPushButton(self.tr("Back"), self)
        self.back.clicked.connect(self.back_requested)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(card)
        column.addWidget(self.doubts)
        column.addSpacing(6)
        column.addWidget(self._section(self.tr("Kind of file")))
        column.addWidget(self.types)
        column.addSpacing(6)
        column.addWidget(self._calibration_title)
        column.addWidget(self.calibration)
        column.addSpacing(6)
        column.addWidget(self._section(self.tr("Save as")))
        column.addWidget(self.target)
        column.addWidget(self.options)
        column.addWidget(self.notice)

    def _section(self, title: str) -> QLabel:
        label = QLabel(title, self)
        label.setProperty("tone", "section")
        return label

    def refresh(self) -> None:
        """Show what the task knows by now."""
        from app.conversion_plan import recommended  # noqa: PLC0415 - NumPy; the task has imported it by now

        found = self._task.examination
        if found is None:
            return
        if found is not self._examination:
            self._show_examination(found)
        best = recommended(list(self._task.outlooks.values()), self.target.free_bytes)
        if len(self._task.outlooks) < len(self._task.kinds):
            best = None  # not before all are known
        self.types.show_outlooks(self._task.outlooks, best, found.type_key)
        if best is not None and not self._is_type_own:
            self.types.choose(best)
            self._is_type_own = False
        self._show_disk()

    def request(self) -> ConversionRequest | None:
        """What was chosen so far; None while no kind is."""
        key, found = self.types.key, self._examination
        if key is None or found is None:
            return None
        return ConversionRequest(
            str(found.source),
            str(self.target.path),
            key,
            self.options.router,
            self.options.top_k,
            self.options.name,
            self.calibration.value if self._is_quantised else "",
            self.options.proves,
        )

    @property
    def _is_quantised(self) -> bool:
        """Whether the chosen kind rounds in a way that calibration can weight."""
        kind = next((kind for kind in self._task.kinds if kind.key == self.types.key), None)
        return kind is not None and kind.mixture is not None

    def _show_examination(self, found: Examination) -> None:
        from app.file_types import preferred  # noqa: PLC0415 - NumPy; the task has imported it by now

        self._examination = found
        self.target.is_own = self._is_type_own = False
        self._name.setText(found.name)
        self._path.setText(str(found.source))
        experts = None
        if found.n_experts:
            experts = self.tr("{n}, {k} for each token").format(n=fmt.count(found.n_experts), k=found.top_k)
        context = found.context_length
        self.facts.set_facts(
            [
                (self.tr("Architecture"), found.architecture),
                (self.tr("Parameters"), parameters(found.n_parameters)),
                (self.tr("Experts"), experts or self.tr("none (a dense model)")),
                (self.tr("Layers"), fmt.count(found.n_layers) if found.n_layers else None),
                (self.tr("Context"), self.tr("{n} tokens").format(n=fmt.count(context)) if context else None),
                (
                    self.tr("Present types") if found.is_model_file else self.tr("Published as"),
                    ", ".join(found.source_types[:3]),
                ),
                (self.tr("Size"), fmt.size(found.source_bytes)),
                (self.tr("Licence"), found.licence or self.tr("not said")),
            ]
        )
        self.doubts.say("warning", "\n".join(self._doubt(doubt) for doubt in found.doubts))
        self.options.show_examination(found)
        self.types.set_kinds(self._task.kinds)
        self.types.choose(preferred([kind.key for kind in self._task.kinds]) or found.type_key)
        self._is_type_own = False
        self._propose_target()

    def _doubt(self, doubt: str) -> str:
        return {
            "quantised": self.tr(
                "It is quantised already: what that lost stays lost. Convert the original if you can."
            ),
            "no-chat-template": self.tr("It has no chat template: it continues texts rather than answers questions."),
            "no-licence": self.tr("It names no licence: look on its page what you may do with it."),
        }.get(doubt, doubt)

    def _propose_target(self) -> None:
        from app.conversion_plan import proposed_target  # noqa: PLC0415

        kind = next((kind for kind in self._task.kinds if kind.key == self.types.key), None)
        if kind is not None and self._examination is not None:
            self.target.propose(proposed_target(self._examination.source, kind))

    def _on_type(self, _key: str) -> None:
        self._is_type_own = True
        self._propose_target()
        self._show_disk()

    def _show_disk(self) -> None:
        self._calibration_title.setVisible(self._is_quantised)
        self.calibration.setVisible(self._is_quantised)
        outlook = self._task.outlooks.get(self.types.key or "")
        n_bytes = None if outlook is None else outlook.n_bytes
        n_copies = 2 if self.options.proves else 1  # the figures are written into the file
        problem = self.target.problem(n_bytes, n_copies * (n_bytes or 0) + SPARE_BYTES)
        if not problem and self._is_quantised and self.calibration.is_incomplete:
            problem = self.tr("Name the text for calibration, or choose another.")
        if problem:
            self.notice.say("danger", problem)
        elif outlook is not None and outlook.memory is not None and not outlook.memory.fits:
            self.notice.say(
                "warning",
                self.tr(
                    "This file will need {needed} of memory, and {available} are free. It can be written, but to run "
                    "it close other programs, choose a smaller kind, or a shorter context in the settings."
                ).format(
                    needed=fmt.size(outlook.memory.plan.total_bytes), available=fmt.size(outlook.memory.available_bytes)
                ),
            )
        else:
            self.notice.say("info", "")
        self.start.setEnabled(not problem and self.types.key is not None)

    def _on_start(self) -> None:
        request = self.request()
        if request is not None:
            self.started.emit(request)

    def focus(self) -> None:
        """Put the keyboard where Enter starts."""
        self.start.setFocus(Qt.FocusReason.OtherFocusReason)
