"""The dock that shows the experts at work, or says plainly why there is nothing to show."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from PySide6.QtCore import QElapsedTimer, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QHideEvent, QLinearGradient, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QStackedLayout, QVBoxLayout, QWidget

from ui import format as fmt
from ui.performance.expert_history import ExpertHistory
from ui.performance.explanation import Explanation
from ui.performance.heat_map import HeatMap, heat_stops
from ui.performance.step_feed import StepFeed
from ui.theme import current_theme
from ui.widgets.steady_label import SteadyLabel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

POLL_MS = 100  # at 33 ms the map took as much of the processor as all other panels, and nobody saw more
_SUMMARY_EVERY_S = 0.4


class ExpertSource(Protocol):
    """What the panel reads: the engine's telemetry, which any thread may look at."""

    @property
    def expert_counts(self) -> NDArray[np.int64]:
        """Calls so far, (n_layers, n_experts)."""

    @property
    def last_experts(self) -> NDArray[np.int32]:
        """The newest token's experts, (n_layers, top_k)."""

    @property
    def moe_layers(self) -> Sequence[int]:
        """The layers that have experts."""


@runtime_checkable
class KnowsResidence(Protocol):
    """A source that also knows which experts are in memory."""

    slab_bytes: Sequence[int]  # of one expert, of each layer that has experts

    def is_resident(self, index: int, expert: int) -> bool:
        """Whether the expert of the layer in place `index` is in memory."""


class Legend(QWidget):
    """The ramp from rarely to often, and the mark of the newest token."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Legend: from rarely to often called; marked: experts of the newest token"))
        current_theme().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(200, current_theme().px(20))

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(11))
        metrics = painter.fontMetrics()
        middle = self.height() / 2
        align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        x = 0.0

        def text(label: str) -> None:
            nonlocal x
            painter.setPen(theme.color("text_muted"))
            width = metrics.horizontalAdvance(label)
            painter.drawText(QRectF(x, 0, width + 2, self.height()), int(align), label)
            x += width + theme.px(6)

        text(self.tr("rare"))
        ramp = QRectF(x, middle - theme.px(4), theme.px(64), theme.px(8))
        gradient = QLinearGradient(ramp.topLeft(), ramp.topRight())
        stops = heat_stops()
        for number, color in enumerate(stops):
            gradient.setColorAt(number / (len(stops) - 1), color)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(gradient)
        painter.drawRoundedRect(ramp, 3, 3)
        x = ramp.right() + theme.px(6)
        text(self.tr("often"))
        x += theme.px(8)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color("heat_lit"))
        painter.drawRoundedRect(QRectF(x, middle - theme.px(4), theme.px(8), theme.px(8)), 2, 2)
        x += theme.px(14)
        text(self.tr("newest token"))


class ExpertPanel(QWidget):
    """Asks ``source`` for the telemetry while it is visible; hidden, it does nothing at all."""

    def __init__(
        self,
        source: Callable[[], ExpertSource | None],
        parent: QWidget | None = None,
        *,
        feed: StepFeed | None = None,
    ) -> None:
        """`feed`: the steps from which a pinned expert's history is drawn; None: nothing can be pinned."""
        super().__init__(parent)
        self.help_text = self.tr(
            "Each cell is an expert; a column or row of them is a layer. The stronger its colour, the more often it "
            "was called in the last seconds; orange are the experts of the newest token. Point at a cell for its "
            "figures; click it, or use the arrow keys and Enter, to see at which tokens it was called. An evenly "
            "coloured map means that the model spreads its work; a few strong cells are its specialists for what is "
            "being talked about. The context menu of an answer shows which experts served it."
        )
        self.setObjectName("ExpertPanel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._source = source
        self._clock = QElapsedTimer()
        self._clock.start()
        self.timer = QTimer(self)
        self.timer.setInterval(POLL_MS)
        self.timer.timeout.connect(self.poll)
        self.heat_map = HeatMap(self)
        self.heat_map.fact_of = self._fact_of
        self._feed = feed
        self.history = ExpertHistory(self)
        self.history.hide()
        if feed is not None:
            self.heat_map.pinned_changed.connect(self._on_pinned)
            feed.changed.connect(self._show_history)
        self._summary = SteadyLabel(self)
        legend = Legend(self)
        legend.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        shown = QWidget(self)
        layout = QVBoxLayout(shown)
        layout.setContentsMargins(10, 12, 16, 12)
        layout.setSpacing(10)
        head = QHBoxLayout()
        head.setContentsMargins(6, 0, 0, 0)
        head.addWidget(self._summary)
        layout.addLayout(head)
        layout.addWidget(self.heat_map, 1)
        self.history.setFixedHeight(current_theme().px(84))
        layout.addWidget(self.history)
        foot = QHBoxLayout()
        foot.setContentsMargins(6, 0, 0, 0)
        foot.addWidget(legend)
        layout.addLayout(foot)
        self.explanation = Explanation(self)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.explanation)
        self._stack.addWidget(shown)
        self._model_key: object = None
        self._n_calls, self._summarised_s = -1, 0.0
        self.poll()

    @property
    def is_showing_map(self) -> bool:
        return self._stack.currentIndex() == 1

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.poll()
        self.timer.start()
        self._on_pinned()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.timer.stop()
        if self._feed is not None:
            self._feed.detach(self)

    def _on_pinned(self) -> None:
        is_pinned = self._feed is not None and self.heat_map.pinned is not None
        self.history.setVisible(is_pinned)
        if self._feed is None:
            return
        if is_pinned and self.isVisible():
            self._feed.attach(self)
            self._show_history()
        else:
            self._feed.detach(self)

    def _show_history(self) -> None:
        source = self._source()
        if self._feed is not None and self.heat_map.pinned is not None and source is not None:
            self.history.set_data(self._feed.steps, *self.heat_map.pinned, source.moe_layers)

    def _fact_of(self, row: int, expert: int) -> str:
        """Whether an expert is in memory, and how large it is, where the source knows."""
        source = self._source()
        if source is None or not isinstance(source, KnowsResidence):
            return ""
        size = fmt.size(source.slab_bytes[row])
        if source.is_resident(row, expert):
            return self.tr("In memory, {size}").format(size=size)
        return self.tr("Not in memory, {size} to read").format(size=size)

    def poll(self) -> None:
        """Read the telemetry once and draw what has changed."""
        source = self._source()
        elapsed_ms = float(self._clock.restart())
        if source is None:
            self._explain(self.tr("No model is loaded"), self.tr("Its experts will appear here while it answers."))
            self._model_key = None
            return
        if not source.moe_layers:
            self._explain(
                self.tr("This model has no experts"),
                self.tr(
                    "It is a dense model: every token passes through all of its weights. To see experts at work, make "
                    "a demonstration of the starter: one click in the page Models."
                ),
            )
            self._model_key = None
            return
        if self._model_key is not source:
            self._model_key = source
            self._n_calls, self._summarised_s = -1, 0.0
            self.heat_map.reset()
        if not self.is_showing_map:
            self._stack.setCurrentIndex(1)
        counts = source.expert_counts
        self.heat_map.advance(counts, source.last_experts, list(source.moe_layers), elapsed_ms)
        self._summarise()

    def _explain(self, title: str, text: str) -> None:
        self._stack.setCurrentIndex(0)
        if self.explanation.title.text() != title:
            self.explanation.explain(title, text)

    def _summarise(self) -> None:
        n_layers, n_experts = self.heat_map.shape
        n_calls = self.heat_map.n_calls
        now_s = time.perf_counter()
        if n_calls != self._n_calls and now_s - self._summarised_s >= _SUMMARY_EVERY_S:
            self._n_calls, self._summarised_s = n_calls, now_s
            self._summary.setText(
                self.tr("{layers} layers with {experts} experts each · {calls} calls").format(
                    layers=n_layers, experts=n_experts, calls=fmt.count(n_calls)
                )
            )
