"""One carving's way: choose, examine, plan, measure, decide, end. Holds the state that pages show."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app import carving_request
from app.carving_request import CarvingRequest
from app.jobs import Job
from app.library import ModelEntry
from ui.wizard.long_task import LongTask, Stage

if TYPE_CHECKING:
    from app.carving import Trial
    from app.carving_plan import Candidate, DenseModel

log = logging.getLogger(__name__)


class CarvingTask(LongTask[CarvingRequest]):
    """Measures every number of experts, then waits for a decision, unless the request has made it already."""

    def __init__(self) -> None:
        super().__init__()
        self.candidates: list[Candidate] | None = None
        self.model: DenseModel | None = None
        self.trial: Trial | None = None
        self.top_k: int | None = None
        self.result: Path | None = None

    @property
    def name(self) -> str:
        if self.request is not None and self.request.name:
            return self.request.name
        if self.model is not None:
            return self.model.name
        return self.source.stem if self.source is not None else ""

    @property
    def has_plan(self) -> bool:
        return self.model is not None

    # What pages ask for.

    def look_for(self, entries: Sequence[ModelEntry]) -> asyncio.Task[None]:
        """Find out which of the library's models can be carved."""
        return asyncio.get_running_loop().create_task(self._look_for(list(entries)))

    def choose(self, source: Path) -> None:
        if self.is_busy:
            return
        self._forget()
        self.source = source
        self._begin(Stage.EXAMINE, partial(self._examine, source))

    def back(self) -> None:
        """To the choice of a model; what was measured and not kept is discarded."""
        if self.is_running:
            return
        self._stop()
        if self.trial is not None and self.stage is Stage.DECIDE:
            self._in_background(carving_request.discard, self.trial.request)
        self._forget()
        self._set(Stage.CHOOSE)

    def start(self, request: CarvingRequest) -> None:
        """Carve and measure; a request with `top_k` is kept without asking."""
        if self.is_busy:
            return
        self.source, self.request = Path(request.source), request
        self.failure = self.trial = self.result = None
        job = self._start_job(self.tr("Carving {name}").format(name=self.name))
        try:
            carving_request.remember(request)
        except OSError as error:  # then it can be done, but not be taken up again
            log.warning("the carving could not be written down: %s", error)
        self._begin(Stage.RUN, partial(self._run, request, job))

    def decide(self, top_k: int) -> None:
        """Keep what was measured, with so many experts for each token."""
        if self.stage is Stage.DECIDE and self.trial is not None:
            job = self._start_job(self.tr("Carving {name}").format(name=self.name))
            self._begin(Stage.RUN, partial(self._keep, self.trial, top_k, job))

    # In the background.

    async def _look_for(self, entries: list[ModelEntry]) -> None:
        self.candidates = await asyncio.get_running_loop().run_in_executor(None, _candidates, entries)
        self.changed.emit()

    async def _examine(self, source: Path) -> None:
        self.model = await asyncio.get_running_loop().run_in_executor(None, _examined, source)
        self._set(Stage.PLAN)

    async def _run(self, request: CarvingRequest, job: Job) -> None:
        try:
            self.trial = await job.run(lambda job: _tried(job, request))
        except BaseException:
            carving_request.forget()
            raise
        log.info("the carving of %s is measured", request.source)
        if request.top_k is None:
            self._set(Stage.DECIDE)
        else:
            await self._keep(
                self.trial, request.top_k, self._start_job(self.tr("Carving {name}").format(name=self.name))
            )

    async def _keep(self, trial: Trial, top_k: int, job: Job) -> None:
        self.changed.emit()  # another job
        try:
            self.result = await job.run(lambda job: _kept(job, trial, top_k))
        except BaseException:
            self._in_background(carving_request.discard, trial.request)
            raise
        self.top_k = top_k
        log.info("carved: %s", self.result)
        self._set(Stage.DONE)
        self.made.emit(self.result)

    def _in_background(self, work: Callable[[CarvingRequest], None], request: CarvingRequest) -> None:
        asyncio.get_running_loop().run_in_executor(None, work, request)

    def _forget(self) -> None:
        self.source = self.model = self.request = self.trial = self.result = self.job = self.failure = None
        self.top_k = None


# In other threads. The imports bring NumPy and the engine.


def _candidates(entries: list[ModelEntry]) -> list[Candidate]:
    from app.carving_plan import candidates  # noqa: PLC0415

    return candidates(entries)


def _examined(source: Path) -> DenseModel:
    from app.carving_plan import examine  # noqa: PLC0415

    return examine(source)


def _tried(job: Job, request: CarvingRequest) -> Trial:
    from app.carving import try_carving  # noqa: PLC0415

    log.info("carving %s", asdict(request))
    return try_carving(job, request)


def _kept(job: Job, trial: Trial, top_k: int) -> Path:
    from app.carving import keep  # noqa: PLC0415

    return keep(job, trial, top_k)
