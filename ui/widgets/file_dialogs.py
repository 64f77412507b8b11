"""Asks for a file or a folder without stopping the window: what is chosen comes by a call, later or never."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QWidget

Chosen = Callable[[str], object]


def ask_file(parent: QWidget, title: str, filters: Sequence[str], chosen: Chosen) -> None:
    """Ask for a file that exists; `filters`: as QFileDialog wants them."""
    dialog = QFileDialog(parent, title)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setNameFilters(filters)
    _open(dialog, chosen)


def ask_folder(parent: QWidget, title: str, chosen: Chosen) -> None:
    dialog = QFileDialog(parent, title)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    _open(dialog, chosen)


def ask_new_file(
    parent: QWidget, title: str, present: str, suffix: str, chosen: Chosen, filters: Sequence[str] = ()
) -> None:
    """Ask where a file shall be written; `present`: the name to begin with, `suffix`: what a name without one gets."""
    dialog = QFileDialog(parent, title)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(suffix)
    if filters:
        dialog.setNameFilters(filters)
    dialog.selectFile(present)
    _open(dialog, chosen)


def _open(dialog: QFileDialog, chosen: Chosen) -> None:
    dialog.fileSelected.connect(chosen)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()
