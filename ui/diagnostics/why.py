"""Asks why answers are slow, away from the window's thread, and holds the answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from engine.errors import ColibriError

if TYPE_CHECKING:
    from app.diagnostics import Inspection, ModelNeeds
    from app.diagnostics.causes import Cause
    from app.engine_service import EngineService
    from engine import MemoryPlan, ModelInfo
    from engine.telemetry import Telemetry

log = logging.getLogger(__name__)

Look = Callable[["ModelNeeds | None"], "Inspection"]


class WhyQuestion(QObject):
    """``changed`` tells that the question was asked or answered, ``failed`` why it could not be."""

    changed = Signal()
    failed = Signal(str)

    def __init__(self, look: Look, service: EngineService, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._look, self._service = look, service
        self._task: asyncio.Task[None] | None = None
        self.causes: list[Cause] = []

    @property
    def is_busy(self) -> bool:
        return self._task is not None and not self._task.done()

    def ask(self) -> None:
        """Look at the check, the plan and the last run; the answer follows with ``changed``."""
        if not self.is_busy:
            self._task = asyncio.get_running_loop().create_task(self._ask())
            self.changed.emit()

    async def _ask(self) -> None:
        service = self._service
        seen = service.info, service.memory, service.telemetry
        try:
            self.causes = await asyncio.get_running_loop().run_in_executor(None, self._find, *seen)
        except (ColibriError, OSError) as error:
            self.failed.emit(str(error))
        finally:
            self._task = None
            self.changed.emit()

    def _find(self, info: ModelInfo | None, plan: MemoryPlan | None, telemetry: Telemetry | None) -> list[Cause]:
        """On a thread of its own."""
        from app.diagnostics import ModelNeeds, run_checks  # noqa: PLC0415
        from app.diagnostics.why import explain, open_model  # noqa: PLC0415

        if info is None or plan is None or telemetry is None:
            looked = self._look(None)
            return explain(looked, run_checks(looked), None, None)
        looked = self._look(ModelNeeds.of(info.name, plan))
        model = open_model(info, plan, telemetry, looked)
        return explain(looked, run_checks(looked), telemetry.steps(), model)
