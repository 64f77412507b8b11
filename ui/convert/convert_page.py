"""Makes a model file of a checkpoint, or of a file of another type: choose, plan, convert, verify, chat."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app import unfinished
from app.model_places import checkpoints_of_other_programs
from app.unfinished import ConversionRequest
from ui import format as fmt
from ui.convert.choose_view import ChooseView
from ui.convert.conversion_task import ConversionTask
from ui.convert.plan_view import PlanView
from ui.models.proof_facts import proof_facts, proof_sentence
from ui.widgets.file_dialogs import ask_file, ask_folder
from ui.wizard.long_task import Stage
from ui.wizard.run_view import Phase
from ui.wizard.shell import StageView
from ui.wizard.wizard_page import DECIDE, RUN, WizardPage

if TYPE_CHECKING:
    from app.conversion import Converted

_VERIFY = DECIDE  # here is nothing to decide, but the file is read back


class ConvertPage(WizardPage):
    """Conversion's own views, and what it says of its result."""

    carve_requested = Signal()
    task: ConversionTask

    def __init__(self, task: ConversionTask, parent: QWidget | None = None) -> None:
        super().__init__(task, unfinished, parent)
        self.stepper.set_steps(
            [self.tr("Choose"), self.tr("Plan"), self.tr("Convert"), self.tr("Verify"), self.tr("Chat")]
        )
        task.outlooks_changed.connect(self._on_outlooks)
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
    def plan_view(self) -> PlanView:
        view = PlanView(self.task, self)
        view.started.connect(self.task.start)
        view.back_requested.connect(self.task.back)
        view.target.requested.connect(self.ask_target)
        view.calibration.text_requested.connect(self.ask_text)
        return self.added(view, view.back, view.start)

    def _own_view(self, stage: Stage) -> StageView:
        return self.choose_view if stage is Stage.CHOOSE else self.plan_view

    def _phases(self) -> list[Phase]:
        return [
            Phase(self.tr("Check the model"), ("checking the checkpoint",)),
            Phase(self.tr("Calibrate"), ("calibrating",)),
            Phase(self.tr("Write the file"), ("preparing the engine", "writing")),
            Phase(self.tr("Read it back"), ("verifying",)),
            Phase(self.tr("Compare it with the source"), ("comparing with the source", "writing the figures")),
        ]

    def _running_title(self) -> str:
        return self.tr("Converting {name}").format(name=self.task.name)

    def _running_note(self) -> str:
        return self.tr(
            "You can go on chatting meanwhile. If Colibri is closed, the conversion goes on at the next start where it "
            "was; nothing stays of one that is cancelled."
        )

    def _running_step(self) -> int:
        return _VERIFY if self.run_view.phase > RUN else RUN

    async def _find(self) -> None:
        folders = await asyncio.get_running_loop().run_in_executor(None, lambda: list(checkpoints_of_other_programs()))
        self.choose_view.set_found(folders)
        await super()._find()

    def _show_unfinished(self, request: ConversionRequest | None) -> None:
        self.choose_view.show_unfinished(request)

    def ask_folder(self) -> None:
        """Ask for a checkpoint's folder."""
        ask_folder(self, self.tr("Choose a model's folder"), lambda name: self.task.choose(Path(name)))

    def ask_file(self) -> None:
        """Ask for a checkpoint of one file, or a model file."""
        filters = [self.tr("Models (*.safetensors *.gguf)"), self.tr("All files (*)")]
        ask_file(self, self.tr("Choose a model's file"), filters, lambda name: self.task.choose(Path(name)))

    def ask_text(self) -> None:
        """Ask for a text for calibration."""
        self._ask_text(self.tr("Choose a text for calibration"), self.plan_view.calibration.set_text)

    def ask_target(self, present: str) -> None:
        """Ask where the file shall go."""
        self._ask_target(self.plan_view.target, present)

    def _on_outlooks(self) -> None:
        if self.task.stage is Stage.PLAN:
            self.plan_view.refresh()

    def _show_done(self) -> None:
        result = self.task.result
        assert result is not None
        converted, problem = result.converted, result.proof_problem
        proof = converted.proof
        warning = self.tr("It could not be compared with its source: {reason}").format(reason=problem)
        self.end_view.show_done(
            self.tr("The model is ready"),
            result.path,
            proof_sentence(proof) if proof is not None else self._verified(converted),
            [*proof_facts(proof), (self.tr("Read back"), self._verified_share(converted))],
            warning=warning if problem else "",
            another=self.tr("Convert another"),
        )

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
