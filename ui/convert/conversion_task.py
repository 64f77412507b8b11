"""One conversion's way through its stages: choose, examine, plan, run, end. Holds the state that the page shows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import asdict
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from app import unfinished
from app.jobs import Job, JobCancelledError
from app.model_places import checkpoint_name
from app.unfinished import ConversionRequest
from engine.errors import ColibriError

if TYPE_CHECKING:
    from app.conversion import Converted
    from app.conversion_plan import Examination, Outlook
    from app.file_types import FileType
    from engine import EngineConfig

log = logging.getLogger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


class Stage(StrEnum):
    CHOOSE = "choose"
    EXAMINE = "examine"
    PLAN = "plan"
    RUN = "run"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ConversionTask(QObject):
    """Goes on when its page is not shown. Its slow parts run in other threads, and import what they need there."""

    changed = Signal()
    progressed = Signal()
    made = Signal(object)  # Path: a file was written

    def __init__(self, config: Callable[[], EngineConfig]) -> None:
        """`config`: what models are opened with; it is called in another thread."""
        super().__init__()
        self._config = config
        self._task: asyncio.Task[None] | None = None
        self.stage = Stage.CHOOSE
        self.source: Path | None = None
        self.kinds: tuple[FileType, ...] = ()
        self.examination: Examination | None = None
        self.outlooks: dict[str, Outlook] = {}
        self.request: ConversionRequest | None = None
        self.job: Job | None = None
        self.result: Converted | None = None
        self.error = ""
        self.failed_in_plan = False  # the checkpoint was refused, not the conversion interrupted

    @property
    def name(self) -> str:
        """What is converted, for people."""
        return checkpoint_name(self.source.absolute()) if self.source is not None else ""

    @property
    def is_running(self) -> bool:
        return self.stage is Stage.RUN

    # What the page asks for.

    def choose(self, source: Path) -> None:
        """Look at a checkpoint; ignored while a conversion runs."""
        if self.is_running:
            return
        self._forget()
        self.source = source
        self._begin(Stage.EXAMINE, partial(self._examine, source))

    def back(self) -> None:
        """To the choice of a checkpoint."""
        if not self.is_running:
            self._stop()
            self._forget()
            self._set(Stage.CHOOSE)

    def back_to_plan(self) -> None:
        """To the plan, as it was."""
        if self.examination is not None and not self.is_running:
            self._set(Stage.PLAN)

    def start(self, request: ConversionRequest) -> None:
        """Convert."""
        if self.is_running:
            return
        self.source = Path(request.source)
        self.request = request
        self.error, self.result = "", None
        self.job = Job(self.tr("Converting {name}").format(name=self.name))
        self.job.on_change(lambda _job: self.progressed.emit())
        try:
            unfinished.remember(request)
        except OSError as error:  # then it can be done, but not be taken up again
            log.warning("the conversion could not be written down: %s", error)
        self._begin(Stage.RUN, partial(self._run, request, self.job))

    def retry(self) -> None:
        """Do again what failed or was cancelled."""
        if self.request is not None:
            self.start(self.request)
        elif self.source is not None:
            self.choose(self.source)

    def cancel(self) -> None:
        """End the conversion; nothing of it stays."""
        if self.job is not None:
            self.job.cancel()
            self.progressed.emit()

    def leave(self) -> None:
        """The program ends: a conversion is left as it is, to go on at the next start; anything else is given up."""
        if not self.is_running:
            self._stop()

    # In the background.

    async def _examine(self, source: Path) -> None:
        loop = asyncio.get_running_loop()
        self.kinds, self.examination = await loop.run_in_executor(None, _examined, source)
        self._set(Stage.PLAN)
        for kind in self.kinds:
            self.outlooks[kind.key] = await loop.run_in_executor(None, _outlook, source, kind, self._config)
            self.changed.emit()

    async def _run(self, request: ConversionRequest, job: Job) -> None:
        try:
            self.result = await job.run(lambda job: _converted(job, request))
        finally:
            unfinished.forget()
        self._set(Stage.DONE)
        if self.result.path is not None:
            self.made.emit(self.result.path)

    def _begin(self, stage: Stage, work: Work) -> None:
        self._stop()
        self._set(stage)
        self._task = asyncio.get_running_loop().create_task(self._guard(work))

    async def _guard(self, work: Work) -> None:
        failed_in_plan = self.stage is Stage.EXAMINE
        try:
            await work()
        except JobCancelledError:
            self._set(Stage.CANCELLED)
        except ColibriError as error:
            self._fail(str(error), failed_in_plan)
        except OSError as error:
            self._fail(f"{error.filename or self.source}: {error.strerror or error}", failed_in_plan)
        except Exception as error:
            log.exception("conversion of %s", self.source)
            text = self.tr("This is a fault of Colibri; the log has more: {error}").format(error=error)
            self._fail(text, failed_in_plan)

    def _fail(self, error: str, failed_in_plan: bool) -> None:
        log.warning("conversion of %s: %s", self.source, error)
        self.error, self.failed_in_plan = error, failed_in_plan
        self._set(Stage.FAILED)

    def _stop(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
        self._task = None

    def _forget(self) -> None:
        self.source = self.examination = self.request = self.job = self.result = None
        self.outlooks, self.error = {}, ""

    def _set(self, stage: Stage) -> None:
        self.stage = stage
        self.changed.emit()


# In other threads. The imports bring NumPy and the engine.


def _examined(source: Path) -> tuple[tuple[FileType, ...], Examination]:
    from app.conversion_plan import examine  # noqa: PLC0415
    from app.file_types import FILE_TYPES  # noqa: PLC0415

    return FILE_TYPES, examine(source)


def _outlook(source: Path, kind: FileType, config: Callable[[], EngineConfig]) -> Outlook:
    from app.conversion_plan import outlook  # noqa: PLC0415

    return outlook(source, kind, config())


def _converted(job: Job, request: ConversionRequest) -> Converted:
    from app.conversion import convert  # noqa: PLC0415
    from app.file_types import ROUTER_TYPES, file_type  # noqa: PLC0415

    log.info("converting %s", asdict(request))
    options = file_type(request.type_key).options(
        router_type=ROUTER_TYPES[request.router], top_k=request.top_k, name=request.name
    )
    result = convert(job, Path(request.source), Path(request.target), options, verified=True)
    for path in unfinished.left_overs(Path(request.target)):  # of a run that was killed
        path.unlink(missing_ok=True)
    return result
