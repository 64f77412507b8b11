"""The page that turns a published checkpoint into a model file: choose, plan, convert, verify, chat."""

from __future__ import annotations

import asyncio
from pathlib import Path

from PySide6.QtCore import Qt, Signal
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
        self.choose_view = ChooseView(self)
        self.examine_view = ExamineView(self)
        self.plan_view = PlanView(task, self)
        self.run_view = RunView(self)
        self.end_view = EndView(task, self)
        self._views: dict[Stage, QWidget] = {
            Stage.CHOOSE: self.choose_view,
            Stage.EXAMINE: self.examine_view,
            Stage.PLAN: self.plan_view,
            Stage.RUN: self.run_view,
            Stage.DONE: self.end_view,
            Stage.FAILED: self.end_view,
            Stage.CANCELLED: self.end_view,
        }
        self._scroll = ColumnPage(_COLUMN_WIDTH, self)
        self._scroll.column.addWidget(self.stepper)
        for view in dict.fromkeys(self._views.values()):
            self._scroll.column.addWidget(view)
        self._scroll.column.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(PageHeader(self.tr("Convert a model"), self))
        layout.addWidget(self._scroll, 1)
        self._foot = self._make_foot()
        layout.addWidget(self._foot)
        self._connect()
        self._refresh()

    def _make_foot(self) -> QWidget:
        """The plan's buttons, always in sight however many kinds of file there are."""
        foot = QWidget(self)
        foot.setObjectName("Foot")
        foot.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        row = QHBoxLayout(foot)
        row.setContentsMargins(24, 10, 24, 10)
        row.addWidget(self.plan_view.back)
        row.addStretch(1)
        row.addWidget(self.plan_view.start)
        return foot

    def _connect(self) -> None:
        task = self.task
        self.choose_view.chosen.connect(task.choose)
        self.choose_view.folder_requested.connect(self.ask_folder)
        self.choose_view.file_requested.connect(self.ask_file)
        self.choose_view.unfinished.resumed.connect(task.start)
        self.choose_view.unfinished.discarded.connect(self._discard)
        self.plan_view.started.connect(task.start)
        self.plan_view.back_requested.connect(task.back)
        self.plan_view.target_requested.connect(self.ask_target)
        self.run_view.cancelled.connect(task.cancel)
        self.end_view.chat_requested.connect(self.chat_requested)
        self.end_view.reveal_requested.connect(self.reveal_requested)
        self.end_view.retried.connect(task.retry)
        self.end_view.plan_requested.connect(task.back_to_plan)
        self.end_view.another_requested.connect(task.back)
        task.changed.connect(self._refresh)
        task.progressed.connect(self._on_progress)

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
        shown = self._views[stage]
        for view in self._views.values():
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
