"""The frame of a page that leads through long work: its steps above, one view in the middle, buttons at the foot."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from ui.widgets.column_page import ColumnPage
from ui.wizard.stepper import Stepper

View = TypeVar("View", bound=QWidget)

_COLUMN_WIDTH = 700


class StageView(QWidget):
    """What a page shows of one stage of its task."""

    def refresh(self) -> None:
        """Show what is known by now."""

    def focus(self) -> None:
        """Put the keyboard where it is wanted first."""


class ExamineView(StageView):
    """Something is being read."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.text = QLabel(self)
        self.text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.text.setProperty("tone", "muted")
        self.text.setWordWrap(True)
        bar = QProgressBar(self)
        bar.setTextVisible(False)
        bar.setRange(0, 0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 60, 0, 0)
        column.setSpacing(12)
        column.addWidget(self.text)
        column.addWidget(bar)


class WizardShell(QWidget):
    """Views are made when they are first needed (`added`), so that no click waits for all of them."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("Page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.stepper = Stepper([], self)
        self._scroll = ColumnPage(_COLUMN_WIDTH, self)
        self._scroll.column.addWidget(self.stepper)
        self._scroll.column.addStretch(1)
        self._foot = QWidget(self)
        self._foot.setObjectName("Foot")
        self._foot.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._foot_row = QHBoxLayout(self._foot)
        self._foot_row.setContentsMargins(24, 10, 24, 10)
        self._foot_row.addStretch(1)
        self._foots: dict[QWidget, tuple[QWidget, ...]] = {}
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self._scroll, 1)
        layout.addWidget(self._foot)
        self.views: list[QWidget] = []

    def added(self, view: View, back: QWidget | None = None, onward: QWidget | None = None) -> View:
        """Take a view in; its buttons `back` and `onward` stand at the foot, always in sight."""
        view.hide()
        self.views.append(view)
        self._scroll.column.insertWidget(len(self.views), view)
        buttons = tuple(button for button in (back, onward) if button is not None)
        if back is not None:
            self._foot_row.insertWidget(0, back)
        if onward is not None:
            self._foot_row.addWidget(onward)
        self._foots[view] = buttons
        for button in buttons:
            button.hide()
        return view

    def show_view(self, shown: QWidget, *, is_new: bool) -> None:
        """Show one of the views; `is_new`: from its beginning."""
        for view in self.views:
            view.setVisible(view is shown)
            for button in self._foots[view]:
                button.setVisible(view is shown)
        self._foot.setVisible(bool(self._foots[shown]))
        if is_new:
            self._scroll.verticalScrollBar().setValue(0)
