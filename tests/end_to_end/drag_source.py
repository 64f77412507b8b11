"""A window from which a file or folder is dragged, as from a file manager: python drag_source.py X Y PATH."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QDrag, QMouseEvent
from PySide6.QtWidgets import QApplication, QLabel

SIZE = 100


class DragSource(QLabel):
    """A press begins to drag."""

    def __init__(self, path: Path) -> None:
        super().__init__(path.name, None, Qt.WindowType.X11BypassWindowManagerHint)
        self._path = path
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.resize(SIZE, SIZE)

    def mousePressEvent(self, _event: QMouseEvent) -> None:
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(self._path))])
        drag = QDrag(self)
        drag.setMimeData(data)
        drag.exec(Qt.DropAction.CopyAction)


def main() -> int:
    app = QApplication(sys.argv[:1])
    source = DragSource(Path(sys.argv[3]))
    source.move(int(sys.argv[1]), int(sys.argv[2]))
    source.show()
    sys.stdout.write("shown\n")
    sys.stdout.flush()
    return app.exec()


if __name__ == "__main__":
    raise SystemExit(main())
