"""The page of recordings and measurements: take one, look at one, compare two."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QPushButton,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.recording import SUFFIX, Recording
from engine.errors import ColibriError
from ui import format as fmt
from ui.diagnostics.why_view import WhyButton, WhyView
from ui.performance.comparison_table import ComparisonTable
from ui.performance.explanation import Explanation
from ui.performance.recorded_view import RecordedView
from ui.performance.recordings import Recordings, measurements_dir, recordings_dir
from ui.theme import current_theme
from ui.widgets.file_dialogs import ask_file, ask_new_file
from ui.widgets.notice import InlineNotice
from ui.widgets.page_header import PageHeader

if TYPE_CHECKING:
    from app.engine_service import EngineService
    from app.jobs import Job
    from ui.diagnostics.why import WhyQuestion

log = logging.getLogger(__name__)

_SIDE_WIDTH = 190  # a recording's date and time fit
_PATH_ROLE = Qt.ItemDataRole.UserRole
_PROMPT_TOKENS, _ANSWER_TOKENS, _N_REPETITIONS = 256, 64, 3


class PerformancePage(QWidget):
    """Recordings to the left; to the right the one that is chosen, or the comparison of two."""

    notice = Signal(str)

    def __init__(
        self,
        recordings: Recordings,
        service: EngineService,
        parent: QWidget | None = None,
        *,
        question: WhyQuestion | None = None,
    ) -> None:
        """`question`: what the button "Why is it slow?" asks; None: there is no such button."""
        super().__init__(parent)
        self.setObjectName("PerformancePage")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._recordings, self._service = recordings, service
        self._opened: dict[Path, Recording] = {}
        self._job: Job | None = None
        self._task: asyncio.Task[None] | None = None
        header = PageHeader(self.tr("Performance"), self)
        self.record = QPushButton(self)
        self.record.clicked.connect(self._on_record)
        self.measure = QPushButton(self)
        self.measure.clicked.connect(self._on_measure)
        open_ = QPushButton(self.tr("Open…"), self)
        open_.setToolTip(self.tr("Open a recording"))
        open_.clicked.connect(self._on_open)
        self.export = QPushButton(self.tr("Export"), self)
        self.export.setMenu(self._export_menu())
        for button in (self.record, self.measure, open_, self.export):
            header.add(button)
        self.message = QLabel(self)
        self.message.setProperty("tone", "small")
        self.message.setWordWrap(True)
        self.message.hide()
        self.problem = InlineNotice(self, copyable=True)
        self.list = QListWidget(self)
        self.list.setAccessibleName(self.tr("Recordings"))
        self.list.setProperty("kind", "boxed")
        self.list.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)  # long names are shortened
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.itemSelectionChanged.connect(self._on_selection)
        self.measured = QLabel(self)
        self.measured.setProperty("tone", "small")
        self.measured.setWordWrap(True)
        self.measured.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.view, self.table = RecordedView(self), ComparisonTable(self)
        hint = Explanation(self)
        hint.explain(
            self.tr("See where the time goes"),
            self.tr(
                "A recording holds what the engine did at every token. Start one, ask something, and stop it. Choose "
                "one to see it, or two to compare them: before and after a change, for instance."
            ),
        )
        self.stack = QStackedWidget(self)
        for widget in (hint, self.view, self.table):
            self.stack.addWidget(widget)
        self.none_yet = QLabel(self.tr("None yet"), self)
        self.none_yet.setProperty("tone", "small")
        side = QWidget(self)
        side.setFixedWidth(current_theme().px(_SIDE_WIDTH))
        left = QVBoxLayout(side)
        left.setContentsMargins(0, 0, 0, 0)
        left.setSpacing(8)
        left.addWidget(self._heading(self.tr("Recordings")))
        left.addWidget(self.none_yet)
        left.addWidget(self.list, 3)
        left.addSpacing(10)
        left.addWidget(self._heading(self.tr("Measured speeds")))
        left.addWidget(self._measurements(), 2)
        body = QHBoxLayout()
        body.setContentsMargins(16, 8, 16, 16)
        body.setSpacing(16)
        body.addWidget(side)
        body.addWidget(self.stack, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(header)
        row = QHBoxLayout()
        row.setContentsMargins(20, 6, 20, 0)
        row.addWidget(self.message)
        column.addLayout(row)
        box = QHBoxLayout()
        box.setContentsMargins(16, 4, 16, 0)
        box.addWidget(self.problem)
        column.addLayout(box)
        self.why: WhyView | None = None
        if question is not None:
            header.add(WhyButton(question, self))
            self.why = WhyView(question, self)
            self.why.copied.connect(lambda: self.notice.emit(self.tr("The command was copied")))
            question.failed.connect(self._fail)
            around = QHBoxLayout()
            around.setContentsMargins(16, 8, 16, 0)
            around.addWidget(self.why)
            column.addLayout(around)
        column.addLayout(body, 1)
        recordings.changed.connect(self._show_state)
        service.on_change(self._show_state)
        self._list_recordings()
        self._list_measurements()
        self._show_state()
        self._on_selection()

    def _heading(self, text: str) -> QLabel:
        label = QLabel(text, self)
        label.setProperty("tone", "strong")
        return label

    def _measurements(self) -> QWidget:
        """The list of measurements, which scrolls when it is longer than its place."""
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.measured.setAlignment(Qt.AlignmentFlag.AlignTop)
        area.setWidget(self.measured)
        for widget in (area.viewport(), self.measured):
            widget.setAutoFillBackground(False)
        return area

    def _fail(self, text: str) -> None:
        self.problem.say("danger", text)
        self.message.clear()
        self.message.hide()

    def _say(self, text: str) -> None:
        """Something that is no problem; one that was shown is over."""
        self.message.setText(text)
        self.message.setVisible(bool(text))
        self.problem.say("info", "")

    # -- recordings

    def _on_record(self) -> None:
        if not self._recordings.is_recording:
            self._recordings.start()
            return
        try:
            path = self._recordings.stop()
        except (ColibriError, OSError) as error:
            self._fail(str(error))
            return
        self._say("")
        self._list_recordings()
        self._choose(path)

    def _on_open(self) -> None:
        filters = [self.tr("Recordings (*{suffix})").format(suffix=SUFFIX), self.tr("All files (*)")]
        ask_file(self, self.tr("Open a recording"), filters, lambda name: self.open(Path(name)))

    def open(self, path: Path) -> None:
        """Put a file into the list and show it."""
        if self._recording(path) is not None:
            if not any(self.list.item(row).data(_PATH_ROLE) == path for row in range(self.list.count())):
                self._add_item(path)
            self._choose(path)

    def _recording(self, path: Path) -> Recording | None:
        """The file's recording; None when it cannot be read, which is said."""
        if path not in self._opened:
            try:
                self._opened[path] = Recording.load(path)
            except (ColibriError, OSError) as error:
                self._fail(str(error))
                return None
        return self._opened[path]

    def _list_recordings(self) -> None:
        self.list.clear()
        for path in sorted(recordings_dir().glob(f"*{SUFFIX}"), reverse=True):
            self._add_item(path)
        self._show_whether_empty()

    def _show_whether_empty(self) -> None:
        self.none_yet.setVisible(self.list.count() == 0)
        self.list.setVisible(self.list.count() > 0)

    def _add_item(self, path: Path) -> None:
        item = QListWidgetItem(path.name.removesuffix(SUFFIX))
        item.setData(_PATH_ROLE, path)
        item.setToolTip(str(path))
        self.list.addItem(item)
        self._show_whether_empty()

    def _choose(self, path: Path) -> None:
        for row in range(self.list.count()):
            if self.list.item(row).data(_PATH_ROLE) == path:
                self.list.setCurrentRow(row)

    def chosen(self) -> list[Recording]:
        """The recordings that are selected and can be read, oldest first."""
        paths_ = sorted(item.data(_PATH_ROLE) for item in self.list.selectedItems())
        return [recording for path in paths_ if (recording := self._recording(path)) is not None]

    def _on_selection(self) -> None:
        chosen = self.chosen()
        self.export.setEnabled(len(chosen) == 1)
        if len(chosen) == 1:
            recording = chosen[0]
            self.stack.setCurrentWidget(self.view)
            self.view.show_recording(recording)
            self._say(self.tr("{model} · {n} steps").format(model=recording.model, n=fmt.count(len(recording.steps))))
        elif len(chosen) == 2:
            from app.comparison import compare  # noqa: PLC0415  (only here needed)

            first, second = chosen
            self.table.show_comparison(first.label, second.label, compare(first, second))
            self.stack.setCurrentWidget(self.table)
            self._say(
                self.tr(
                    "Medians, with the middle half of all values in brackets; behind a change, within what it truly "
                    "lies with 95 % certainty. Grey may be chance."
                )
            )
        else:
            self.stack.setCurrentIndex(0)

    # -- export

    def _export_menu(self) -> QMenu:
        menu = QMenu(self)
        for text, suffix in (
            (self.tr("Chrome trace (JSON)…"), ".json"),
            (self.tr("Table (CSV)…"), ".csv"),
            (self.tr("Picture (PNG)…"), ".png"),
            (self.tr("Picture (SVG)…"), ".svg"),
        ):
            menu.addAction(text).triggered.connect(lambda _checked=False, suffix=suffix: self._ask_where(suffix))
        return menu

    def _ask_where(self, suffix: str) -> None:
        title, present = self.tr("Export the recording"), self.chosen()[0].label + suffix
        ask_new_file(self, title, present, suffix.removeprefix("."), lambda name: self.export_to(Path(name)))

    def export_to(self, path: Path) -> None:
        """Write the chosen recording in the format that the path's ending names."""
        from app.recording_export import as_chrome_trace, as_csv  # noqa: PLC0415

        (recording,) = self.chosen()
        try:
            if path.suffix in (".png", ".svg"):
                self.view.save_picture(path)
            else:
                text = as_csv(recording) if path.suffix == ".csv" else as_chrome_trace(recording)
                path.write_text(text, encoding="utf-8")
        except OSError as error:
            self._fail(str(error))
        else:
            self._say(self.tr("Written: {path}").format(path=path))

    # -- measuring

    def _on_measure(self) -> None:
        if self._job is not None:
            self._job.cancel()
            return
        self._task = asyncio.ensure_future(self._measure())

    async def _measure(self) -> None:
        from app.benchmark import Kind, SpeedTest  # noqa: PLC0415
        from app.jobs import Job  # noqa: PLC0415
        from app.machine_state import MachineState  # noqa: PLC0415
        from app.measurements import file_measurement  # noqa: PLC0415

        job = self._job = Job(self.tr("Measuring"))
        job.on_change(lambda job: self._show_progress(job.fraction) if job is self._job else None)
        self._show_state()
        tests = [SpeedTest(Kind.PROMPT, _PROMPT_TOKENS), SpeedTest(Kind.GENERATE, _ANSWER_TOKENS)]
        before = MachineState.read()
        try:
            result = await self._service.measure(job, tests, _N_REPETITIONS)
            file_measurement(measurements_dir(), result, before, MachineState.read())
        except (ColibriError, OSError) as error:
            self._fail(str(error))
        else:
            self._say("")
        finally:
            self._job = None
            self._show_state()
            self._list_measurements()

    def _show_progress(self, fraction: float | None) -> None:
        if fraction is not None:
            self._say(self.tr("Measuring: {percent} %").format(percent=round(fraction * 100)))

    def _list_measurements(self) -> None:
        from app.measurements import filed_measurements  # noqa: PLC0415

        lines = []
        for filed in filed_measurements(measurements_dir())[:8]:
            rates = "\n".join(f"{self._test(name)}: {fmt.rate(rate)}" for name, rate in filed.tokens_per_second.items())
            state = [text for text in (filed.before.governor, self._heat(filed.after.temperature_c)) if text]
            lines.append(
                f"{filed.started_at:%Y-%m-%d %H:%M}  {filed.model}\n{rates}" + "".join(f" · {t}" for t in state)
            )
        self.measured.setText("\n\n".join(lines) or self.tr("None yet"))

    def _test(self, name: str) -> str:
        """What was measured, as app.benchmark names it, for people."""
        kind, _, n_tokens = name.partition(" ")
        said = {"prompt": self.tr("prompt of {n} tokens"), "generate": self.tr("answer of {n} tokens")}.get(kind)
        return name if said is None or not n_tokens.isdecimal() else said.format(n=n_tokens)

    @staticmethod
    def _heat(temperature_c: float | None) -> str:
        return "" if temperature_c is None else f"{temperature_c:.0f} °C"

    def _show_state(self) -> None:
        has_model = self._service.telemetry is not None
        is_recording = self._recordings.is_recording
        self.record.setEnabled(has_model or is_recording)
        if is_recording:
            text = self.tr("Stop recording ({n} steps)").format(n=fmt.count(self._recordings.n_steps))
        else:
            text = self.tr("Record")
        self.record.setText(text)
        missing = "" if has_model else self.tr("Load a model first")
        self.record.setToolTip(missing or self.tr("Keeps what the engine does at every token, until you stop it"))
        self.measure.setToolTip(missing or self.tr("Reads a prompt and writes an answer a few times; about a minute"))
        self.measure.setText(self.tr("Stop measuring") if self._job is not None else self.tr("Measure speed"))
        self.measure.setEnabled(has_model)
