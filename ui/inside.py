"""The pages and windows that show what goes on inside: the system check, performance, the experts of answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from ui.navigation import Pages
from ui.performance.recordings import Recordings
from ui.widgets.late_page import LatePage
from ui.widgets.toast import Toast

if TYPE_CHECKING:
    from app.engine_service import EngineService
    from app.settings import SettingsFile
    from ui.diagnostics.system_page import SystemPage
    from ui.performance.routing_window import RoutingWindow

SYSTEM, PERFORMANCE = "system", "performance"  # the keys of the pages


class Inside(QObject):
    """Makes each of them when it is first asked for."""

    def __init__(
        self, pages: Pages, toast: Toast, engine: EngineService, settings: SettingsFile, window: QWidget
    ) -> None:
        super().__init__(window)
        self._engine, self._toast, self._window = engine, toast, window
        self._system: SystemPage | None = None
        self._routing: RoutingWindow | None = None
        self.recordings = Recordings(engine, lambda: settings.settings, self)
        pages.add(SYSTEM, "pulse", self.tr("System check"), self._late_system_page, "Ctrl+Shift+D")
        pages.add(PERFORMANCE, "performance", self.tr("Performance"), self._late_performance_page)

    def show_experts_of(self, message_id: int, words: str = "") -> None:
        """Show which experts served an answer, or words of it."""
        if self._routing is None:
            from ui.performance.routing_window import RoutingWindow  # noqa: PLC0415

            self._routing = RoutingWindow(self._engine.routes, self._window)
        self._routing.show_answer(message_id, words)

    async def close(self) -> None:
        """End what is under way."""
        if self._system is not None:
            await self._system.check.close()

    def _late_system_page(self) -> QWidget:
        modules = ("app.diagnostics.live", "app.diagnostics.measurements", "ui.diagnostics.live")
        return LatePage(modules, self._system_page, self._window)

    def _system_page(self) -> QWidget:
        from ui.diagnostics.live import system_page  # noqa: PLC0415  (not before the first paint)

        self._system = system_page(self._engine, self._window)
        self._system.notice.connect(self._toast.show_message)
        return self._system

    def _late_performance_page(self) -> QWidget:
        modules = ("app.measurements", "app.recording", "ui.diagnostics.live", "ui.performance.performance_page")
        return LatePage(modules, self._performance_page, self._window)

    def _performance_page(self) -> QWidget:
        from ui.diagnostics.live import why_question  # noqa: PLC0415
        from ui.performance.performance_page import PerformancePage  # noqa: PLC0415

        page = PerformancePage(self.recordings, self._engine, question=why_question(self._engine, self))
        page.notice.connect(self._toast.show_message)
        return page
