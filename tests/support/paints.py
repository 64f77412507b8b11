"""Counts how often widgets are drawn: what a view costs, on any machine."""

from __future__ import annotations

from collections import Counter

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget


class PaintCounter(QObject):
    """While it is used as a context, counts the paint events of each widget by its class."""

    def __init__(self) -> None:
        super().__init__()
        self.by_class: Counter[str] = Counter()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint and isinstance(watched, QWidget):
            self.by_class[type(watched).__name__] += 1
        return False

    def __enter__(self) -> PaintCounter:
        QApplication.sendPostedEvents()
        QApplication.processEvents()
        self._application().installEventFilter(self)
        return self

    def __exit__(self, *_error: object) -> None:
        self._application().removeEventFilter(self)

    @staticmethod
    def _application() -> QApplication:
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        return application
