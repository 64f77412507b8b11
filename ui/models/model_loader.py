"""Gets a model ready: fetches the starter if there is none, loads, cancels, and says how far it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from app import starter
from app.engine_service import EngineService, ServiceState
from app.jobs import Job, JobCancelledError
from app.settings import SettingsFile
from engine.errors import ColibriError, EngineClosedError
from ui import format as fmt

if TYPE_CHECKING:
    from app.library import Library

log = logging.getLogger(__name__)

KERNELS = "kernels"  # the engine's name for compiling


class LoadState(StrEnum):
    EMPTY = "empty"
    FETCHING = "fetching"  # the starter model
    LOADING = "loading"
    READY = "ready"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Progress:
    """What a progress bar shows; ``fraction`` is None when the length is not known."""

    title: str
    fraction: float | None
    detail: str
    is_long: bool  # worth a bar of its own: fetching, or compiling kernels


class ModelLoader(QObject):
    """One at a time: a newer wish replaces the one under way."""

    changed = Signal()
    ready = Signal()

    def __init__(self, service: EngineService, settings: SettingsFile) -> None:
        super().__init__()
        self._service = service
        self.library: Library | None = None
        self._settings = settings
        self._job: Job | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._n_wishes = 0
        self.path: Path | None = None
        self.name = ""
        self.state = LoadState.EMPTY
        self.error = ""
        self.context_length = 0

    def start(self) -> None:
        """Load the default model, else the last one, else the starter, which is fetched first if it is missing."""
        self._begin(self._start())

    def load(self, path: Path) -> None:
        """Load a model in place of the present one."""
        self._begin(self._load(path))

    def retry(self) -> None:
        """Do again what failed."""
        if self.path is not None:
            self.load(self.path)
        else:
            self.start()

    def cancel(self) -> None:
        """Give up what is under way."""
        if self._job is not None:
            self._job.cancel()

    def unload(self) -> None:
        """Close the model."""
        self._begin(self._unload())

    async def close(self) -> None:
        """Cancel what is under way and wait a moment for its end."""
        self.cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=0.3)

    @property
    def progress(self) -> Progress | None:
        """How far the work under way is; None when there is none."""
        job = self._job
        if job is None:
            return None
        if self.state is LoadState.FETCHING:
            return Progress(self.tr("Fetching {name}").format(name=self.name), job.fraction, self._detail(job), True)
        if job.phase == KERNELS:
            title = self.tr("Preparing kernels for this processor")
            return Progress(title, job.fraction, self._detail(job), True)
        return Progress(self.tr("Loading {name}").format(name=self.name), job.fraction, self._detail(job), False)

    def _detail(self, job: Job) -> str:
        parts = []
        if job.done_bytes is not None and job.total_bytes:
            done, total = fmt.size(job.done_bytes), fmt.size(job.total_bytes)
            parts.append(self.tr("{done} of {total}").format(done=done, total=total))
        elif job.fraction is not None:
            parts.append(f"{round(job.fraction * 100)} %")
        if job.seconds_left is not None and job.seconds_left >= 1:
            parts.append(fmt.time_left(job.seconds_left))
        return "  ·  ".join(parts)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.cancel()
        self._n_wishes += 1
        task = asyncio.get_running_loop().create_task(self._guard(work, self._n_wishes))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(self, work: Coroutine[Any, Any, None], wish: int) -> None:
        try:
            await work
        except (JobCancelledError, EngineClosedError):
            if wish == self._n_wishes:
                self._set(LoadState.EMPTY)
        except ColibriError as error:
            if wish == self._n_wishes:
                log.warning("no model: %s", error)
                self.error = str(error)
                self._set(LoadState.ERROR)
        except Exception as error:
            log.exception("no model")
            if wish == self._n_wishes:
                self.error = self.tr("This is a fault of Colibri; the log has more: {error}").format(error=error)
                self._set(LoadState.ERROR)

    async def _start(self) -> None:
        settings = self._settings.settings
        for chosen in (settings.default_model, settings.model_path):
            if chosen and Path(chosen).is_file():
                await self._load(Path(chosen))
                return
        manifest = starter.Manifest.load()
        self.name = manifest.name
        self.path = None
        if not starter.is_present(manifest):
            job = self._follow(Job(self.tr("Fetching {name}").format(name=manifest.name)))
            self._set(LoadState.FETCHING)
            await job.run(starter.ensure)
            if self.library is not None:
                await self.library.refresh()
        await self._load(starter.starter_path(manifest))

    async def _load(self, path: Path) -> None:
        self.path = path
        from app.library import model_name, with_recent  # noqa: PLC0415  (imports NumPy: not before the first paint)

        entry = self.library.find(path) if self.library is not None else None
        self.name = entry.name if entry is not None else model_name(path, "")
        job = self._follow(Job(self.name))
        self._set(LoadState.LOADING)
        config = await asyncio.get_running_loop().run_in_executor(None, self.engine_config, path)
        job.check()
        info = await self._service.load(path, config, job)
        self.context_length = min(config.context_length, info.training_context or config.context_length)
        known = with_recent(self._settings.settings, path)
        self._settings.change(model_path=known.model_path, recent_models=known.recent_models)
        self._set(LoadState.READY)
        self.ready.emit()

    def engine_config(self, path: Path | None = None) -> Any:
        """What models are opened with, `path` in particular. Call it on another thread: the import takes its time."""
        from engine import EngineConfig  # noqa: PLC0415

        settings = self._settings.settings
        top_k = None if path is None else settings.experts_per_token.get(str(path))
        return EngineConfig(context_length=settings.context_length, threads=settings.threads, top_k=top_k)

    async def _unload(self) -> None:
        await self._service.unload()
        self.path, self.name = None, ""
        self._set(LoadState.EMPTY)

    def _follow(self, job: Job) -> Job:
        self._job = job
        job.on_change(lambda _job: self.changed.emit() if self._job is job else None)
        return job

    def _set(self, state: LoadState) -> None:
        self.state = state
        if state in {LoadState.READY, LoadState.ERROR, LoadState.EMPTY}:
            self._job = None
        self.changed.emit()

    @property
    def top_k(self) -> int | None:
        """How many experts each token of the open model has."""
        info = self._service.info
        return None if info is None else info.top_k

    @property
    def can_take_messages(self) -> bool:
        """Whether what is sent now will be answered: at once, or as soon as the model is there."""
        return self._service.state in {ServiceState.READY, ServiceState.LOADING}
