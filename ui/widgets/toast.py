"""A short message that floats over the window's foot, with at most one action such as Undo."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtWidgets import QFrame, QGraphicsDropShadowEffect, QHBoxLayout, QLabel, QPushButton, QWidget

from ui.theme import current_theme

SHOWN_MS = 6000
_MARGIN_BOTTOM = 118


class Toast(QFrame):
    """One at a time; a new message takes the old one's place."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("Toast")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._label = QLabel(self)
        self._label.setWordWrap(False)
        self._button = QPushButton(self)
        self._button.setProperty("kind", "toast")
        self._button.setCursor(Qt.CursorShape.PointingHandCursor)
        self._button.clicked.connect(self.act)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(16, 9, 10, 9)
        layout.setSpacing(10)
        layout.addWidget(self._label)
        layout.addWidget(self._button)
        shadow = QGraphicsDropShadowEffect(self)
        shadow.setBlurRadius(24)
        shadow.setOffset(0, 4)
        shadow.setColor(current_theme().color("shadow"))
        self.setGraphicsEffect(shadow)
        self._action: Callable[[], object] | None = None
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self.hide)
        parent.installEventFilter(self)
        self.hide()

    def show_message(self, text: str, action: str = "", on_action: Callable[[], object] | None = None) -> None:
        """Show ``text``; with ``action`` a button that calls ``on_action``."""
        self._label.setText(text if len(text) <= 140 else text[:139] + "…")
        self._button.setText(action)
        self._button.setAccessibleName(action)
        self._button.setVisible(bool(action))
        self._action = on_action
        self.setAccessibleName(text)
        self.adjustSize()
        self._place()
        self.show()
        self.raise_()
        self._timer.start(SHOWN_MS)

    def text(self) -> str:
        return self._label.text()

    def act(self) -> None:
        """Do what the button offers, once, and go."""
        action, self._action = self._action, None
        self.hide()
        if action is not None:
            action()

    def _place(self) -> None:
        parent = self.parentWidget()
        if parent is not None:
            x = (parent.width() - self.width()) // 2
            self.move(max(8, x), max(8, parent.height() - self.height() - current_theme().px(_MARGIN_BOTTOM)))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)
