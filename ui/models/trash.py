"""Moves a model's files to the desktop's trash, and back. Call these from a thread: another disk may be slow."""

from __future__ import annotations

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QFile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Trashed:
    """One file: where it was, and where in the trash it is."""

    path: Path
    in_trash: Path


def move_to_trash(paths: list[Path]) -> list[Trashed] | None:
    """Move all files; None if that cannot be done (no trash on this disk), and then all are where they were."""
    moved: list[Trashed] = []
    for path in paths:
        file = QFile(str(path))
        if not file.moveToTrash() or file.fileName() in {"", str(path)}:
            log.warning("%s cannot be moved to the trash", path)
            restore(moved)
            return None
        moved.append(Trashed(path, Path(file.fileName())))
    return moved


def restore(files: list[Trashed]) -> None:
    """Put files back where they were. Raises OSError, FileExistsError if something else is there by now."""
    for file in files:
        if file.path.exists():
            raise FileExistsError(17, "another file is there by now", str(file.path))
        file.path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(file.in_trash, file.path)
        info = file.in_trash.parent.parent / "info" / f"{file.in_trash.name}.trashinfo"
        info.unlink(missing_ok=True)


def delete(paths: list[Path]) -> None:
    """Delete files for good. Raises OSError."""
    for path in paths:
        path.unlink()
