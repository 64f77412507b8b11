"""A bar above the composer that says what a start is waiting for, how far it is, and what went wrong."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from ui import format as fmt
from ui.theme import current_theme, themed_pixmap
from ui.widgets.icon_button import IconButton

_STEPS = 1000


class LoadNotice(QFrame):
    """Hidden while there is nothing to say."""

    cancelled = Signal()
    retried = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._whole_text = ""
        self._icon = QLabel(self)
        self._title = QLabel(self)
        self._title.setWordWrap(True)
        self._detail = QLabel(self)
        self._detail.setProperty("tone", "small")
        self._bar = QProgressBar(self)
        self._bar.setTextVisible(False)
        self._bar.setRange(0, _STEPS)
        self.button = QPushButton(self)
        self.button.clicked.connect(self._on_button)
        self._copy = IconButton("copy", self.tr("Copy the whole message"), self)
        self._copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._whole_text))
        texts = QHBoxLayout()
        texts.setSpacing(12)
        texts.addWidget(self._title, 1)
        texts.addWidget(self._detail)
        column = QVBoxLayout()
        column.setSpacing(8)
        column.addLayout(texts)
        column.addWidget(self._bar)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(14, 11, 12, 11)
        layout.setSpacing(12)
        layout.addWidget(self._icon)
        layout.addLayout(column, 1)
        layout.addWidget(self._copy)
        layout.addWidget(self.button)
        self._is_error = False
        self._copy.hide()
        self.hide()

    def show_progress(self, title: str, fraction: float | None, detail: str = "") -> None:
        """Show work under way; ``fraction`` None means that its length is not known."""
        self._set_kind(is_error=False)
        self._title.setText(title)
        self._title.setToolTip("")
        self._copy.hide()
        self._detail.setText(detail)
        self._detail.setVisible(bool(detail))
        self._bar.setRange(0, 0 if fraction is None else _STEPS)
        self._bar.setValue(0 if fraction is None else round(fraction * _STEPS))
        self._bar.show()
        self.button.setText(self.tr("Cancel"))
        self.button.setAccessibleName(self.tr("Cancel"))
        self.setAccessibleName(f"{title} {detail}")
        self.show()

    def show_error(self, text: str) -> None:
        """Show why there is no model, and offer to try again."""
        self._set_kind(is_error=True)
        self._title.setText(fmt.brief(text))
        self._title.setToolTip(text)
        self._whole_text = text
        self._copy.setVisible(fmt.brief(text) != text)
        self._detail.hide()
        self._bar.hide()
        self.button.setText(self.tr("Try again"))
        self.button.setAccessibleName(self.tr("Try again"))
        self.setAccessibleName(text)
        self.show()

    @property
    def text(self) -> str:
        return self._title.text()

    def _set_kind(self, *, is_error: bool) -> None:
        self._is_error = is_error
        name = "ErrorBox" if is_error else "Notice"
        if self.objectName() != name:
            self.setObjectName(name)
            self.style().unpolish(self)
            self.style().polish(self)
        size = current_theme().px(20)
        icon, token = ("warning", "danger") if is_error else ("model", "accent")
        self._icon.setPixmap(themed_pixmap(icon, token, size, self.devicePixelRatioF()))

    def _on_button(self) -> None:
        if self._is_error:
            self.retried.emit()
        else:
            self.cancelled.emit()

    def sizeHint(self) -> QSize:
        return QSize(400, super().sizeHint().height())
