"""A wrapped text that changes several times a second without anything around it being laid out or painted anew."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from ui.theme import current_theme

_SIZE, _LINE_ROOM = 12, 1  # at the base text size
_WRAPPED = Qt.TextFlag.TextWordWrap | Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop


class SteadyLabel(QWidget):
    """Keeps room for the most lines that its text has had at this width, so that what is below it stands still."""

    def __init__(self, parent: QWidget | None = None, *, ground: str = "window") -> None:
        """`ground`: the token of the colour behind the text."""
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._ground, self._text, self._n_lines = ground, "", 1
        current_theme().changed.connect(self._forget_room)

    def text(self) -> str:
        return self._text

    def setText(self, text: str) -> None:
        """Show another text; named as QLabel's, in whose place it stands."""
        if text == self._text:
            return
        self._text = text
        self.setAccessibleName(text)
        self._make_room()
        self.update()

    def sizeHint(self) -> QSize:
        theme = current_theme()
        return QSize(theme.px(200), self._n_lines * self._metrics().lineSpacing() + theme.px(2 * _LINE_ROOM))

    def minimumSizeHint(self) -> QSize:
        return QSize(current_theme().px(80), self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._forget_room()

    def _metrics(self) -> QFontMetrics:
        return QFontMetrics(current_theme().font(_SIZE))

    def _make_room(self) -> None:
        metrics = self._metrics()
        wrapped = metrics.boundingRect(QRect(0, 0, max(1, self.width()), 1 << 16), int(_WRAPPED), self._text)
        n_lines = max(1, round(wrapped.height() / metrics.lineSpacing()))
        if n_lines > self._n_lines:
            self._n_lines = n_lines
            self.updateGeometry()

    def _forget_room(self) -> None:
        before, self._n_lines = self._n_lines, 1
        self._make_room()
        if self._n_lines < before:
            self.updateGeometry()
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color(self._ground))
        painter.setFont(theme.font(_SIZE))
        painter.setPen(theme.color("text_muted"))
        painter.drawText(self.rect().adjusted(0, theme.px(_LINE_ROOM), 0, 0), int(_WRAPPED), self._text)
