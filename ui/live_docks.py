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

if TYPE_CHECKING:
    from engine import MemoryPlan
    from engine.telemetry import Telemetry


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
            action = dock.toggleViewAction()
            action.setText(title)
            action.setShortcut(QKeySequence(shortcut))
            self.docks[key] = dock
            self.actions.append(action)
        self.experts = self.docks["experts"]
