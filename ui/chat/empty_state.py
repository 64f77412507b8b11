"""What a new chat shows: a greeting, the model's state, and a few things to ask."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from ui.theme import current_theme, themed_icon, themed_pixmap


class EmptyState(QWidget):
    """A click on a suggestion asks it."""

    suggested = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._mark = QLabel(self)
        self._mark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._mark.setAccessibleName("Colibri")
        title = QLabel(self.tr("What shall we talk about?"), self)
        title.setProperty("tone", "hero")
        title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._state = QLabel(self)
        self._state.setProperty("tone", "muted")
        self._state.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._state.setWordWrap(True)
        self._cards: list[tuple[QPushButton, str]] = []
        grid = QGridLayout()
        grid.setSpacing(10)
        for number, (icon, text) in enumerate(self._suggestions()):
            card = QPushButton(text, self)
            card.setProperty("kind", "card")
            card.setAccessibleName(text)
            card.setCursor(Qt.CursorShape.PointingHandCursor)
            card.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            card.clicked.connect(lambda _checked=False, text=text: self.suggested.emit(text))
            self._cards.append((card, icon))
            grid.addWidget(card, number // 2, number % 2)
        self._column = QWidget(self)
        column = QVBoxLayout(self._column)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(10)
        column.addWidget(self._mark)
        column.addSpacing(2)
        column.addWidget(title)
        column.addWidget(self._state)
        column.addSpacing(22)
        column.addLayout(grid)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(28, 20, 28, 20)
        layout.addStretch(5)
        layout.addWidget(self._column, 0, Qt.AlignmentFlag.AlignHCenter)
        layout.addStretch(6)
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def set_state(self, text: str) -> None:
        """One line on the model."""
        self._state.setText(text)

    @property
    def state_text(self) -> str:
        return self._state.text()

    def _suggestions(self) -> list[tuple[str, str]]:
        return [
            ("bulb", self.tr("Explain why the sky is blue")),
            ("pen", self.tr("Write a poem about a hummingbird")),
            ("code", self.tr("Reverse a list in Python")),
            ("globe", self.tr("What is the capital of France?")),
        ]

    def _restyle(self) -> None:
        theme = current_theme()
        size = theme.px(58)
        self._mark.setPixmap(themed_pixmap("colibri", "accent", size, self.devicePixelRatioF()))
        icon_size = theme.px(18)
        for card, icon in self._cards:
            card.setIcon(themed_icon(icon, "accent", icon_size))
            card.setIconSize(QSize(icon_size, icon_size))
        self._column.setFixedWidth(theme.px(620))
