"""The page that turns a published checkpoint into a model file: choose, plan, convert, verify, chat."""

from __future__ import annotations

import asyncio
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from app import unfinished
from app.model_places import checkpoints_of_other_programs
from app.unfinished import ConversionRequest
from ui.convert.choose_view import ChooseView
from ui.convert.conversion_task import ConversionTask, Stage
from ui.convert.end_view import EndView
from ui.convert.plan_view import PlanView
from ui.convert.run_view import VERIFY, RunView
from ui.convert.stepper import Stepper
from ui.widgets.column_page import ColumnPage
from ui.widgets.page_header import PageHeader

View = TypeVar("View", bound=QWidget)

_COLUMN_WIDTH = 700
_CHOOSE, _PLAN, _CONVERT, _VERIFY, _CHAT = range(5)


class ExamineView(QWidget):
    """A checkpoint is being read."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.text = QLabel(self)
        self.text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.text.setProperty("tone", "muted")
        self.text.setWordWrap(True)
        bar = QProgressBar(self)
        bar.setTextVisible(False)
        bar.setRange(0, 0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 60, 0, 0)
        column.setSpacing(12)
        column.addWidget(self.text)
        column.addWidget(bar)


class ConvertPage(QWidget):
    """Shows the stage of its task; the task goes on when another page is shown."""

    chat_requested = Signal(object)  # Path
    reveal_requested = Signal(object)  # Path

    def __init__(self, task: ConversionTask, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("Page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.task = task
        self._finding: asyncio.Task[None] | None = None
        self._shown_stage: Stage | None = None
        self.stepper = Stepper(
            [self.tr("Choose"), self.tr("Plan"), self.tr("Convert"), self.tr("Verify"), self.tr("Chat")], self
        )
        self._scroll = ColumnPage(_COLUMN_WIDTH, self)
        self._scroll.column.addWidget(self.stepper)
        self._scroll.column.addStretch(1)
        self._foot = QWidget(self)
        self._foot.setObjectName("Foot")
        self._foot.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._foot_row = QHBoxLayout(self._foot)
        self._foot_row.setContentsMargins(24, 10, 24, 10)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(PageHeader(self.tr("Convert a model"), self))
        layout.addWidget(self._scroll, 1)
        layout.addWidget(self._foot)
        self.views: list[QWidget] = []
        task.changed.connect(self._refresh)
        task.progressed.connect(self._on_progress)
        self._refresh()

    # The views are made when they are first needed, so that no click waits for all of them.

    @cached_property
    def choose_view(self) -> ChooseView:
        view = ChooseView(self)
        view.chosen.connect(self.task.choose)
        view.folder_requested.connect(self.ask_folder)
        view.file_requested.connect(self.ask_file)
        view.unfinished.resumed.connect(self.task.start)
        view.unfinished.discarded.connect(self._discard)
        return self._added(view)

    @cached_property
    def examine_view(self) -> ExamineView:
        return self._added(ExamineView(self))

    @cached_property
    def plan_view(self) -> PlanView:
        view = PlanView(self.task, self)
        view.started.connect(self.task.start)
        view.back_requested.connect(self.task.back)
        view.target_requested.connect(self.ask_target)
        self._foot_row.addWidget(view.back)  # always in sight however many kinds of file there are
        self._foot_row.addStretch(1)
        self._foot_row.addWidget(view.start)
        return self._added(view)

    @cached_property
    def run_view(self) -> RunView:
        view = RunView(self)
        view.cancelled.connect(self.task.cancel)
        return self._added(view)

    @cached_property
    def end_view(self) -> EndView:
        view = EndView(self.task, self)
        view.chat_requested.connect(self.chat_requested)
        view.reveal_requested.connect(self.reveal_requested)
        view.retried.connect(self.task.retry)
        view.plan_requested.connect(self.task.back_to_plan)
        view.another_requested.connect(self.task.back)
        return self._added(view)

    def _added(self, view: View) -> View:
        view.hide()
        self.views.append(view)
        self._scroll.column.insertWidget(len(self.views), view)
        return view

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
        self.choose_view.unfinished.show_request(interrupted)

    def _discard(self, request: ConversionRequest) -> None:
        unfinished.discard(request)
        self.choose_view.unfinished.show_request(None)

    def ask_folder(self) -> None:
        """Ask for a checkpoint's folder."""
        dialog = QFileDialog(self, self.tr("Choose a model's folder"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        self._open(dialog)

    def ask_file(self) -> None:
        """Ask for a checkpoint of one file."""
        dialog = QFileDialog(self, self.tr("Choose a model's file"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([self.tr("Safetensors (*.safetensors)"), self.tr("All files (*)")])
        self._open(dialog)

    def _open(self, dialog: QFileDialog) -> None:
        dialog.fileSelected.connect(lambda name: self.task.choose(Path(name)))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def ask_target(self, present: str) -> None:
        """Ask where the file shall go."""
        dialog = QFileDialog(self, self.tr("Save the model as"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("gguf")
        dialog.setNameFilters([self.tr("Models (*.gguf)")])
        dialog.selectFile(present)
        dialog.fileSelected.connect(lambda name: self.plan_view.set_target(Path(name)))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _on_progress(self) -> None:
        self.run_view.progress()
        if self.task.is_running:
            self.stepper.set_step(_VERIFY if self.run_view.phase == VERIFY else _CONVERT)

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
        elif stage in {Stage.DONE, Stage.FAILED, Stage.CANCELLED}:
            self.end_view.refresh()
        shown = self._view(stage)
        for view in self.views:
            view.setVisible(view is shown)
        self._foot.setVisible(stage is Stage.PLAN)
        self._show_step()
        if is_new:
            self._scroll.verticalScrollBar().setValue(0)
            self._focus(stage)

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
        elif stage in {Stage.DONE, Stage.FAILED, Stage.CANCELLED}:
            self.end_view.focus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.task.stage not in {Stage.CHOOSE, Stage.RUN}:
            self.task.back()
        else:
            super().keyPressEvent(event)
