"""Paints how often each expert of each layer has been called lately."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, Signal
from PySide6.QtGui import QColor, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from ui import format as fmt
from ui.performance.raster import Axis, Raster
from ui.theme import current_theme

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_N_COLORS = 256
_HALF_LIFE_MS = 2500.0  # a call counts half after this long
_FADE_EVERY_MS = 100.0  # while no expert is called, cells fade in steps of this
_COOL = 0.02  # colder than this is drawn as never called
_MARGIN_LEFT, _MARGIN_BOTTOM = 30, 18
_LARGEST_CELL = 44.0
_FRAME = 2  # pixels around the cells that the frame of one may take
_SMALL_CELL, _LONGEST_SMALL_CELL = 4.0, 6


@dataclass(frozen=True, slots=True)
class Cell:
    """One expert of one layer, with its calls so far and its share of the layer's calls."""

    layer: int
    row: int  # the layer's place among those that have experts
    expert: int
    n_calls: int
    share: float


class HeatMap(QWidget):
    """Fed by :meth:`advance`. Layers run along the side that gives the squarer cells.

    A click or Enter pins an expert, the arrow keys go from one to the next, Escape lets go.
    """

    ground = "window"  # a token of the theme: what the map lies on
    pinned_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # nothing behind it is painted with it
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName(self.tr("Expert heat map"))
        self._layers: list[int] = []
        self._counts: NDArray[np.int64] | None = None  # (n_layers, n_experts)
        self._heat: NDArray[np.float32] | None = None  # (n_layers, n_experts)
        self._last: NDArray[np.int32] | None = None  # (n_layers, top_k)
        self._since_fade_ms = 0.0
        self._ramp: NDArray[np.uint32] | None = None  # (_N_COLORS,) 0xAARRGGBB
        self._raster: Raster | None = None
        self._raster_key: tuple[float, ...] = ()
        self.pinned: tuple[int, int] | None = None  # the layer's row and the expert
        self._cursor: tuple[int, int] | None = None
        self.fact_of: Callable[[int, int], str] = lambda _row, _expert: ""  # more for the tool tip
        current_theme().changed.connect(self._restyle)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_layers, n_experts)"""
        return (0, 0) if self._counts is None else (self._counts.shape[0], self._counts.shape[1])

    @property
    def n_calls(self) -> int:
        """All calls counted so far."""
        return 0 if self._counts is None else int(self._counts.sum())

    @property
    def heat(self) -> NDArray[np.float32] | None:
        """The decayed counts, (n_layers, n_experts)."""
        return self._heat

    def reset(self) -> None:
        """Forget everything, for another model."""
        self._counts = self._heat = self._last = None
        self._cursor = None
        self.pin(None)
        self.update()

    def pin(self, cell: tuple[int, int] | None) -> None:
        """Mark an expert, by its layer's row and its number; None: no expert any more."""
        if cell != self.pinned:
            self.pinned = cell
            self.pinned_changed.emit()
            self.update()

    def advance(self, counts: NDArray[np.int64], last: NDArray[np.int32], layers: list[int], elapsed_ms: float) -> None:
        """Take the newest counts (n_layers, n_experts) and the newest token's experts (n_layers, top_k)."""
        import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

        if self._counts is None or self._heat is None or self._counts.shape != counts.shape:
            self._counts = counts.copy()
            self._heat = np.zeros(counts.shape, np.float32)
            self._layers = list(layers)
            self.update()
        fresh = np.maximum(counts - self._counts, 0)
        was_warm = bool(self._heat.max(initial=0.0) > _COOL)
        if not was_warm and not fresh.any():
            if self._last is None or not np.array_equal(self._last, last):
                self._last = last.copy()
                self._update_cells()
            return
        self._since_fade_ms += elapsed_ms
        is_same = self._last is not None and np.array_equal(self._last, last) and not fresh.any()
        if is_same and self._since_fade_ms < _FADE_EVERY_MS:
            return
        self._heat *= 0.5 ** (self._since_fade_ms / _HALF_LIFE_MS)
        self._since_fade_ms = 0.0
        self._heat += fresh
        self._heat[self._heat < _COOL] = 0
        self._counts = counts.copy()
        self._last = last.copy()
        self._update_cells()

    def show_counts(self, counts: NDArray[np.int64], layers: list[int]) -> None:
        """Show these calls (n_layers, n_experts) as they are, without decay or a newest token."""
        import numpy as np  # noqa: PLC0415

        self._counts, self._heat, self._layers = counts.copy(), counts.astype(np.float32), list(layers)
        self._last = None
        self.update()

    def cell_at(self, position: QPoint) -> Cell | None:
        """The expert under a point of the widget."""
        if self._counts is None:
            return None
        grid = self._grid()
        if not grid.contains(position):
            return None
        across = (position.x() - grid.left()) / grid.width()
        down = (position.y() - grid.top()) / grid.height()
        n_layers, n_experts = self.shape
        if self._is_upright():
            layer_part, expert_part = across, down
        else:
            layer_part, expert_part = down, across
        row = min(n_layers - 1, int(layer_part * n_layers))
        expert = min(n_experts - 1, int(expert_part * n_experts))
        return self._cell(row, expert)

    def _cell(self, row: int, expert: int) -> Cell:
        assert self._counts is not None
        n_calls = int(self._counts[row, expert])
        total = int(self._counts[row].sum())
        return Cell(self._layers[row], row, expert, n_calls, n_calls / total if total else 0.0)

    def describe(self, cell: Cell) -> str:
        """The tool tip of a cell."""
        text = self.tr("Layer {layer}, expert {expert}\n{count} calls, {share} % of the layer's").format(
            layer=cell.layer, expert=cell.expert, count=fmt.count(cell.n_calls), share=f"{cell.share * 100:.1f}"
        )
        fact = self.fact_of(cell.row, cell.expert)
        return f"{text}\n{fact}" if fact else text

    def sizeHint(self) -> QSize:
        return QSize(300, 360)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, 120)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position().toPoint())
        if cell is None:
            QToolTip.hideText()
        else:
            QToolTip.showText(event.globalPosition().toPoint(), self.describe(cell), self)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        QToolTip.hideText()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        cell = self.cell_at(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and cell is not None:
            self._cursor = (cell.row, cell.expert)
            self._pin_or_let_go()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}
        key = Qt.Key(event.key())
        if self._counts is None:
            super().keyPressEvent(event)
        elif key in steps:
            self._move_cursor(*steps[key])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space) and self._cursor is not None:
            self._pin_or_let_go()
        elif key == Qt.Key.Key_Escape and self.pinned is not None:
            self.pin(None)
        else:
            super().keyPressEvent(event)

    def _pin_or_let_go(self) -> None:
        self.pin(None if self._cursor == self.pinned else self._cursor)

    def _move_cursor(self, across: int, down: int) -> None:
        n_layers, n_experts = self.shape
        row, expert = self._cursor or (0, 0)
        by_row, by_expert = (across, down) if self._is_upright() else (down, across)
        self._cursor = (min(max(row + by_row, 0), n_layers - 1), min(max(expert + by_expert, 0), n_experts - 1))
        text = self.describe(self._cell(*self._cursor))
        self.setAccessibleDescription(text)
        QToolTip.showText(self.mapToGlobal(self._rect_of(*self._cursor).bottomRight()), text, self)
        self.update()

    # -- painting

    def _available(self) -> QRect:
        theme = current_theme()
        return self.rect().adjusted(theme.px(_MARGIN_LEFT), 0, 0, -theme.px(_MARGIN_BOTTOM))

    def _is_upright(self) -> bool:
        """Whether experts run downward."""
        n_layers, n_experts = self.shape
        box = self._available()
        flat = min(box.width() / n_experts, box.height() / n_layers)
        upright = min(box.width() / n_layers, box.height() / n_experts)
        return upright > flat

    def _grid(self) -> QRect:
        """Where the cells are: as large as fits, cells no longer than twice their other side unless they are tiny."""
        box = self._available()
        n_layers, n_experts = self.shape
        columns, rows = (n_layers, n_experts) if self._is_upright() else (n_experts, n_layers)
        cell_width, cell_height = box.width() / columns, box.height() / rows
        cell_width, cell_height = min(cell_width, _LARGEST_CELL), min(cell_height, _LARGEST_CELL)
        longest = 2 if min(cell_width, cell_height) > _SMALL_CELL else _LONGEST_SMALL_CELL
        cell_width = min(cell_width, cell_height * longest)
        cell_height = min(cell_height, cell_width * longest)
        return QRect(box.left(), box.top(), max(1, int(cell_width * columns)), max(1, int(cell_height * rows)))

    def _update_cells(self) -> None:
        """Paint the cells anew, not what stands around them."""
        self.update(self._grid().adjusted(-_FRAME, -_FRAME, _FRAME, _FRAME))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), current_theme().color(self.ground))
        if self._counts is None or self._heat is None:
            return
        grid = self._grid()
        scale = self.devicePixelRatioF()
        pixels = self._pixels(round(grid.width() * scale), round(grid.height() * scale), scale)
        height, width = pixels.shape
        image = QImage(pixels.data, width, height, width * 4, QImage.Format.Format_RGB32)
        painter.drawImage(grid, image)
        if self._cursor is not None and self.hasFocus():
            self._frame(painter, self._cursor, "text_muted")
        if self.pinned is not None:
            self._frame(painter, self.pinned, "heat_lit")
        if not grid.adjusted(-_FRAME, -_FRAME, _FRAME, _FRAME).contains(event.rect()):
            self._paint_axes(painter, grid)

    def _pixels(self, width: int, height: int, scale: float) -> NDArray[np.uint32]:
        """The grid in device pixels, (height, width)."""
        import numpy as np  # noqa: PLC0415

        assert self._heat is not None
        hottest = max(float(self._heat.max()), 1.0)
        levels = (np.sqrt(self._heat / hottest) * (_N_COLORS - 1)).astype(np.uint8)
        colors, is_lit = self._color_ramp()[levels], self._lit()
        if self._is_upright():
            colors, is_lit = colors.T, is_lit.T
        n_rows, n_columns = colors.shape
        key = (n_columns, n_rows, width, height, scale)
        if self._raster is None or self._raster_key != key:
            self._raster_key = key
            self._raster = Raster(Axis.of(n_columns, width, scale), Axis.of(n_rows, height, scale))
        theme = current_theme()
        return self._raster.paint(colors, is_lit, theme.color("window").rgb(), theme.color("heat_lit").rgb())

    def _rect_of(self, row: int, expert: int) -> QRect:
        """Where an expert's cell is."""
        grid = self._grid()
        n_layers, n_experts = self.shape
        columns, rows = (n_layers, n_experts) if self._is_upright() else (n_experts, n_layers)
        column, line = (row, expert) if self._is_upright() else (expert, row)
        left, right = (round(grid.width() * place / columns) for place in (column, column + 1))
        top, bottom = (round(grid.height() * place / rows) for place in (line, line + 1))
        return QRect(grid.left() + left, grid.top() + top, max(1, right - left), max(1, bottom - top))

    def _frame(self, painter: QPainter, cell: tuple[int, int], token: str) -> None:
        painter.setPen(QPen(current_theme().color(token), 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(self._rect_of(*cell).adjusted(-1, -1, 1, 1))

    def _lit(self) -> NDArray[np.bool_]:
        """Which experts the newest token went to, (n_layers, n_experts)."""
        import numpy as np  # noqa: PLC0415

        n_layers, n_experts = self.shape
        is_lit = np.zeros((n_layers, n_experts), bool)
        if self._last is not None and self._last.size:
            last = self._last[:n_layers]
            layers, places = ((last >= 0) & (last < n_experts)).nonzero()
            is_lit[layers, last[layers, places]] = True
        return is_lit

    def _paint_axes(self, painter: QPainter, grid: QRect) -> None:
        theme = current_theme()
        painter.setFont(theme.font(11))
        painter.setPen(theme.color("text_faint"))
        is_upright = self._is_upright()
        _, n_experts = self.shape
        layer_ends = (str(self._layers[0]), str(self._layers[-1]))
        expert_ends = ("0", str(n_experts - 1))
        down, across = (expert_ends, layer_ends) if is_upright else (layer_ends, expert_ends)
        down_name, across_name = self.tr("experts"), self.tr("layers")
        if not is_upright:
            down_name, across_name = across_name, down_name
        foot = QRect(grid.left(), grid.bottom() + 3, grid.width(), theme.px(_MARGIN_BOTTOM) - 3)
        painter.drawText(foot, Qt.AlignmentFlag.AlignLeft, across[0])
        painter.drawText(foot, Qt.AlignmentFlag.AlignHCenter, across_name)
        painter.drawText(foot, Qt.AlignmentFlag.AlignRight, across[1])
        side = QRect(0, grid.top(), theme.px(_MARGIN_LEFT) - 6, grid.height())
        painter.drawText(side, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop, down[0])
        painter.drawText(side, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignBottom, down[1])
        if painter.fontMetrics().horizontalAdvance(down_name) <= side.width():  # as in Chinese: nothing to turn
            painter.drawText(side, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, down_name)
            return
        painter.save()
        painter.translate(theme.px(12), grid.center().y())
        painter.rotate(-90)
        painter.drawText(QRect(-60, -theme.px(8), 120, theme.px(16)), Qt.AlignmentFlag.AlignCenter, down_name)
        painter.restore()

    def _color_ramp(self) -> NDArray[np.uint32]:
        if self._ramp is None:
            import numpy as np  # noqa: PLC0415

            stops = heat_stops()
            places = np.linspace(0, len(stops) - 1, _N_COLORS)
            channels = [
                np.interp(places, range(len(stops)), [getattr(stop, name)() for stop in stops]).astype(np.uint32)
                for name in ("red", "green", "blue")
            ]
            self._ramp = (0xFF << 24) | (channels[0] << 16) | (channels[1] << 8) | channels[2]
        return self._ramp

    def _restyle(self) -> None:
        self._ramp = None
        self.update()


def heat_stops() -> list[QColor]:
    """The colours of the ramp, coldest first."""
    theme = current_theme()
    return [theme.color(f"heat_{number}") for number in range(5)]
