"""Fields for numbers that a page can be scrolled past without changing them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QDoubleSpinBox, QSpinBox, QWidget

_MARGIN = 9


class IntegerField(QSpinBox):
    """The value counts when it is complete, not at every digit."""

    def __init__(self, low: int, high: int, value: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setRange(low, high)
        self.setValue(value)
        self.setKeyboardTracking(False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.lineEdit().setTextMargins(_MARGIN, 0, _MARGIN, 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


class DecimalField(QDoubleSpinBox):
    """With two decimals; the value counts when it is complete, not at every digit."""

    def __init__(self, low: float, high: float, value: float, step: float, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setDecimals(2)
        self.setRange(low, high)
        self.setSingleStep(step)
        self.setValue(value)
        self.setKeyboardTracking(False)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.lineEdit().setTextMargins(_MARGIN, 0, _MARGIN, 0)

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
