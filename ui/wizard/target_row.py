"""Where a file shall go: a path that can be typed or chosen, the room on its disk, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app import target_errors
from ui import format as fmt


class TargetRow(QWidget):
    """`changed` when the path is another one; `is_own` once it was typed or chosen and is no longer proposed."""

    changed = Signal()
    requested = Signal(str)  # a dialog, with the present path

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.is_own = False
        self.field = QLineEdit(self)
        self.field.setAccessibleName(self.tr("Save as"))
        self.field.textEdited.connect(lambda _text: self._set_own())
        self.field.textChanged.connect(lambda _text: self.changed.emit())
        self.browse = QPushButton(self.tr("Choose…"), self)
        self.browse.setAccessibleName(self.tr("Choose where to save"))
        self.browse.clicked.connect(lambda: self.requested.emit(self.field.text()))
        self._room = QLabel(self)
        self._room.setProperty("tone", "small")
        self._room.setWordWrap(True)
        line = QHBoxLayout()
        line.addWidget(self.field, 1)
        line.addWidget(self.browse)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(line)
        column.addWidget(self._room)

    def _set_own(self) -> None:
        self.is_own = True

    def propose(self, target: Path) -> None:
        """Another path, unless the user has given one."""
        if not self.is_own:
            self.field.setText(str(target))

    def choose(self, target: Path) -> None:
        """The user's own."""
        self.is_own = True
        self.field.setText(str(target))

    @property
    def path(self) -> Path:
        return Path(self.field.text().strip()).expanduser()

    @property
    def free_bytes(self) -> int:
        return target_errors.free_bytes(self.path)

    def problem(self, n_bytes: int | None, needed_bytes: int) -> str:
        """What is wrong with the path, "" if nothing is; shows the room for `n_bytes` (None: not known yet)."""
        free = fmt.size(self.free_bytes)
        if n_bytes is None:
            self._room.setText(self.tr("{free} free on this disk").format(free=free))
        else:
            text = self.tr("{needed} are written; {free} free on this disk")
            self._room.setText(text.format(needed=fmt.size(n_bytes), free=free))
        path = self.path
        problem = ""
        if not self.field.text().strip():
            problem = self.tr("Name the file to write.")
        elif not path.is_absolute():
            problem = self.tr("Give the whole path of the file, from the root on.")
        elif path.is_dir():
            problem = self.tr("This is a folder. Name the file to write in it, too.")
        elif path.exists():
            problem = self.tr("This file is there already. Choose another name.")
        elif n_bytes is not None and needed_bytes > self.free_bytes:
            problem = self.tr(
                "The disk has {free} free, and {needed} are needed. Free some, choose a smaller kind, or save to "
                "another disk."
            ).format(free=free, needed=fmt.size(needed_bytes))
        return problem
