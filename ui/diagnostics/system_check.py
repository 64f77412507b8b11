"""Runs the system check, its measurements and its fixes away from the window's thread, and holds their results."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal

from app.diagnostics import Finding, ModelNeeds, Verb, run_checks
from app.jobs import Job, JobCancelledError
from engine.errors import ColibriError

if TYPE_CHECKING:
    from app.diagnostics import Fix, Inspection
    from app.diagnostics.fixes import Fixer

log = logging.getLogger(__name__)

Look = Callable[["ModelNeeds | None"], "Inspection"]


class SystemCheck(QObject):
    """One thing at a time: a check, a measurement, or a change that waits for the user's consent."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, look: Look, fixer: Fixer, model: Callable[[], ModelNeeds | None], has_polkit: bool) -> None:
        super().__init__()
        self._look, self._fixer, self._model = look, fixer, model
        self._has_polkit = has_polkit
        self._tasks: set[asyncio.Task[None]] = set()
        self._measured: list[Finding] = []
        self._read: list[Finding] = []
        self.undoable: set[Verb] = set()
        self.job: Job | None = None
        self.is_busy = False

    @property
    def findings(self) -> list[Finding]:
        """All findings; empty until the first check is done."""
        return [*self._read, *self._measured]

    @property
    def can_fix(self) -> bool:
        """Whether changes can be asked for: polkit is there."""
        return self._has_polkit

    def check(self) -> None:
        """Look at everything again."""
        self._begin(self._check)

    def measure(self) -> None:
        """Measure memory and disk."""
        self._begin(self._measure)

    def cancel(self) -> None:
        """Stop measuring."""
        if self.job is not None:
            self.job.cancel()

    def make(self, fix: Fix) -> None:
        """Make a change that the user has agreed to; polkit asks once more."""
        self._begin(lambda: self._change(lambda: self._fixer.make(fix)))

    def undo(self, verb: Verb) -> None:
        """Undo a change."""
        self._begin(lambda: self._change(lambda: self._fixer.undo(verb)))

    async def close(self) -> None:
        """End what is under way."""
        self.cancel()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=0.3)

    def _begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self.is_busy:
            return
        self.is_busy = True
        self.changed.emit()
        task = asyncio.get_running_loop().create_task(self._guard(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guard(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except JobCancelledError:
            log.info("the measurement was cancelled")
        except (ColibriError, OSError) as error:
            self.failed.emit(str(error))
        finally:
            self.job = None
            self.is_busy = False
            self.changed.emit()

    async def _check(self) -> None:
        model = self._model()
        loop = asyncio.get_running_loop()
        self._read, self._measured = await loop.run_in_executor(None, self._look_now, model)
        self.undoable = set(await loop.run_in_executor(None, self._fixer.changes))

    def _look_now(self, model: ModelNeeds | None) -> tuple[list[Finding], list[Finding]]:
        """What only reads, and what was measured earlier; on a thread of its own."""
        from app.diagnostics.measurements import known  # noqa: PLC0415

        inspection = self._look(model)
        return run_checks(inspection), known(inspection)

    async def _measure(self) -> None:
        from app.diagnostics.measurements import measure  # noqa: PLC0415

        model = self._model()
        self.job = Job(self.tr("System check"))
        self.job.on_change(lambda _job: self.changed.emit())
        self._measured = await self.job.run(lambda job: measure(self._look(model), job))

    async def _change(self, act: Callable[[], object]) -> None:
        await Job("change").run(lambda _job: act())
        await self._check()
