"""One model in full: what it is, whether it will fit, its checksum, and what can be done with it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QProgressBar, QPushButton, QSizePolicy, QWidget

from app.library import ModelEntry
from app.model_details import parameters
from ui import format as fmt
from ui.carve.carving_task import CarvingTask
from ui.models.check_words import found_in_words
from ui.models.demonstration_card import DemonstrationCard
from ui.models.expert_choice import ExpertChoice
from ui.models.model_inspector import ModelInspector
from ui.models.place_names import place_name
from ui.models.proof_facts import proof_facts, proof_sentence
from ui.widgets.column_page import ColumnPage
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.fact_grid import FactGrid
from ui.widgets.meter import Meter
from ui.widgets.notice import InlineNotice

_WIDTH = 620
_STEPS = 1000


class ModelView(ColumnPage):
    """Shows an entry of the library, and what the inspector has found out about it."""

    chat_requested = Signal()
    load_requested = Signal()
    unload_requested = Signal()
    default_requested = Signal(bool)
    reveal_requested = Signal()
    delete_requested = Signal()
    carve_requested = Signal()
    top_k_chosen = Signal(object)  # int or None

    def __init__(self, inspector: ModelInspector, carving: CarvingTask, parent: QWidget | None = None) -> None:
        super().__init__(_WIDTH, parent)
        self._inspector = inspector
        self._top_ks: tuple[int | None, int | None] = (None, None)  # the user's, and the one in use now
        self.demonstration = DemonstrationCard(carving, self)
        self.demonstration.plan_requested.connect(self.carve_requested)
        self.entry: ModelEntry | None = None
        self._is_default = False
        self.column.setSpacing(10)
        self._head()
        self.column.addWidget(self.demonstration)
        self._experts()
        self._proof()
        self._memory()
        self._facts()
        self._checksum()
        self.column.addStretch(1)
        inspector.changed.connect(self.refresh)

    def _section(self, title: str) -> QLabel:
        label = QLabel(title, self)
        label.setProperty("tone", "section")
        self.column.addSpacing(10)
        self.column.addWidget(label)
        return label

    def _button(self, text: str, signal: object, kind: str = "") -> QPushButton:
        button = QPushButton(text, self)
        button.setAccessibleName(text)
        if kind:
            button.setProperty("kind", kind)
        button.clicked.connect(signal)
        return button

    def _head(self) -> None:
        self.title = QLabel(self)
        self.title.setProperty("tone", "hero-small")
        self.title.setWordWrap(True)
        self.title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.path = ElidedLabel(self)
        self.path.setProperty("tone", "small")
        self.state = QLabel(self)
        self.state.setProperty("tone", "muted")
        self.problem = InlineNotice(self, copyable=True)
        self.chat = self._button(self.tr("Chat with it"), self.chat_requested, "primary")
        self.load = self._button(self.tr("Load"), self.load_requested)
        self.unload = self._button(self.tr("Unload"), self.unload_requested)
        self.default = self._button(self.tr("Make default"), lambda: self.default_requested.emit(not self._is_default))
        self.reveal = self._button(self.tr("Show in the file manager"), self.reveal_requested)
        self.carve = self._button(self.tr("Cut into experts…"), self.carve_requested)
        self.delete = self._button(self.tr("Delete…"), self.delete_requested, "danger")
        first, second, third = QHBoxLayout(), QHBoxLayout(), QHBoxLayout()
        for row, buttons in (
            (first, (self.chat, self.load, self.unload, self.default)),
            (second, (self.reveal, self.delete)),
            (third, (self.carve,)),
        ):
            row.setSpacing(8)
            for button in buttons:
                row.addWidget(button)
            row.addStretch(1)
        for widget in (self.title, self.path, self.state, self.problem):
            self.column.addWidget(widget)
        self.column.addSpacing(2)
        self.column.addLayout(first)
        self.column.addLayout(second)
        self.column.addLayout(third)

    def _experts(self) -> None:
        self._experts_title = self._section(self.tr("Experts for each token"))
        self.experts = ExpertChoice(self)
        self.experts.chosen.connect(self.top_k_chosen)
        self.experts.load_requested.connect(self.load_requested)
        self.column.addWidget(self.experts)

    def _proof(self) -> None:
        self._proof_title = self._section(self.tr("Compared with its source"))
        self.proof = QLabel(self)
        self.proof.setWordWrap(True)
        self.proof_facts = FactGrid(self)
        self.column.addWidget(self.proof)
        self.column.addWidget(self.proof_facts)

    def _memory(self) -> None:
        self._memory_title = self._section(self.tr("Memory"))
        self.fit = QLabel(self)
        self.fit.setWordWrap(True)
        self.meter = Meter(self)
        self.meter.setAccessibleName(self.tr("Share of the free memory that the model needs"))
        self.memory_facts = FactGrid(self)
        for widget in (self.fit, self.meter, self.memory_facts):
            self.column.addWidget(widget)

    def _facts(self) -> None:
        self._facts_title = self._section(self.tr("Details"))
        self.facts = FactGrid(self)
        self.checks = InlineNotice(self, copyable=True)
        self.column.addWidget(self.facts)
        self.column.addWidget(self.checks)

    def _checksum(self) -> None:
        self._sum_title = self._section(self.tr("Checksum"))
        self.sums = QLineEdit(self)
        self.sums.setReadOnly(True)
        self.sums.setAccessibleName("SHA-256")
        self.sum_notice = InlineNotice(self)
        self.bar = QProgressBar(self)
        self.bar.setTextVisible(False)
        self.bar.setRange(0, _STEPS)
        self.sum_button = self._button(self.tr("Compute SHA-256"), self._on_sum_button)
        row = QHBoxLayout()
        row.addWidget(self.sum_button)
        row.addStretch(1)
        for widget in (self.sums, self.bar, self.sum_notice):
            self.column.addWidget(widget)
        self.column.addLayout(row)

    def show_entry(
        self,
        entry: ModelEntry | None,
        *,
        is_loaded: bool,
        is_loading: bool,
        is_default: bool,
        top_ks: tuple[int | None, int | None] = (None, None),
    ) -> None:
        """Another model, or another state of the same one. `top_ks`: the user's choice, and what is in use now."""
        self.entry = entry
        self._top_ks = top_ks
        self.demonstration.show_entry(entry)
        if entry is None:
            return
        self._is_default = is_default
        self.title.setText(entry.name)
        self.path.setText(str(entry.path))
        states = [
            place_name(entry.place),
            self.tr("starter model") if entry.is_starter else "",
            self.tr("loaded") if is_loaded else self.tr("loading") if is_loading else "",
            self.tr("opened at the start") if is_default else "",
        ]
        self.state.setText("  ·  ".join(state for state in states if state))
        self.load.setVisible(not is_loaded)
        self.load.setEnabled(not is_loading)
        self.unload.setVisible(is_loaded)
        self.default.setText(self.tr("No longer default") if is_default else self.tr("Make default"))
        self.default.setAccessibleName(self.default.text())
        self.refresh()

    def refresh(self) -> None:
        """Show what is known by now."""
        entry, found = self.entry, self._inspector
        if entry is None or found.path != entry.path:
            return
        problem = found.problem or entry.problem
        self.problem.say("danger", problem, self.tr("This file cannot be used") if problem else "")
        for button in (self.chat, self.load, self.default):
            button.setEnabled(not problem)
        for widget in (self._memory_title, self.fit, self._facts_title, self.facts):
            widget.setVisible(not problem)
        self._show_facts(entry)
        self._show_experts(is_shown=not problem)
        self._show_proof(is_shown=not problem)
        self._show_fit(is_shown=not problem)
        self._show_sums()

    def _show_facts(self, entry: ModelEntry) -> None:
        details = self._inspector.details
        failed = [check for check in details.checks if check.outcome == "failed"] if details is not None else []
        findings = "\n".join(found_in_words(check) for check in failed)
        self.checks.say("warning", findings, self.tr("Parts of this file contradict each other") if failed else "")
        if details is None:
            self.facts.set_facts([(self.tr("Size"), fmt.size(entry.file_bytes))])
            return
        experts = self.tr("none (a dense model)")
        if details.n_experts:
            experts = self.tr("{n}, {k} for each token").format(n=fmt.count(details.n_experts), k=details.top_k or "?")
        context, layers = details.context_length, details.n_layers
        size = fmt.size(details.file_bytes)
        if len(details.paths) > 1:
            size = self.tr("{size} in {n} files").format(size=size, n=len(details.paths))
        template = self.tr("present") if details.has_chat_template else self.tr("none")
        self.facts.set_facts(
            [
                (self.tr("Architecture"), details.architecture),
                (self.tr("Parameters"), parameters(details.n_parameters)),
                (self.tr("Experts"), experts),
                (self.tr("Layers"), fmt.count(layers) if layers else None),
                (self.tr("Context"), self.tr("{n} tokens").format(n=fmt.count(context)) if context else None),
                (self.tr("Types"), ", ".join(list(details.bytes_by_type)[:4])),
                (self.tr("Size"), size),
                (self.tr("Licence"), details.licence or self.tr("not said in the file")),
                (self.tr("Chat template"), template),
                (self.tr("Checks"), self._checks_in_short(len(details.checks) - len(failed), len(details.checks))),
                *((key.removeprefix("colibri."), value) for key, value in details.own_keys.items()),
            ]
        )

    def _checks_in_short(self, n_passed: int, n: int) -> str:
        if n_passed == n:
            return self.tr("all {n} passed").format(n=fmt.count(n))
        return self.tr("{passed} of {n} passed").format(passed=fmt.count(n_passed), n=fmt.count(n))

    def _show_experts(self, *, is_shown: bool) -> None:
        details = self._inspector.details if is_shown else None
        self.experts.show_model(details, *self._top_ks)
        self._experts_title.setVisible(not self.experts.isHidden())
        can_be_carved = details is not None and details.can_be_carved
        self.carve.setVisible(can_be_carved and self.demonstration.isHidden())

    def _show_proof(self, *, is_shown: bool) -> None:
        proof = self._inspector.details.proof if is_shown and self._inspector.details is not None else None
        for widget in (self._proof_title, self.proof, self.proof_facts):
            widget.setVisible(proof is not None)
        if proof is not None:
            self.proof.setText(proof_sentence(proof))
            self.proof_facts.set_facts([*proof_facts(proof), (self.tr("Source"), proof.source)])

    def _show_fit(self, *, is_shown: bool) -> None:
        fit, problem = self._inspector.fit, self._inspector.fit_problem
        for widget in (self.meter, self.memory_facts):
            widget.setVisible(is_shown and fit is not None)
        if fit is None:
            self.fit.setText(problem or self.tr("Calculating…"))
            return
        plan = fit.plan
        needed, free = fmt.size(plan.total_bytes), fmt.size(fit.available_bytes)
        if self.unload.isVisible():
            text = self.tr("It is loaded, and takes {needed}; {free} are free besides.")
        elif fit.fits:
            text = self.tr("It fits: {needed} of {free} free memory.")
        else:
            text = self.tr(
                "It does not fit: {needed} are needed, {free} are free. Close other programs, choose a shorter context "
                "in the settings, or a smaller kind of this model."
            )
        self.fit.setText(text.format(needed=needed, free=free))
        self.meter.set_fraction(plan.total_bytes / max(1, fit.available_bytes))
        self.memory_facts.set_facts(
            [
                (self.tr("Always in memory"), fmt.size(plan.weights_bytes)),
                (self.tr("Experts"), fmt.size(plan.expert_bytes) if plan.expert_bytes else None),
                (self.tr("Conversations (KV cache)"), fmt.size(plan.kv_bytes)),
                (self.tr("Working memory"), fmt.size(plan.buffer_bytes)),
            ]
        )

    def _show_sums(self) -> None:
        found, job = self._inspector, self._inspector.job
        self.bar.setVisible(job is not None)
        if job is not None:
            self.bar.setValue(round((job.fraction or 0) * _STEPS))
        self.sum_button.setText(self.tr("Cancel") if job is not None else self.tr("Compute SHA-256"))
        self.sum_button.setVisible(job is not None or found.sums is None)
        sums = found.sums or []
        self.sums.setText(" ".join(item.sha256 for item in sums))
        self.sums.setCursorPosition(0)
        self.sums.setVisible(bool(sums))
        if found.sum_problem:
            self.sum_notice.say("danger", found.sum_problem)
        elif any(item.is_wrong for item in sums):
            self.sum_notice.say(
                "danger",
                self.tr("The file is not what its source promises: it was damaged or changed. Fetch it again."),
            )
        elif sums and all(item.expected is not None for item in sums):
            self.sum_notice.say("ok", self.tr("As its source promises."))
        else:
            self.sum_notice.say("info", "")

    def _on_sum_button(self) -> None:
        if self._inspector.job is not None:
            self._inspector.cancel_checksum()
        else:
            self._inspector.compute_checksum()
