"""Makes a model file of a checkpoint, or of a file of another type: choose, plan, convert, verify, chat."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from app import unfinished
from app.model_places import checkpoints_of_other_programs
from app.unfinished import ConversionRequest
from ui import format as fmt
from ui.convert.choose_view import ChooseView
from ui.convert.conversion_task import ConversionTask
from ui.convert.plan_view import PlanView
from ui.models.proof_facts import proof_facts, proof_sentence
from ui.widgets.file_dialogs import ask_file, ask_folder, ask_new_file
from ui.wizard.end_view import EndView
from ui.wizard.long_task import ENDS, Stage
from ui.wizard.run_view import Phase, RunView
from ui.wizard.shell import ExamineView, WizardShell

if TYPE_CHECKING:
    from app.conversion import Converted

_CHOOSE, _PLAN, _CONVERT, _VERIFY, _CHAT = range(5)


class ConvertPage(WizardShell):
    """Shows the stage of its task; the task goes on when another page is shown."""

    chat_requested = Signal(object)  # Path
    reveal_requested = Signal(object)  # Path
    carve_requested = Signal()

    def __init__(self, task: ConversionTask, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.stepper.set_steps(
            [self.tr("Choose"), self.tr("Plan"), self.tr("Convert"), self.tr("Verify"), self.tr("Chat")]
        )
        self.task = task
        self._finding: asyncio.Task[None] | None = None
        self._shown_stage: Stage | None = None
        task.changed.connect(self._refresh)
        task.outlooks_changed.connect(self._on_outlooks)
        task.progressed.connect(self._on_progress)
        self._refresh()

    @cached_property
    def choose_view(self) -> ChooseView:
        view = ChooseView(self)
        view.chosen.connect(self.task.choose)
        view.folder_requested.connect(self.ask_folder)
        view.file_requested.connect(self.ask_file)
        view.carve_requested.connect(self.carve_requested)
        view.unfinished.resumed.connect(self.task.start)
        view.unfinished.discarded.connect(self._discard)
        return self.added(view)

    @cached_property
    def examine_view(self) -> ExamineView:
        return self.added(ExamineView(self))

    @cached_property
    def plan_view(self) -> PlanView:
        view = PlanView(self.task, self)
        view.started.connect(self.task.start)
        view.back_requested.connect(self.task.back)
        view.target.requested.connect(self.ask_target)
        view.calibration.text_requested.connect(self.ask_text)
        return self.added(view, view.back, view.start)

    @cached_property
    def run_view(self) -> RunView:
        phases = [
            Phase(self.tr("Check the model"), ("checking the checkpoint",)),
            Phase(self.tr("Calibrate"), ("calibrating",)),
            Phase(self.tr("Write the file"), ("preparing the engine", "writing")),
            Phase(self.tr("Read it back"), ("verifying",)),
            Phase(self.tr("Compare it with the source"), ("comparing with the source", "writing the figures")),
        ]
        note = self.tr(
            "You can go on chatting meanwhile. If Colibri is closed, the conversion goes on at the next start where it "
            "was; nothing stays of one that is cancelled."
        )
        view = RunView(phases, note, self)
        view.cancelled.connect(self.task.cancel)
        return self.added(view)

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
            return self.choose_view
        if stage is Stage.EXAMINE:
            QTimer.singleShot(0, self, lambda: self.plan_view)  # while the checkpoint is being read
            return self.examine_view
        if stage is Stage.PLAN:
            return self.plan_view
        return self.run_view if stage is Stage.RUN else self.end_view

    def look_around(self) -> None:
        """Look for checkpoints on this machine, and for a conversion that was interrupted."""
        self._finding = asyncio.get_running_loop().create_task(self._find())

    async def _find(self) -> None:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(None, lambda: list(checkpoints_of_other_programs()))
        interrupted = None if self.task.is_running else await loop.run_in_executor(None, unfinished.unfinished)
        self.choose_view.set_found(found)
        self.choose_view.show_unfinished(interrupted)

    def _discard(self, request: ConversionRequest) -> None:
        unfinished.discard(request)
        self.choose_view.show_unfinished(None)

    def ask_folder(self) -> None:
        """Ask for a checkpoint's folder."""
        ask_folder(self, self.tr("Choose a model's folder"), lambda name: self.task.choose(Path(name)))

    def ask_file(self) -> None:
        """Ask for a checkpoint of one file, or a model file."""
        filters = [self.tr("Models (*.safetensors *.gguf)"), self.tr("All files (*)")]
        ask_file(self, self.tr("Choose a model's file"), filters, lambda name: self.task.choose(Path(name)))

    def ask_text(self) -> None:
        """Ask for a text for calibration."""
        filters = [self.tr("Texts (*.txt *.md)"), self.tr("All files (*)")]
        ask_file(self, self.tr("Choose a text for calibration"), filters, self.plan_view.calibration.set_text)

    def ask_target(self, present: str) -> None:
        """Ask where the file shall go."""
        filters, chosen = [self.tr("Models (*.gguf)")], self.plan_view.target.choose
        ask_new_file(self, self.tr("Save the model as"), present, "gguf", lambda name: chosen(Path(name)), filters)

    def _on_outlooks(self) -> None:
        if self.task.stage is Stage.PLAN:
            self.plan_view.refresh()

    def _on_progress(self) -> None:
        self.run_view.progress()
        if self.task.is_running:
            self.stepper.set_step(_VERIFY if self.run_view.phase > _CONVERT else _CONVERT)

    def _refresh(self) -> None:
        task, stage = self.task, self.task.stage
        is_new, self._shown_stage = stage is not self._shown_stage, stage
        if stage is Stage.EXAMINE:
            self.examine_view.text.setText(self.tr("Reading {name}…").format(name=task.name))
        elif stage is Stage.PLAN:
            self.plan_view.refresh()
        elif stage is Stage.RUN and task.job is not None and task.request is not None:
            title = self.tr("Converting {name}").format(name=task.name)
            self.run_view.show_job(title, task.request.target, task.job)
        elif stage in ENDS:
            self._show_end()
        self.show_view(self._view(stage), is_new=is_new)
        self._show_step()
        if is_new:
            self._focus(stage)

    def _show_end(self) -> None:
        task, view = self.task, self.end_view
        where, left = str(task.source or ""), self.tr("Nothing was left behind.")
        can_plan = task.examination is not None
        if task.stage is Stage.DONE and task.result is not None:
            converted, problem = task.result.converted, task.result.proof_problem
            proof = converted.proof
            warning = self.tr("It could not be compared with its source: {reason}").format(reason=problem)
            view.show_done(
                self.tr("The model is ready"),
                task.result.path,
                proof_sentence(proof) if proof is not None else self._verified(converted),
                [*proof_facts(proof), (self.tr("Read back"), self._verified_share(converted))],
                warning=warning if problem else "",
                another=self.tr("Convert another"),
            )
        elif task.failure is not None:
            view.show_failure(task.failure, where, "" if task.failed_in_plan else left, can_plan=can_plan)
        else:
            view.show_cancelled(where, left, can_plan=can_plan)

    def _verified(self, result: Converted) -> str:
        verification = result.verification
        if verification is None:
            return ""
        if verification.is_whole:
            text = self.tr("All {n} tensors, {size}, were read back and equal the source to the last bit.")
        else:
            text = self.tr("All {n} tensors were read back; {size} of their values were compared with the source.")
        size = fmt.size(verification.compared_bytes)
        return text.format(n=fmt.count(verification.n_tensors), size=size)

    def _verified_share(self, result: Converted) -> str | None:
        verification = result.verification
        if verification is None or result.proof is None:
            return None
        if verification.is_whole:
            return self.tr("{n} tensors, equal to the last bit").format(n=fmt.count(verification.n_tensors))
        return self.tr("{n} tensors, as planned").format(n=fmt.count(verification.n_tensors))

    def _show_step(self) -> None:
        stage = self.task.stage
        if stage is Stage.RUN:
            self._on_progress()
            return
        is_early = self.task.failed_in_plan
        steps = {Stage.CHOOSE: _CHOOSE, Stage.EXAMINE: _PLAN, Stage.PLAN: _PLAN, Stage.DONE: _CHAT}
        step = steps.get(stage, _PLAN if stage is Stage.FAILED and is_early else _CONVERT)
        self.stepper.set_step(step, failed=stage is Stage.FAILED)

    def _focus(self, stage: Stage) -> None:
        if not self.isVisible():
            return
        if stage is Stage.CHOOSE:
            self.choose_view.drop_zone.folder_button.setFocus(Qt.FocusReason.OtherFocusReason)
        elif stage is Stage.PLAN:
            self.plan_view.focus()
        elif stage in ENDS:
            self.end_view.focus()

    def showEvent(self, event: object) -> None:
        super().showEvent(event)  # type: ignore[arg-type]
        self._focus(self.task.stage)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.task.stage not in {Stage.CHOOSE, Stage.RUN}:
            self.task.back()
        else:
            super().keyPressEvent(event)
