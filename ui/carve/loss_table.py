"""What each number of experts costs, measured: one row of the table is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QSize, Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from ui import format as fmt
from ui.theme import current_theme

if TYPE_CHECKING:
    from engine.carve import Loss

_WIDTHS = (60, 80, 80, 80, 80, 0)  # of the columns; 0: the rest
_NARROW = (0, 3, 5)  # the columns that a narrow table has
_SAME, _BROKEN = 0.005, 1.0  # nats


def column_names() -> tuple[str, ...]:
    """What the columns are called."""
    translate = QCoreApplication.translate
    return (
        translate("LossTable", "Experts"),
        translate("LossTable", "Share of the network"),
        translate("LossTable", "Perplexity"),
        translate("LossTable", "Divergence, nats"),
        translate("LossTable", "Same next token"),
        "",
    )


class LossRow(QPushButton):
    """One number of experts; pressed, it is the chosen one."""

    def __init__(self, loss: Loss, columns: tuple[int, ...], parent: QWidget) -> None:
        super().__init__(parent)
        self.loss = loss
        self.setProperty("kind", "choice")
        self.setCheckable(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        verdict, tone = self._verdict()
        cells = [
            (str(loss.top_k), "strong"),
            (fmt.percent(loss.feed_forward_share, 0), ""),
            (fmt.decimal(loss.perplexity, 2), ""),
            (fmt.significant(loss.divergence), ""),
            (fmt.percent(loss.top_agreement), ""),
            (verdict, tone),
        ]
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 5, 14, 5)
        row.setSpacing(8)
        for column in columns:
            (text, tone), width = cells[column], _WIDTHS[column]
            label = QLabel(text, self)
            label.setProperty("tone", tone)
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            if width:
                label.setFixedWidth(current_theme().px(width))
            row.addWidget(label, 0 if width else 1)
        names = column_names()
        self.setAccessibleName(", ".join(f"{name}: {text}" for name, (text, _) in zip(names, cells, strict=True)))
        self.verdict = verdict

    def _verdict(self) -> tuple[str, str]:
        loss = self.loss
        if loss.divergence < _SAME:
            return self.tr("As the dense model"), "small"
        if not loss.is_demonstration:
            return self.tr("Close to it"), "small"
        if loss.divergence < _BROKEN:
            return self.tr("Demonstration"), "small-warning"
        return self.tr("Broken"), "small-warning"

    def sizeHint(self) -> QSize:
        layout = self.layout()
        return layout.sizeHint() if layout is not None else super().sizeHint()

    def minimumSizeHint(self) -> QSize:
        return QSize(current_theme().px(200), self.sizeHint().height())


class LossTable(QWidget):
    """Arrow keys move between the rows."""

    chosen = Signal(int)

    def __init__(self, parent: QWidget | None = None, *, is_narrow: bool = False) -> None:
        super().__init__(parent)
        self._columns = _NARROW if is_narrow else tuple(range(len(_WIDTHS)))
        self.setAccessibleName(self.tr("Number of experts"))
        self._group = QButtonGroup(self)
        self._rows: list[LossRow] = []
        self._losses: tuple[Loss, ...] = ()
        head = QHBoxLayout()
        head.setContentsMargins(14, 0, 14, 0)
        head.setSpacing(8)
        for column in self._columns:
            name, width = column_names()[column], _WIDTHS[column]
            label = QLabel(name, self)
            label.setProperty("tone", "small")
            label.setWordWrap(True)
            label.setAlignment(Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignLeft)
            if width:
                label.setFixedWidth(current_theme().px(width))
            head.addWidget(label, 0 if width else 1)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self._column.addLayout(head)

    def show_losses(self, losses: Sequence[Loss], chosen: int | None) -> None:
        """`chosen`: the number of experts whose row is pressed."""
        if tuple(losses) != self._losses:
            self._losses = tuple(losses)
            for old in self._rows:
                self._group.removeButton(old)
                self._column.removeWidget(old)
                old.hide()
                old.deleteLater()
            self._rows = [LossRow(loss, self._columns, self) for loss in losses]
            for row in self._rows:
                self._group.addButton(row)
                self._column.addWidget(row)
                row.toggled.connect(lambda is_on, row=row: self.chosen.emit(row.loss.top_k) if is_on else None)
        if chosen is not None:
            self.choose(chosen)

    def choose(self, top_k: int) -> None:
        for row in self._rows:
            if row.loss.top_k == top_k and not row.isChecked():
                row.setChecked(True)

    @property
    def loss(self) -> Loss | None:
        """The chosen row."""
        return next((row.loss for row in self._rows if row.isChecked()), None)

    @property
    def rows(self) -> list[LossRow]:
        return list(self._rows)
