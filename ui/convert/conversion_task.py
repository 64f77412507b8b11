"""One conversion's way through its stages: choose, examine, plan, run, end. Holds the state that the page shows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal

from app import unfinished
from app.jobs import Job
from app.model_places import checkpoint_name
from app.unfinished import ConversionRequest
from ui.wizard.long_task import LongTask, Stage

if TYPE_CHECKING:
    from app.conversion_plan import Examination, Outlook
    from app.file_types import FileType
    from app.requested_conversion import Outcome
    from engine import EngineConfig

log = logging.getLogger(__name__)


class ConversionTask(LongTask[ConversionRequest]):
    """A checkpoint, or a GGUF file of another type, becomes a model file."""

    outlooks_changed = Signal()  # more is known of the kinds of file

    def __init__(self, config: Callable[[], EngineConfig]) -> None:
        """`config`: what models are opened with; it is called in another thread."""
        super().__init__()
        self._config = config
        self.kinds: tuple[FileType, ...] = ()
        self.examination: Examination | None = None
        self.outlooks: dict[str, Outlook] = {}
        self.result: Outcome | None = None

    @property
    def name(self) -> str:
        return checkpoint_name(self.source.absolute()) if self.source is not None else ""

    @property
    def has_plan(self) -> bool:
        return self.examination is not None

    # What the page asks for.

    def choose(self, source: Path) -> None:
        if self.is_busy:
            return
        self._forget()
        self.source = source
        self._begin(Stage.EXAMINE, partial(self._examine, source))

    def back(self) -> None:
        if not self.is_running:
            self._stop()
            self._forget()
            self._set(Stage.CHOOSE)

    def start(self, request: ConversionRequest) -> None:
        if self.is_busy:
            return
        self.source = Path(request.source)
        self.request = request
        self.failure, self.result = None, None
        job = self._start_job(self.tr("Converting {name}").format(name=self.name))
        try:
            unfinished.remember(request)
        except OSError as error:  # then it can be done, but not be taken up again
            log.warning("the conversion could not be written down: %s", error)
        self._begin(Stage.RUN, partial(self._run, request, job))

    # In the background.

    async def _examine(self, source: Path) -> None:
        loop = asyncio.get_running_loop()
        self.kinds, self.examination = await loop.run_in_executor(None, _examined, source)
        self._set(Stage.PLAN)
        speed = await loop.run_in_executor(None, _memory_speed, self._config)
        for kind in self.kinds:
            self.outlooks[kind.key] = await loop.run_in_executor(None, _outlook, source, kind, self._config, speed)
            self.outlooks_changed.emit()
        log.info("the plan for %s is ready", source)

    async def _run(self, request: ConversionRequest, job: Job) -> None:
        try:
            self.result = await job.run(lambda job: _converted(job, request))
        finally:
            unfinished.forget()
        log.info("converted: %s", self.result.path)
        self._set(Stage.DONE)
        self.made.emit(self.result.path)

    def _forget(self) -> None:
        self.source = self.examination = self.request = self.job = self.result = self.failure = None
        self.outlooks = {}


# In other threads. The imports bring NumPy and the engine.


def _examined(source: Path) -> tuple[tuple[FileType, ...], Examination]:
    from app.conversion_plan import examine  # noqa: PLC0415
    from app.file_types import FILE_TYPES  # noqa: PLC0415

    return FILE_TYPES, examine(source)


def _memory_speed(config: Callable[[], EngineConfig]) -> float | None:
    from app.speed_forecast import memory_speed  # noqa: PLC0415
    from engine.hardware.cpu import usable_cores  # noqa: PLC0415

    return memory_speed(config().threads or usable_cores())


def _outlook(source: Path, kind: FileType, config: Callable[[], EngineConfig], speed: float | None) -> Outlook:
    from app.conversion_plan import outlook  # noqa: PLC0415

    return outlook(source, kind, config(), memory_bytes_per_second=speed)


def _converted(job: Job, request: ConversionRequest) -> Outcome:
    from app.requested_conversion import run_request  # noqa: PLC0415

    return run_request(job, request)
