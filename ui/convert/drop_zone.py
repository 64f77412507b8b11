"""The field onto which a model's folder is dropped, or which opens a dialog when it is pressed."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.theme import current_theme, themed_pixmap


def dropped_path(data: QMimeData) -> Path | None:
    """The one local file or folder that is dragged; None for anything else."""
    urls = data.urls()
    return Path(urls[0].toLocalFile()) if len(urls) == 1 and urls[0].isLocalFile() else None


class DropZone(QWidget):
    """Takes any one file or folder: what it is, is for the examination to say."""

    dropped = Signal(object)  # Path
    folder_requested = Signal()
    file_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAcceptDrops(True)
        self._is_over = False
        self._mark = QLabel(self)
        self._mark.setAlignment(Qt.AlignmentFlag.AlignCenter)
        title = QLabel(self.tr("Drop a model's folder here"), self)
        title.setProperty("tone", "title")
        title.setAlignment(Qt.AlignmentFlag.AlignCenter)
        text = QLabel(
            self.tr(
                "As it is published: safetensors files, config.json and the tokenizer's files. Or a GGUF file, to make "
                "it smaller"
            ),
            self,
        )
        text.setProperty("tone", "muted")
        text.setAlignment(Qt.AlignmentFlag.AlignCenter)
        text.setWordWrap(True)
        self.folder_button = QPushButton(self.tr("Choose a folder…"), self)
        self.folder_button.setProperty("kind", "primary")
        self.folder_button.clicked.connect(self.folder_requested)
        self.file_button = QPushButton(self.tr("Choose a file…"), self)
        self.file_button.clicked.connect(self.file_requested)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.folder_button)
        buttons.addWidget(self.file_button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 26, 24, 26)
        column.setSpacing(8)
        column.addWidget(self._mark)
        column.addWidget(title)
        column.addWidget(text)
        column.addSpacing(8)
        column.addLayout(buttons)
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), current_theme().px(220))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_path(event.mimeData()) is not None:
            event.acceptProposedAction()
            self._set_over(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        super().dragLeaveEvent(event)
        self._set_over(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self._set_over(False)
        path = dropped_path(event.mimeData())
        if path is not None:
            event.acceptProposedAction()
            self.dropped.emit(path)

    def _set_over(self, is_over: bool) -> None:
        self._is_over = is_over
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        pen = QPen(theme.color("accent" if self._is_over else "border_strong"), 1.5, Qt.PenStyle.DashLine)
        pen.setDashPattern([4, 4])
        painter.setPen(pen)
        painter.setBrush(theme.color("accent_soft" if self._is_over else "sunken"))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 14, 14)

    def _restyle(self) -> None:
        size = current_theme().px(34)
        self._mark.setPixmap(themed_pixmap("folder", "accent", size, self.devicePixelRatioF()))
