"""All docks with live panels of a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMainWindow, QWidget

from ui.chat.chat_page import HEADER_HEIGHT
from ui.live_dock import LiveDock
from ui.performance.bandwidth_panel import BandwidthPanel
from ui.performance.cache_panel import CachePanel
from ui.performance.cores_panel import CoresPanel
from ui.performance.expert_panel import ExpertPanel
from ui.performance.latency_panel import LatencyPanel
from ui.performance.memory_panel import MemoryPanel
from ui.performance.step_feed import StepFeed
from ui.performance.time_panel import TimePanel
from ui.theme import current_theme

if TYPE_CHECKING:
    from engine import MemoryPlan
    from engine.telemetry import Telemetry


_LEAST_HEIGHT = 300  # what a panel needs to be read, once it has figures


class LiveDocks(QObject):
    """``experts`` is shown at first; the others wait in the menu."""

    def __init__(
        self,
        window: QMainWindow,
        telemetry: Callable[[], Telemetry | None],
        memory: Callable[[], MemoryPlan | None],
        n_cores: int,
    ) -> None:
        super().__init__(window)
        self._window = window
        self._middle = window.centralWidget() or window  # as high as the docks beside it
        self.feed = StepFeed(telemetry)  # outlives the panels: they detach when they are hidden
        feed = self.feed
        makers: list[tuple[str, str, str, Callable[[], QWidget]]] = [
            ("experts", self.tr("Experts"), "Ctrl+E", lambda: ExpertPanel(telemetry, feed=feed)),
            ("latency", self.tr("Latency"), "Ctrl+1", lambda: LatencyPanel(feed)),
            ("time", self.tr("Where the time went"), "Ctrl+2", lambda: TimePanel(feed)),
            ("cache", self.tr("Expert cache"), "Ctrl+3", lambda: CachePanel(feed)),
            ("memory", self.tr("Memory"), "Ctrl+4", lambda: MemoryPanel(feed, memory)),
            ("bandwidth", self.tr("Memory bandwidth"), "Ctrl+5", lambda: BandwidthPanel(feed, n_cores)),
            ("cores", self.tr("Cores"), "Ctrl+6", lambda: CoresPanel(feed)),
        ]
        self.docks: dict[str, LiveDock] = {}
        self.actions: list[QAction] = []
        for key, title, shortcut, make in makers:
            height = HEADER_HEIGHT if key == "experts" else 36
            dock = LiveDock(key, title, make, window, height=height)
            window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
            dock.setVisible(key == "experts")
            dock.opened.connect(self._make_room)
            action = dock.toggleViewAction()
            action.setText(title)
            action.setShortcut(QKeySequence(shortcut))
            self.docks[key] = dock
            self.actions.append(action)
        self.experts = self.docks["experts"]

    def _make_room(self, dock: LiveDock) -> None:
        """Panels that are opened stand one below the other while the window has the height; then they share places."""
        window, area = self._window, self._window.dockWidgetArea(dock)
        beside = [
            other
            for other in self.docks.values()
            if other is not dock and not other.isHidden() and not other.isFloating()
            if self._window.dockWidgetArea(other) == area
        ]
        if dock.isFloating() or not beside or window.tabifiedDockWidgets(dock):
            return
        alone = [other for other in beside if not self._is_behind(other, beside)]
        least = current_theme().px(_LEAST_HEIGHT)
        wanted = sum(max(other.minimumSizeHint().height(), least) for other in (*alone, dock))
        if wanted > self._middle.height():
            window.tabifyDockWidget(beside[-1], dock)
            dock.raise_()

    def _is_behind(self, dock: LiveDock, docks: list[LiveDock]) -> bool:
        """Whether an earlier one of `docks` shares its place."""
        sharing = self._window.tabifiedDockWidgets(dock)
        return any(other in sharing for other in docks[: docks.index(dock)])
