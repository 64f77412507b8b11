"""Makes a model with experts of a dense one: choose, plan, measure, decide, chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from app import carving_request
from app.carving_request import CarvingRequest
from app.library import ModelEntry
from ui import format as fmt
from ui.carve.carving_task import CarvingTask
from ui.carve.cut_view import CutView
from ui.carve.decide_view import DecideView
from ui.carve.dense_view import DenseView
from ui.widgets.file_dialogs import ask_file, ask_new_file
from ui.wizard.end_view import EndView
from ui.wizard.long_task import ENDS, Stage
from ui.wizard.run_view import Phase, RunView
from ui.wizard.shell import ExamineView, WizardShell

_CHOOSE, _PLAN, _MEASURE, _DECIDE, _CHAT = range(5)


class CarvePage(WizardShell):
    """Shows the stage of its task; the task goes on when another page is shown."""

    chat_requested = Signal(object)  # Path
    reveal_requested = Signal(object)  # Path

    def __init__(
        self, task: CarvingTask, entries: Callable[[], Sequence[ModelEntry]], parent: QWidget | None = None
    ) -> None:
        """`entries`: the models of this machine, as far as they are known."""
        super().__init__(parent)
        self.stepper.set_steps(
            [self.tr("Choose"), self.tr("Plan"), self.tr("Measure"), self.tr("Decide"), self.tr("Chat")]
        )
        self.task = task
        self._entries = entries
        self._looking: asyncio.Task[None] | None = None
        self._finding: asyncio.Task[None] | None = None
        self._shown_stage: Stage | None = None
        task.changed.connect(self._refresh)
        task.progressed.connect(self._on_progress)
        self._refresh()

    @cached_property
    def dense_view(self) -> DenseView:
        view = DenseView(self)
        view.chosen.connect(self.task.choose)
        view.file_requested.connect(self.ask_file)
        view.unfinished.resumed.connect(self.task.start)
        view.unfinished.discarded.connect(self._discard)
        return self.added(view)

    @cached_property
    def examine_view(self) -> ExamineView:
        return self.added(ExamineView(self))

    @cached_property
    def cut_view(self) -> CutView:
        view = CutView(self.task, self)
        view.started.connect(self.task.start)
        view.back_requested.connect(self.task.back)
        view.text_requested.connect(self.ask_text)
        view.target.requested.connect(self.ask_target)
        return self.added(view, view.back, view.start)

    @cached_property
    def run_view(self) -> RunView:
        phases = [
            Phase(self.tr("Read the text, and watch every neuron"), ("reading the text",)),
            Phase(self.tr("Cut the networks, and fit the routers"), ("splitting the layers",)),
            Phase(self.tr("Measure what each number of experts costs"), ("measuring the loss",)),
            Phase(self.tr("Write the file"), ("writing",)),
        ]
        note = self.tr(
            "You can go on chatting meanwhile. If Colibri is closed, it goes on at the next start where it was; "
            "nothing stays of a carving that is cancelled."
        )
        view = RunView(phases, note, self)
        view.cancelled.connect(self.task.cancel)
        return self.added(view)

    @cached_property
    def decide_view(self) -> DecideView:
        view = DecideView(self.task, self)
        view.decided.connect(self.task.decide)
        view.discarded.connect(self.task.back)
        return self.added(view, view.discard, view.keep)

    @cached_property
    def end_view(self) -> EndView:
        view = EndView(self)
        view.chat_requested.connect(self.chat_requested)
        view.reveal_requested.connect(self.reveal_requested)
        view.retried.connect(self.task.retry)
        view.plan_requested.connect(self.task.back_to_plan)
        view.another_requested.connect(self.task.back)
        return self.added(view)

    def _view(self, stage: Stage) -> QWidget:
        if stage is Stage.CHOOSE:
            return self.dense_view
        if stage is Stage.EXAMINE:
            QTimer.singleShot(0, self, lambda: self.cut_view)  # while the model is being read
            return self.examine_view
        views: dict[Stage, Callable[[], QWidget]] = {
            Stage.PLAN: lambda: self.cut_view,
            Stage.RUN: lambda: self.run_view,
            Stage.DECIDE: lambda: self.decide_view,
        }
        return views.get(stage, lambda: self.end_view)()

    def look_around(self) -> None:
        """Look which models can be carved, and for a carving that was interrupted."""
        self._looking = self.task.look_for(self._entries())
        self._finding = asyncio.get_running_loop().create_task(self._find())

    async def _find(self) -> None:
        loop = asyncio.get_running_loop()
        found = None if self.task.is_busy else await loop.run_in_executor(None, carving_request.unfinished)
        self.dense_view.show_unfinished(found)

    def _discard(self, request: CarvingRequest) -> None:
        asyncio.get_running_loop().run_in_executor(None, carving_request.discard, request)
        self.dense_view.show_unfinished(None)

    def ask_file(self) -> None:
        """Ask for a dense model."""
        filters = [self.tr("Models (*.gguf)"), self.tr("All files (*)")]
        ask_file(self, self.tr("Choose a dense model"), filters, lambda name: self.task.choose(Path(name)))

    def ask_text(self) -> None:
        """Ask for a text to watch the model on."""
        filters = [self.tr("Texts (*.txt *.md)"), self.tr("All files (*)")]
        ask_file(self, self.tr("Choose a text"), filters, self.cut_view.set_text)

    def ask_target(self, present: str) -> None:
        """Ask where the file shall go."""
        filters, chosen = [self.tr("Models (*.gguf)")], self.cut_view.target.choose
        ask_new_file(self, self.tr("Save the model as"), present, "gguf", lambda name: chosen(Path(name)), filters)

    def _on_progress(self) -> None:
        if self.task.is_running:
            self.run_view.progress()

    def _refresh(self) -> None:
        task, stage = self.task, self.task.stage
        is_new, self._shown_stage = stage is not self._shown_stage, stage
        if stage is Stage.CHOOSE:
            self.dense_view.show_candidates(task.candidates)
        elif stage is Stage.EXAMINE:
            self.examine_view.text.setText(self.tr("Reading {name}…").format(name=task.name))
        elif stage is Stage.PLAN:
            self.cut_view.show_model()
        elif stage is Stage.RUN and task.job is not None and task.request is not None:
            title = self.tr("Carving {name}").format(name=task.name)
            self.run_view.show_job(title, task.request.target, task.job)
        elif stage is Stage.DECIDE:
            self.decide_view.refresh()
        elif stage in ENDS:
            self._show_end()
        self.show_view(self._view(stage), is_new=is_new)
        self._show_step()
        if is_new or (stage is Stage.CHOOSE and self.isVisible()):
            self._focus(stage)

    def _show_end(self) -> None:
        task, view = self.task, self.end_view
        where, left = str(task.source or ""), self.tr("Nothing was left behind.")
        can_plan = task.model is not None
        if task.stage is Stage.DONE and task.result is not None and task.trial is not None:
            self._show_done(task.result, task.top_k or 0)
        elif task.failure is not None:
            view.show_failure(task.failure, where, "" if task.failed_in_plan else left, can_plan=can_plan)
        else:
            view.show_cancelled(where, left, can_plan=can_plan)

    def _show_done(self, path: Path, top_k: int) -> None:
        trial = self.task.trial
        assert trial is not None
        loss = next(loss for loss in trial.losses if loss.top_k == top_k)
        n_routed = trial.request.n_routed
        text = self.tr("Chat with it, and watch in the panel “Experts” which of them it calls.")
        if top_k == n_routed:
            text = self.tr(
                "With all experts on it computes what the dense model does. To see its router choose, set fewer "
                "experts in the list of models."
            )
        warning = self.tr("This is a demonstration of routing: its answers are clearly worse than the dense model's.")
        self.end_view.show_done(
            self.tr("The model is ready"),
            path,
            text,
            [
                (
                    self.tr("Experts"),
                    self.tr("{n}, {k} for each token").format(n=fmt.count(n_routed), k=fmt.count(top_k)),
                ),
                (self.tr("Shared besides"), fmt.count(trial.request.n_shared)),
                (
                    self.tr("Perplexity"),
                    self.tr("{own}; the dense model has {source}").format(
                        own=fmt.decimal(loss.perplexity, 2), source=fmt.decimal(loss.source_perplexity, 2)
                    ),
                ),
                (self.tr("Divergence"), self.tr("{n} nats").format(n=fmt.significant(loss.divergence))),
            ],
            warning=warning if loss.is_demonstration else "",
            another=self.tr("Carve another"),
        )

    def _show_step(self) -> None:
        stage = self.task.stage
        is_early = self.task.failed_in_plan
        steps = {
            Stage.CHOOSE: _CHOOSE,
            Stage.EXAMINE: _PLAN,
            Stage.PLAN: _PLAN,
            Stage.DECIDE: _DECIDE,
            Stage.DONE: _CHAT,
        }
        step = steps.get(stage, _PLAN if stage is Stage.FAILED and is_early else _MEASURE)
        self.stepper.set_step(step, failed=stage is Stage.FAILED)

    def _focus(self, stage: Stage) -> None:
        if not self.isVisible():
            return
        view: DenseView | CutView | DecideView | EndView
        if stage is Stage.CHOOSE:
            view = self.dense_view
        elif stage is Stage.PLAN:
            view = self.cut_view
        elif stage is Stage.DECIDE:
            view = self.decide_view
        elif stage in ENDS:
            view = self.end_view
        else:
            return
        view.focus()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._focus(self.task.stage)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        leads_back = self.task.stage not in {Stage.CHOOSE, Stage.RUN, Stage.DECIDE}
        if event.key() == Qt.Key.Key_Escape and leads_back:
            self.task.back()
        else:
            super().keyPressEvent(event)
