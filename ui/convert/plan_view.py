"""The plan: what the checkpoint is, which file shall come out, where it goes, and whether it will fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.model_details import parameters
from app.unfinished import ConversionRequest
from ui import format as fmt
from ui.convert.conversion_task import ConversionTask
from ui.convert.plan_options import PlanOptions
from ui.convert.type_choice import TypeChoice
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.fact_grid import FactGrid
from ui.widgets.notice import InlineNotice

if TYPE_CHECKING:
    from app.conversion_plan import Examination


class PlanView(QWidget):
    """Everything has an answer already: one click starts. `start` and `back` are for the page's foot."""

    started = Signal(object)  # ConversionRequest
    back_requested = Signal()
    target_requested = Signal(str)  # the present one

    def __init__(self, task: ConversionTask, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._task = task
        self._examination: Examination | None = None
        self._is_target_own = False  # typed or chosen, so no longer proposed
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
        self.target = QLineEdit(self)
        self.target.setAccessibleName(self.tr("Save as"))
        self.target.textEdited.connect(self._on_target_edited)
        self.target.textChanged.connect(lambda _text: self._show_disk())
        self.browse = QPushButton(self.tr("Choose…"), self)
        self.browse.setAccessibleName(self.tr("Choose where to save"))
        self.browse.clicked.connect(lambda: self.target_requested.emit(self.target.text()))
        where = QHBoxLayout()
        where.addWidget(self.target, 1)
        where.addWidget(self.browse)
        self._disk = QLabel(self)
        self._disk.setProperty("tone", "small")
        self._disk.setWordWrap(True)
        self.notice = InlineNotice(self)
        self.options = PlanOptions(self)
        self.start = QPushButton(self.tr("Convert"), self)
        self.start.setProperty("kind", "primary")
        self.start.clicked.connect(self._on_start)
        self.back = QPushButton(self.tr("Back"), self)
        self.back.clicked.connect(self.back_requested)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(card)
        column.addSpacing(6)
        column.addWidget(self._section(self.tr("Kind of file")))
        column.addWidget(self.types)
        column.addSpacing(6)
        column.addWidget(self._section(self.tr("Save as")))
        column.addLayout(where)
        column.addWidget(self._disk)
        column.addWidget(self.options)
        column.addWidget(self.notice)

    def _section(self, title: str) -> QLabel:
        label = QLabel(title, self)
        label.setProperty("tone", "section")
        return label

    def refresh(self) -> None:
        """Show what the task knows by now."""
        from app.conversion_plan import free_bytes, recommended  # noqa: PLC0415 - NumPy; the task has imported it by now

        found = self._task.examination
        if found is None:
            return
        if found is not self._examination:
            self._show_examination(found)
        best = recommended(list(self._task.outlooks.values()), free_bytes(Path(self.target.text())))
        if len(self._task.outlooks) < len(self._task.kinds):
            best = None  # not before all are known
        self.types.show_outlooks(self._task.outlooks, best, found.type_key)
        if best is not None and not self._is_type_own:
            self.types.choose(best)
            self._is_type_own = False
        self._show_disk()

    def set_target(self, target: Path) -> None:
        """Where the user wants the file."""
        self._is_target_own = True
        self.target.setText(str(target))

    def request(self) -> ConversionRequest | None:
        """What was chosen so far; None while no kind is."""
        key, found = self.types.key, self._examination
        if key is None or found is None:
            return None
        target = Path(self.target.text().strip()).expanduser()
        return ConversionRequest(
            str(found.source),
            str(target),
            key,
            self.options.router,
            self.options.top_k,
            self.options.name,
        )

    def _show_examination(self, found: Examination) -> None:
        self._examination = found
        self._is_target_own = self._is_type_own = False
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
                (self.tr("Published as"), ", ".join(found.source_types[:3])),
                (self.tr("Size"), fmt.size(found.source_bytes)),
                (self.tr("Licence"), found.licence or self.tr("not said")),
            ]
        )
        self.options.show_examination(found)
        self.types.set_kinds(self._task.kinds)
        self.types.choose(found.type_key)
        self._is_type_own = False
        self._propose_target()

    def _propose_target(self) -> None:
        from app.conversion_plan import proposed_target  # noqa: PLC0415

        kind = next((kind for kind in self._task.kinds if kind.key == self.types.key), None)
        if kind is not None and self._examination is not None and not self._is_target_own:
            self.target.setText(str(proposed_target(self._examination.source, kind)))

    def _on_type(self, _key: str) -> None:
        self._is_type_own = True
        self._propose_target()
        self._show_disk()

    def _on_target_edited(self, _text: str) -> None:
        self._is_target_own = True

    def _show_disk(self) -> None:
        from app.conversion import SPARE_BYTES  # noqa: PLC0415
        from app.conversion_plan import free_bytes  # noqa: PLC0415

        text = self.target.text().strip()
        target = Path(text).expanduser()
        outlook = self._task.outlooks.get(self.types.key or "")
        free = free_bytes(target)
        problem = ""
        if not text:
            problem = self.tr("Name the file to write.")
        elif not target.is_absolute():
            problem = self.tr("Give the whole path of the file, from the root on.")
        elif target.is_dir():
            problem = self.tr("This is a folder. Name the file to write in it, too.")
        elif target.exists():
            problem = self.tr("This file is there already. Choose another name.")
        elif outlook is not None and outlook.n_bytes + SPARE_BYTES > free:
            problem = self.tr(
                "The disk has {free} free, and {needed} are needed. Free some, choose a smaller kind, or save to "
                "another disk."
            ).format(free=fmt.size(free), needed=fmt.size(outlook.n_bytes + SPARE_BYTES))
        if outlook is None:
            self._disk.setText(self.tr("{free} free on this disk").format(free=fmt.size(free)))
        else:
            text = self.tr("{needed} are written; {free} free on this disk")
            self._disk.setText(text.format(needed=fmt.size(outlook.n_bytes), free=fmt.size(free)))
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
