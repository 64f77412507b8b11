"""The window's foot: model and state, speed, time to the first token, context used."""

from __future__ import annotations

import re

from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from ui import format as fmt
from ui.theme import current_theme
from ui.widgets.elided_label import ElidedLabel
from ui.widgets.meter import Meter

_DIGIT = re.compile("[0-9]")


class StateDot(QWidget):
    """A dot in the colour of the state."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._token = "text_faint"
        current_theme().changed.connect(self.update)

    def set_token(self, token: str) -> None:
        if token != self._token:
            self._token = token
            self.update()

    def sizeHint(self) -> QSize:
        size = current_theme().px(9)
        return QSize(size, size)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.color(self._token))
        size = theme.px(8)
        painter.drawEllipse(QRectF((self.width() - size) / 2, (self.height() - size) / 2 + 0.5, size, size))


class FigureLabel(QLabel):
    """A figure that changes several times a second: nothing is laid out anew while its room is enough.

    Every change of another label's text would have the whole window laid out, all docks with it.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.setFixedWidth(0)

    def setText(self, text: str) -> None:
        """Room grows with the text, and is given back when there is none."""
        if text != self.text():
            self._make_room(text)
            super().setText(text)

    def clear(self) -> None:
        self.setText("")

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.setFixedWidth(0)
            self._make_room(self.text())

    def _make_room(self, text: str) -> None:
        metrics = self.fontMetrics()
        size = QSize(metrics.horizontalAdvance(_DIGIT.sub("0", text)) + 2, metrics.height()) if text else QSize(0, 0)
        if not text or size.width() > self.minimumWidth() or size.height() != self.minimumHeight():
            self.setFixedSize(size.expandedTo(QSize(self.minimumWidth(), 0)) if text else size)


class StatusLine(QWidget):
    """Shows what it is told; figures that are not known take no room."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("StatusLine")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._dot = StateDot(self)
        self._state = ElidedLabel(self)
        self._rate = FigureLabel(self)
        self._ttft = FigureLabel(self)
        self._meter = Meter(self)
        self._context = FigureLabel(self)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 5, 14, 5)
        layout.setSpacing(8)
        layout.addWidget(self._dot)
        layout.addWidget(self._state, 1)
        layout.addWidget(self._rate)
        layout.addSpacing(12)
        layout.addWidget(self._ttft)
        layout.addSpacing(12)
        layout.addWidget(self._meter)
        layout.addWidget(self._context)
        self._meter.setToolTip(self.tr("How much of the context the chat takes up"))
        self.clear_figures()
        self.set_context(0, 0)

    def set_state(self, text: str, token: str) -> None:
        """The model and what it is doing; ``token`` names the dot's colour."""
        self._state.setText(text)
        self._state.setAccessibleName(text)
        self._dot.set_token(token)

    @property
    def state_text(self) -> str:
        return self._state.text()

    def set_rate(self, tokens_per_second: float) -> None:
        self._rate.setText(fmt.rate(tokens_per_second) if tokens_per_second > 0 else "")

    def set_ttft(self, ms: float) -> None:
        """Time to the first token of the newest answer."""
        self._ttft.setText(self.tr("First token {time}").format(time=fmt.duration(ms)) if ms > 0 else "")

    def clear_figures(self) -> None:
        self._rate.clear()
        self._ttft.clear()

    def set_context(self, n_used: int, n_total: int) -> None:
        """Tokens of the context in use, of all there are; 0 of 0 when no model is there."""
        self._meter.setVisible(n_total > 0)
        self._context.setVisible(n_total > 0)
        if n_total > 0:
            self._meter.set_fraction(n_used / n_total)
            text = self.tr("Context {used} / {total}").format(used=fmt.count(n_used), total=fmt.count(n_total))
            self._context.setText(text)
            self._meter.setAccessibleName(text)

    @property
    def text(self) -> str:
        """All figures, for tests and for copying."""
        return "  ".join(
            label.text() for label in (self._rate, self._ttft, self._context) if label.text() and not label.isHidden()
        )
