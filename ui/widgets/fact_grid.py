"""Facts as pairs of a name and a value, in as many columns as there is room for."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from ui.theme import current_theme

_CELL_WIDTH = 150


class _Fact(QWidget):
    def __init__(self, name: str, value: str, parent: QWidget) -> None:
        super().__init__(parent)
        title = QLabel(name, self)
        title.setProperty("tone", "small")
        text = QLabel(value, self)
        text.setWordWrap(True)
        text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        text.setTextFormat(Qt.TextFormat.PlainText)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        text.setAccessibleName(f"{name}: {value}")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(1)
        column.addWidget(title)
        column.addWidget(text)
        column.addStretch(1)


class FactGrid(QWidget):
    """Set anew with each `set_facts`; pairs without a value are left out."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(18)
        self._grid.setVerticalSpacing(10)
        self._shown: list[tuple[str, str]] = []
        self._cells: list[_Fact] = []
        self._n_columns = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        current_theme().changed.connect(self._place)

    def set_facts(self, facts: Sequence[tuple[str, str | None]]) -> None:
        shown = [(name, value) for name, value in facts if value]
        if shown == self._shown:
            return
        self._shown = shown
        for cell in self._cells:
            self._grid.removeWidget(cell)
            cell.hide()
            cell.deleteLater()
        self._cells = [_Fact(name, value, self) for name, value in shown]
        for cell in self._cells:
            cell.show()
        self._place(force=True)

    @property
    def facts(self) -> dict[str, str]:
        return dict(self._shown)

    def minimumSizeHint(self) -> QSize:
        return QSize(current_theme().px(_CELL_WIDTH), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self, *, force: bool = False) -> None:
        n_columns = max(1, min(4, self.width() // current_theme().px(_CELL_WIDTH)))
        if n_columns == self._n_columns and not force:
            return
        for column in range(max(self._n_columns, n_columns)):
            self._grid.setColumnStretch(column, 1 if column < n_columns else 0)
        self._n_columns = n_columns
        for number, cell in enumerate(self._cells):
            self._grid.addWidget(cell, number // n_columns, number % n_columns)
