"""The system check's page for this very machine and the model that is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.diagnostics import Inspection, ModelNeeds
from app.diagnostics.fixes import fixer
from app.diagnostics.inspection import has_polkit
from ui.diagnostics.system_check import SystemCheck
from ui.diagnostics.system_page import SystemPage
from ui.diagnostics.why import WhyQuestion

if TYPE_CHECKING:
    from app.engine_service import EngineService


def look(needs: ModelNeeds | None) -> Inspection:
    """An inspection of this machine; on the asking thread: it takes its time."""
    from app.diagnostics.live import inspect_here  # noqa: PLC0415

    return inspect_here(needs)


def why_question(engine: EngineService, parent: QObject | None = None) -> WhyQuestion:
    """Asks about this machine and the model that is loaded."""
    return WhyQuestion(look, engine, parent)


def system_page(engine: EngineService, parent: QWidget) -> SystemPage:
    """A page that checks this machine when it is shown."""

    def model() -> ModelNeeds | None:
        info, plan = engine.info, engine.memory
        return None if info is None or plan is None else ModelNeeds.of(info.name, plan)

    question = why_question(engine)
    return SystemPage(SystemCheck(look, fixer(), model, has_polkit()), parent, question=question)
