"""A box that says one thing inside a page: a fact, a warning, an error; its text can be selected and copied."""

from __future__ import annotations

from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from ui.theme import current_theme, themed_pixmap
from ui.widgets.icon_button import IconButton

Kind = Literal["info", "ok", "warning", "danger"]
_LOOKS = {
    "info": ("Notice", "bulb", "accent"),
    "ok": ("Notice", "check", "ok"),
    "warning": ("WarningBox", "warning", "warning"),
    "danger": ("ErrorBox", "warning", "danger"),
}


class InlineNotice(QFrame):
    """Hidden while there is nothing to say."""

    def __init__(self, parent: QWidget | None = None, *, copyable: bool = False) -> None:
        super().__init__(parent)
        self._kind: Kind = "info"
        self._icon = QLabel(self)
        self._title = QLabel(self)
        self._title.setProperty("tone", "strong")
        self._title.setWordWrap(True)
        self._text = QLabel(self)
        self._text.setWordWrap(True)
        self._text.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        texts = QVBoxLayout()
        texts.setSpacing(4)
        texts.addWidget(self._title)
        texts.addWidget(self._text)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 11, 12, 11)
        layout.setSpacing(12)
        layout.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(texts, 1)
        self._copy = IconButton("copy", self.tr("Copy the whole message"), self)
        self._copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._text.text()))
        self._copy.setVisible(copyable)
        layout.addWidget(self._copy, 0, Qt.AlignmentFlag.AlignTop)
        current_theme().changed.connect(self._restyle)
        self.hide()

    def say(self, kind: Kind, text: str, title: str = "") -> None:
        """Show a text; "" hides the box."""
        self._kind = kind
        self._title.setText(title)
        self._title.setVisible(bool(title))
        self._text.setText(text)
        self.setAccessibleName(f"{title} {text}".strip())
        self._restyle()
        self.setVisible(bool(text or title))

    @property
    def text(self) -> str:
        return self._text.text()

    def _restyle(self) -> None:
        name, icon, token = _LOOKS[self._kind]
        if self.objectName() != name:
            self.setObjectName(name)
            self.style().unpolish(self)
            self.style().polish(self)
        self._icon.setPixmap(themed_pixmap(icon, token, current_theme().px(20), self.devicePixelRatioF()))
