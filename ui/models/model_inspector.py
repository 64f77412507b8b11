"""Finds out, in other threads, what the model manager says of the model that is selected."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.jobs import Job, JobCancelledError
from app.model_details import Checksum, MemoryFit, ModelDetails, checksums, memory_fit, read_details
from engine.errors import ColibriError

if TYPE_CHECKING:
    from engine import EngineConfig

log = logging.getLogger(__name__)

_SETTLE_MS = 120  # while somebody goes through the list by arrow keys


class ModelInspector(QObject):
    """`details`, `fit` and `sums` are None until they are known; `problem` says why `details` will not be."""

    changed = Signal()

    def __init__(self, config: Callable[[], EngineConfig]) -> None:
        """`config`: what models are opened with; it is called in another thread."""
        super().__init__()
        self._config = config
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._known_sums: dict[tuple[Path, int], list[Checksum]] = {}
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.setInterval(_SETTLE_MS)
        self._settle.timeout.connect(self.look)
        self.path: Path | None = None
        self.job: Job | None = None
        self._forget()

    def _forget(self) -> None:
        self.details: ModelDetails | None = None
        self.fit: MemoryFit | None = None
        self.sums: list[Checksum] | None = None
        self.problem = self.fit_problem = self.sum_problem = ""

    def select(self, path: Path | None) -> None:
        """Find out about another model, as soon as the selection rests."""
        if path == self.path:
            return
        self.cancel_checksum()
        for task in self._tasks.values():
            task.cancel()
        self.path = path
        self._forget()
        self.changed.emit()
        if path is not None:
            self._settle.start()

    def look(self) -> None:
        """Find out about the selected model, again if need be: its header, then its memory."""
        self._settle.stop()
        if self.path is not None and asyncio._get_running_loop() is not None:  # else the program is ending
            self._start("look", self._look(self.path))

    def compute_checksum(self) -> None:
        """Read the selected model whole."""
        if self.path is not None and self.job is None:
            self.sum_problem = ""
            self.job = Job(self.path.name)
            self.job.on_change(lambda _job: self.changed.emit())
            self._start("checksum", self._checksum(self.path, self.job))

    def cancel_checksum(self) -> None:
        if self.job is not None:
            self.job.cancel()

    def leave(self) -> None:
        """The program ends."""
        self.cancel_checksum()
        self._settle.stop()
        for task in self._tasks.values():
            task.cancel()

    def _start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        if name in self._tasks:
            self._tasks[name].cancel()
        self._tasks[name] = asyncio.get_running_loop().create_task(work)

    async def _look(self, path: Path) -> None:
        loop = asyncio.get_running_loop()
        try:
            self.details = await loop.run_in_executor(None, read_details, path)
            self.sums = self._known_sums.get((path, self.details.file_bytes))
        except (ColibriError, OSError) as error:
            self.problem = str(error)
            self.changed.emit()
            return
        self.changed.emit()
        try:
            self.fit = await loop.run_in_executor(None, lambda: memory_fit(path, self._config()))
        except (ColibriError, OSError) as error:
            self.fit_problem = str(error)
        except Exception as error:
            log.exception("memory of %s", path)
            self.fit_problem = self.tr("This is a fault of Colibri; the log has more: {error}").format(error=error)
        self.changed.emit()

    async def _checksum(self, path: Path, job: Job) -> None:
        try:
            sums = await job.run(lambda job: checksums(job, path))
            if self.details is not None:
                self._known_sums[path, self.details.file_bytes] = sums
            if path == self.path:
                self.sums = sums
        except JobCancelledError:
            pass
        except ColibriError as error:
            self.sum_problem = str(error)
        finally:
            self.job = None
            self.changed.emit()
