"""What all live panels share: they read only while they are visible, and say plainly when there is nothing to show."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QStackedLayout, QVBoxLayout, QWidget

from ui.performance.explanation import Explanation
from ui.performance.step_feed import StepFeed
from ui.widgets.steady_label import SteadyLabel


class LivePanel(QWidget):
    """A line of figures above one or more charts.

    Subclasses fill :attr:`column` and update themselves in :meth:`show_steps`. ``help_text`` says how to read them.
    """

    help_text = ""

    def __init__(self, feed: StepFeed, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("LivePanel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setAccessibleName(title)
        self.title = title
        self.feed = feed
        self.summary = SteadyLabel(self)
        shown = QWidget(self)
        self.column = QVBoxLayout(shown)
        self.column.setContentsMargins(14, 8, 12, 10)
        self.column.setSpacing(6)
        self.column.addWidget(self.summary)
        self.explanation = Explanation(self)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self.explanation)
        self._stack.addWidget(shown)
        feed.changed.connect(self._on_changed)

    @property
    def is_showing_data(self) -> bool:
        return self._stack.currentIndex() == 1

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.feed.attach(self)
        self._on_changed()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.feed.detach(self)

    def show_steps(self) -> None:
        """Draw what the feed has; there is at least one step."""
        raise NotImplementedError

    def has_data(self) -> bool:
        """Whether there is anything to draw; if not, the explanation is shown."""
        return self.feed.steps is not None and len(self.feed.steps) > 0

    def _on_changed(self) -> None:
        if not self.isVisible():
            return
        if self.has_data():
            self.show_steps()
            self._turn_to(1)
            return
        self._turn_to(0)
        self.explanation.explain(*self.absence())

    def _turn_to(self, index: int) -> None:
        if self._stack.currentIndex() != index:  # setting it again would have everything laid out
            self._stack.setCurrentIndex(index)

    def absence(self) -> tuple[str, str]:
        """What to say while there is nothing to draw: a title, and a sentence."""
        if self.feed.source is None:
            return self.tr("No model is loaded"), self.tr("Its figures will appear here.")
        return self.tr("Nothing to show yet"), self.tr("Ask something: every token is measured.")
