"""Where each token's time went, as bands on top of each other."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QImage, QPainter, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.performance.bands import SHOWN_BANDS, shown_bands_us
from ui.performance.chart import FOOT, Chart, by_token, round_top
from ui.performance.latency_charts import percentiles
from ui.performance.panel import LivePanel
from ui.performance.step_feed import StepFeed
from ui.theme import current_theme

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_TOKENS = 240
_HEADROOM = 1.35


class StackedBands(Chart):
    """One column a token, as high as it took long."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setAccessibleName(self.tr("Where each token's time went, in milliseconds"))
        self._ms: NDArray[np.float64] | None = None  # (n, n_bands)
        self._top = 1.0  # of the scale
        self.bottom = FOOT

    def set_data(self, bands_ms: NDArray[np.float64]) -> None:
        self._ms = bands_ms
        if len(bands_ms):
            (slow_ms,) = percentiles(bands_ms.sum(1), 95)
            self._top = round_top(max(slow_ms * _HEADROOM, 1e-6))
        self.update()

    def frame_key(self) -> Hashable:
        return None if self._ms is None else self._top

    def paint_frame(self, painter: QPainter, box: QRectF) -> None:
        if self._ms is not None and len(self._ms):
            self.paint_scale(painter, box, self._top, self.tr("ms"))
            self.paint_foot(painter, box, by_token())

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        import numpy as np  # noqa: PLC0415

        if self._ms is None or not len(self._ms):
            return
        theme, top = current_theme(), self._top
        sums = self._ms.cumsum(1)
        scale = painter.device().devicePixelRatioF()
        most, height = max(1, round(box.width() * scale)), max(1, round(box.height() * scale))
        width = min(most, len(sums))  # a column a token is enough: the painter makes it as wide as there is room
        tokens = np.arange(width) * len(sums) // width
        levels = np.round(sums.T * (height / top)).astype(np.int32)[:, tokens]  # (n_bands, width) rows from below
        rows = np.arange(height - 1, -1, -1, dtype=np.int32)[:, None]
        band_of = np.zeros((height, width), np.uint8)
        for level in levels:
            band_of += rows >= level
        colors = [theme.color(band.token).rgba() for band in SHOWN_BANDS] + [0]
        pixels = np.array(colors, np.uint32)[band_of]
        image = QImage(pixels.data, width, height, 4 * width, QImage.Format.Format_ARGB32)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, on=False)
        painter.drawImage(box, image)

    def describe(self, position: QPointF) -> str:
        if self._ms is None or not len(self._ms) or not self.box.contains(position):
            return ""
        n = len(self._ms)
        bands = self._ms[min(n - 1, int((position.x() - self.box.left()) / self.box.width() * n))]
        lines = [
            self.tr("{band}: {ms} ms").format(band=band.name, ms=f"{ms:.2f}")
            for band, ms in zip(SHOWN_BANDS, bands.tolist(), strict=True)
            if ms >= 0.005
        ]
        return "\n".join([self.tr("{ms} ms in all").format(ms=f"{bands.sum():.2f}"), *reversed(lines)])


class BandLegend(Chart):
    """A square of colour, a name and a share for each band, in as many columns as fit."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self.setMouseTracking(False)
        self._shares: list[float] = [0.0] * len(SHOWN_BANDS)
        self._figures: list[str] = []
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        current_theme().changed.connect(self.updateGeometry)

    def set_shares(self, shares: list[float]) -> None:
        """Of all time, each from 0 to 1."""
        before, self._shares = self.shown(), shares
        shown = self.shown()
        figures = [_percent(shares[number]) for number in shown]
        if before != shown:
            self.updateGeometry()
        if before != shown or figures != self._figures:
            self._figures = figures
            pairs = zip(shown, figures, strict=True)
            self.setAccessibleName(", ".join(f"{SHOWN_BANDS[number].name} {figure}" for number, figure in pairs))
            self.update()

    def shown(self) -> list[int]:
        """The places of the bands that are listed: not those that this model does not have."""
        return [
            number for number, band in enumerate(SHOWN_BANDS) if self._shares[number] > 0 or not band.is_of_some_models
        ]

    def minimumSizeHint(self) -> QSize:
        return QSize(current_theme().px(140), self.heightForWidth(max(self.width(), current_theme().px(140))))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._n_columns(event.oldSize().width()) != self._n_columns(event.size().width()):
            self.updateGeometry()  # it needs more lines, or fewer

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        n_rows = -(-len(self.shown()) // self._n_columns(width))
        return n_rows * current_theme().px(18) + current_theme().px(2)

    def sizeHint(self) -> QSize:
        return QSize(300, self.heightForWidth(max(300, self.width())))

    def _n_columns(self, width: int) -> int:
        return max(1, min(5, width // current_theme().px(150)))

    def _places(self) -> list[QRectF]:
        """Where each shown band stands."""
        n_columns, row_height = self._n_columns(self.width()), current_theme().px(18)
        n_shown = len(self.shown())
        n_rows = -(-n_shown // n_columns)
        width = self.width() / n_columns
        return [
            QRectF(column * width, row * row_height, width - current_theme().px(10), row_height)
            for column, row in (divmod(place, n_rows) for place in range(n_shown))
        ]

    def frame_key(self) -> Hashable:
        return tuple(self.shown())

    def paint_frame(self, painter: QPainter, box: QRectF) -> None:
        theme, middle = current_theme(), Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        for number, place in zip(self.shown(), self._places(), strict=True):
            band = SHOWN_BANDS[number]
            mark = QRectF(place.left(), place.center().y() - theme.px(4), theme.px(8), theme.px(8))
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color(band.token))
            painter.drawRoundedRect(mark, 2, 2)
            painter.setPen(theme.color("text_muted"))
            room = place.adjusted(theme.px(14), 0, -theme.px(34), 0)
            name = painter.fontMetrics().elidedText(band.name, Qt.TextElideMode.ElideRight, int(room.width()))
            painter.drawText(room, middle, name)

    def paint_data(self, painter: QPainter, box: QRectF) -> None:
        painter.setPen(current_theme().color("text"))
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        for place, figure in zip(self._places(), self._figures, strict=False):
            painter.drawText(place, right, figure)


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.01 or share == 0 else "< 1 %"


class TimePanel(LivePanel):
    """The bands of the newest tokens, their shares, and what follows from them."""

    def __init__(self, feed: StepFeed, parent: QWidget | None = None) -> None:
        super().__init__(feed, "", parent)
        self.title = self.tr("Where the time went")
        self.setAccessibleName(self.title)
        self.help_text = self.tr(
            "Each column is one token, as high as the milliseconds that it took; the colours say what the processor "
            "did in that time. Mostly experts, feed forward and attention: the model is being computed, and memory or "
            "processor set the pace. Much waiting at barriers: cores wait for each other, so other programs are in the "
            "way or there are too many threads. Waiting for disk: experts are being read, and a larger cache would "
            "help."
        )
        self.most_tokens = _MOST_TOKENS
        self.chart, self.legend = StackedBands(self), BandLegend(self)
        self.column.addWidget(self.chart, 1)
        self.column.addWidget(self.legend)

    def show_steps(self) -> None:
        steps = self.feed.steps
        assert steps is not None
        decoded = steps.is_decode.nonzero()[0]
        bands = shown_bands_us(steps, (decoded if len(decoded) else slice(None)))[-self.most_tokens :]
        self.chart.set_data(bands / 1e3)
        if not self.feed.is_time_for_figures:
            return
        shares = bands.sum(0) / max(bands.sum(), 1e-9)
        self.legend.set_shares(shares.tolist())
        self.summary.setText(self._advice(dict(zip((b.token for b in SHOWN_BANDS), shares.tolist(), strict=True))))

    def _advice(self, share: dict[str, float]) -> str:
        if share["band_disk"] > 0.1:
            return self.tr("Waiting for the disk: a larger expert cache would help.")
        if share["band_waiting"] > 0.3:
            return self.tr("Cores wait for each other: close other programs, or use fewer threads.")
        if share["band_host"] + share["band_sampling"] > 0.4:
            return self.tr("Choosing tokens and turning them into text takes the most: the model itself is quick.")
        if share["band_router"] > 0.4:
            return self.tr("The router takes the most: several answers at once would share it.")
        return self.tr("The model's own work sets the pace: memory or processor are the limit.")
