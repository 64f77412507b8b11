"""Files and folders are asked for in dialogs that hand over what is chosen and then are gone."""

from __future__ import annotations

from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from ui.widgets.file_dialogs import ask_file, ask_folder, ask_new_file


def test_what_is_chosen_is_handed_over(qtbot: QtBot) -> None:
    parent, chosen = QWidget(), list[str]()
    qtbot.addWidget(parent)
    ask_file(parent, "A file", ["Models (*.gguf)"], chosen.append)
    ask_folder(parent, "A folder", chosen.append)
    ask_new_file(parent, "A new file", "mine", "gguf", chosen.append, ["Models (*.gguf)"])
    file, folder, new = parent.findChildren(QFileDialog)

    for name, dialog in (("a", file), ("b", folder), ("c", new)):
        dialog.fileSelected.emit(name)

    assert chosen == ["a", "b", "c"]
    assert file.fileMode() is QFileDialog.FileMode.ExistingFile
    assert folder.fileMode() is QFileDialog.FileMode.Directory
    assert (new.acceptMode(), new.defaultSuffix()) == (QFileDialog.AcceptMode.AcceptSave, "gguf")
    assert file.nameFilters() == new.nameFilters() == ["Models (*.gguf)"]


def test_a_dialog_is_gone_when_it_is_closed(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    ask_folder(parent, "A folder", print)

    parent.findChildren(QFileDialog)[0].close()

    qtbot.waitUntil(lambda: not parent.findChildren(QFileDialog))
