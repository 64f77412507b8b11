"""A page over long work: it shows the view of the work's stage, tells the step, and moves the focus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QWidget

from ui.widgets.file_dialogs import ask_file, ask_new_file
from ui.wizard.end_view import EndView
from ui.wizard.long_task import ENDS, LongTask, Stage
from ui.wizard.run_view import Phase, RunView
from ui.wizard.shell import ExamineView, StageView, WizardShell
from ui.wizard.target_row import TargetRow

CHOOSE, PLAN, RUN, DECIDE, CHAT = range(5)  # the steps; what comes before the chat may be called something else
_STEPS = {Stage.CHOOSE: CHOOSE, Stage.EXAMINE: PLAN, Stage.PLAN: PLAN, Stage.DECIDE: DECIDE, Stage.DONE: CHAT}


class WizardPage(WizardShell):
    """A kind of work adds its own views: of the choice, of the plan, of a decision. The task goes on elsewhere."""

    chat_requested = Signal(object)  # Path
    reveal_requested = Signal(object)  # Path

    def __init__(self, task: LongTask[Any], interrupted: ModuleType, parent: QWidget | None = None) -> None:
        """`interrupted`: where requests are remembered; it has `unfinished` and `discard`."""
        super().__init__(parent)
        self.task: LongTask[Any] = task
        self._interrupted = interrupted
        self._finding: asyncio.Task[None] | None = None
        self._discarding: asyncio.Future[None] | None = None
        self._shown_stage: Stage | None = None
        task.changed.connect(self._refresh)
        task.progressed.connect(self._on_progress)

    # What a kind of work has of its own.

    def _own_view(self, stage: Stage) -> StageView:
        """Of CHOOSE, PLAN or DECIDE, made when it is first asked for."""
        raise NotImplementedError

    def _show_unfinished(self, request: Any) -> None:
        """Offer to go on with work that was interrupted, or with nothing (None)."""
        raise NotImplementedError

    def _running_title(self) -> str:
        raise NotImplementedError

    def _phases(self) -> list[Phase]:
        raise NotImplementedError

    def _running_note(self) -> str:
        """What becomes of the work when the program is closed."""
        raise NotImplementedError

    def _show_done(self) -> None:
        """Fill the view of the end, for work that succeeded."""
        raise NotImplementedError

    def _running_step(self) -> int:
        return RUN

    # The views that all kinds of work share.

    @cached_property
    def examine_view(self) -> ExamineView:
        return self.added(ExamineView(self))

    @cached_property
    def run_view(self) -> RunView:
        view = RunView(self._phases(), self._running_note(), self)
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

    def _view(self, stage: Stage) -> StageView:
        if stage is Stage.EXAMINE:
            QTimer.singleShot(0, self, lambda: self._own_view(Stage.PLAN))  # while the model is being read
            return self.examine_view
        if stage is Stage.RUN:
            return self.run_view
        return self.end_view if stage in ENDS else self._own_view(stage)

    # Work that was interrupted.

    def look_around(self) -> None:
        """Look again for what is on this machine, and for work that was interrupted."""
        self._finding = asyncio.get_running_loop().create_task(self._find())

    async def _find(self) -> None:
        loop = asyncio.get_running_loop()
        found = None if self.task.is_busy else await loop.run_in_executor(None, self._interrupted.unfinished)
        self._show_unfinished(found)

    def _discard(self, request: Any) -> None:
        loop = asyncio.get_running_loop()
        self._discarding = loop.run_in_executor(None, self._interrupted.discard, request)
        self._show_unfinished(None)

    # Files that are asked for.

    def _ask_text(self, title: str, chosen: Callable[[str], None]) -> None:
        ask_file(self, title, [self.tr("Texts (*.txt *.md)"), self.tr("All files (*)")], chosen)

    def _ask_target(self, row: TargetRow, present: str) -> None:
        filters = [self.tr("Models (*.gguf)")]
        ask_new_file(self, self.tr("Save the model as"), present, "gguf", lambda name: row.choose(Path(name)), filters)

    # The task's stage on the page.

    def _on_progress(self) -> None:
        if self.task.is_running:
            self.run_view.progress()
            self.stepper.set_step(self._running_step())

    def _refresh(self) -> None:
        task, stage = self.task, self.task.stage
        is_new, self._shown_stage = stage is not self._shown_stage, stage
        view = self._view(stage)
        if stage is Stage.EXAMINE:
            self.examine_view.text.setText(self.tr("Reading {name}…").format(name=task.name))
        elif stage is Stage.RUN and task.job is not None and task.request is not None:
            self.run_view.show_job(self._running_title(), task.request.target, task.job)
        elif stage in ENDS:
            self._show_end()
        else:
            view.refresh()
        self.show_view(view, is_new=is_new)
        self._show_step()
        if is_new or stage is Stage.CHOOSE:
            self._focus()

    def _show_end(self) -> None:
        task = self.task
        where, left = str(task.source or ""), self.tr("Nothing was left behind.")
        if task.stage is Stage.DONE:
            self._show_done()
        elif task.failure is not None:
            shown_left = "" if task.failed_in_plan else left
            self.end_view.show_failure(task.failure, where, shown_left, can_plan=task.has_plan)
        else:
            self.end_view.show_cancelled(where, left, can_plan=task.has_plan)

    def _show_step(self) -> None:
        stage = self.task.stage
        if stage is Stage.RUN:
            self._on_progress()
            return
        failed_step = PLAN if self.task.failed_in_plan and stage is Stage.FAILED else RUN
        self.stepper.set_step(_STEPS.get(stage, failed_step), failed=stage is Stage.FAILED)

    def _focus(self) -> None:
        if self.isVisible():
            self._view(self.task.stage).focus()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._focus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.task.stage is not Stage.CHOOSE and not self.task.is_busy:
            self.task.back()
        else:
            super().keyPressEvent(event)
