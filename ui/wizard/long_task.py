"""Long work's way through its stages: choose, examine, plan, run, decide, end. Holds the state that a page shows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from enum import StrEnum
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from PySide6.QtCore import QObject, Signal

from app.failures import Failure, failure_of
from app.jobs import Job, JobCancelledError
from engine.errors import ColibriError

log = logging.getLogger(__name__)

Work = Callable[[], Coroutine[Any, Any, None]]


class Request(Protocol):
    """What is asked for: the file that is read, and the one that is made."""

    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...


Asked = TypeVar("Asked", bound=Request)


class Stage(StrEnum):
    """Where the work is; not every kind of work has all of them."""

    CHOOSE = "choose"
    EXAMINE = "examine"
    PLAN = "plan"
    RUN = "run"
    DECIDE = "decide"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDS = frozenset({Stage.DONE, Stage.FAILED, Stage.CANCELLED})


class LongTask(QObject, Generic[Asked]):
    """Goes on when its page is not shown. Its slow parts run in other threads, and import what they need there."""

    changed = Signal()
    progressed = Signal()
    made = Signal(object)  # Path: a file was written

    def __init__(self) -> None:
        super().__init__()
        self._task: asyncio.Task[None] | None = None
        self.stage = Stage.CHOOSE
        self.source: Path | None = None
        self.request: Asked | None = None
        self.job: Job | None = None
        self.failure: Failure | None = None
        self.failed_in_plan = False  # the source was refused, not the work interrupted

    @property
    def is_running(self) -> bool:
        return self.stage is Stage.RUN

    @property
    def is_busy(self) -> bool:
        """Whether work is under way, or done and not decided about: other work would take its place."""
        return self.stage in {Stage.RUN, Stage.DECIDE}

    # What the kinds of work tell and do.

    @property
    def name(self) -> str:
        """What is worked on, for people."""
        raise NotImplementedError

    @property
    def has_plan(self) -> bool:
        """Whether there is a plan to go back to."""
        raise NotImplementedError

    def choose(self, source: Path) -> None:
        """Look at a model; ignored while another one is under way."""
        raise NotImplementedError

    def start(self, request: Asked) -> None:
        """Do the work; ignored while other work is under way."""
        raise NotImplementedError

    def retry(self) -> None:
        """Do again what failed or was cancelled."""
        if self.request is not None:
            self.start(self.request)
        elif self.source is not None:
            self.choose(self.source)

    def back(self) -> None:
        """To the choice of a model."""
        raise NotImplementedError

    def back_to_plan(self) -> None:
        """To the plan, as it was."""
        if self.has_plan and not self.is_running:
            self._set(Stage.PLAN)

    def cancel(self) -> None:
        """End the work; nothing of it stays."""
        if self.job is not None:
            self.job.cancel()
            self.progressed.emit()

    def leave(self) -> None:
        """The program ends: work under way is left as it is, to go on at the next start; anything else is given up."""
        if not self.is_running:
            self._stop()

    # For the kinds of work.

    def _start_job(self, name: str) -> Job:
        job = Job(name)
        self.job = job
        job.on_change(lambda _job: self.progressed.emit())
        return job

    def _begin(self, stage: Stage, work: Work) -> None:
        self._stop()
        self._set(stage)
        self._task = asyncio.get_running_loop().create_task(self._guard(work))

    async def _guard(self, work: Work) -> None:
        is_early = self.stage is Stage.EXAMINE
        try:
            await work()
        except JobCancelledError:
            self._set(Stage.CANCELLED)
        except Exception as error:
            self._fail(error, is_early)

    def _fail(self, error: Exception, is_early: bool) -> None:
        if isinstance(error, ColibriError | OSError):
            log.warning("%s: %s", self.source, error)
        else:
            log.error("%s", self.source, exc_info=error)
        self.failure = failure_of(error, self.source or "")
        self.failed_in_plan = is_early
        self._set(Stage.FAILED)

    def _stop(self) -> None:
        if self._task is not None and not self._task.done():
            self._task.cancel()
        self._task = None

    def _set(self, stage: Stage) -> None:
        self.stage = stage
        self.changed.emit()
