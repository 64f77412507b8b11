"""The figures of two recordings side by side, with the difference and how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ui.performance.chart import trimmed
from ui.theme import current_theme

if TYPE_CHECKING:
    from app.comparison import Difference, Spread

_RISING_IS_GOOD = {"reading prompts", "weights read"}


def figure_name(name: str) -> str:
    """A figure of app.comparison, or a band of the engine's, for people."""
    translate = QCoreApplication.translate
    return {
        "time per token": translate("ComparisonTable", "time per token"),
        "time to first token": translate("ComparisonTable", "time to first token"),
        "reading prompts": translate("ComparisonTable", "reading prompts"),
        "weights read": translate("ComparisonTable", "weights read"),
        "experts read per token": translate("ComparisonTable", "experts read per token"),
        "experts": translate("Bands", "experts"),
        "attention": translate("Bands", "attention"),
        "router": translate("Bands", "router"),
        "norms": translate("ComparisonTable", "norms"),
        "embedding": translate("ComparisonTable", "embedding"),
        "feed forward": translate("ComparisonTable", "feed-forward network"),
        "output": translate("Bands", "output"),
        "sampling": translate("Bands", "sampling"),
        "disk": translate("Bands", "waiting for disk"),
        "waiting": translate("Bands", "waiting at barriers"),
        "host": translate("Bands", "scheduling and text"),
    }.get(name, name)


def unit_name(unit: str) -> str:
    """A unit of app.comparison, for people."""
    translate = QCoreApplication.translate
    return {"ms": translate("ComparisonTable", "ms"), "tok/s": translate("ComparisonTable", "tok/s")}.get(unit, unit)


_MOST_CHANGE = 10.0


class ComparisonTable(QTableWidget):
    """A row a figure: both medians with their quartiles, and the change between its bounds."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(0, 4, parent)
        self.setAccessibleName(self.tr("Comparison of two recordings"))
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.horizontalHeader().setHighlightSections(False)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionMode(QAbstractItemView.SelectionMode.NoSelection)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        self._shown: tuple[str, str, list[Difference]] | None = None
        current_theme().changed.connect(self._restyle)

    def show_comparison(self, first: str, second: str, differences: list[Difference]) -> None:
        """Fill the table; ``first`` and ``second`` name the recordings."""
        self._shown = first, second, differences
        self.setHorizontalHeaderLabels([self.tr("figure"), first, second, self.tr("change")])
        for column in range(4):
            side = Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
            head = self.horizontalHeaderItem(column)
            if head is not None:
                head.setTextAlignment(side | Qt.AlignmentFlag.AlignVCenter)
        self.setRowCount(len(differences))
        for row, item in enumerate(differences):
            name = figure_name(item.name)
            texts = (
                f"{name} ({unit_name(item.unit)})" if item.unit else name,
                self._spread(item.first),
                self._spread(item.second),
                self._change(item),
            )
            for column, text in enumerate(texts):
                cell = QTableWidgetItem(text)
                if column:
                    cell.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                if column == 3:
                    cell.setForeground(current_theme().color(self._token(item)))
                self.setItem(row, column, cell)
        self._share_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._share_room()

    def _share_room(self) -> None:
        """Each column is as wide as what stands in it; what is left goes to the first."""
        header = self.horizontalHeader()
        wanted = [max(self.sizeHintForColumn(column), header.sectionSizeHint(column)) for column in range(4)]
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Fixed)
        header.resizeSection(0, wanted[0] + max(0, self.viewport().width() - sum(wanted)))

    @staticmethod
    def _spread(spread: Spread) -> str:
        return f"{trimmed(spread.median)}  ({trimmed(spread.low)} – {trimmed(spread.high)})"

    def _change(self, item: Difference) -> str:
        low, high = item.interval
        if max(-low, high, abs(item.change)) > _MOST_CHANGE:  # of figures that are mostly zero: a share says nothing
            return f"> {_MOST_CHANGE:+.0%}" if item.is_clear else "—"
        if not item.is_clear:
            return self.tr("none clear ({low} to {high} %)").format(low=f"{low:+.1%}"[:-1], high=f"{high:+.1%}"[:-1])
        return self.tr("{change} % ({low} to {high} %)").format(
            change=f"{item.change:+.1%}"[:-1], low=f"{low:+.1%}"[:-1], high=f"{high:+.1%}"[:-1]
        )

    @staticmethod
    def _token(item: Difference) -> str:
        if not item.is_clear:
            return "text_muted"
        return "ok" if (item.change > 0) == (item.name in _RISING_IS_GOOD) else "danger"

    def _restyle(self) -> None:
        if self._shown is not None:
            self.show_comparison(*self._shown)
