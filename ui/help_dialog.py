"""The help page: every shortcut at a glance."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QGridLayout, QLabel, QVBoxLayout, QWidget


class HelpDialog(QDialog):
    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Help"))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(26, 22, 26, 24)
        layout.setSpacing(14)
        title = QLabel(self.tr("Keyboard"), self)
        title.setProperty("tone", "section")
        layout.addWidget(title)
        grid = QGridLayout()
        grid.setHorizontalSpacing(28)
        grid.setVerticalSpacing(8)
        shortcuts = self.shortcuts()
        n_rows = (len(shortcuts) + 1) // 2
        for number, (keys, text) in enumerate(shortcuts):
            row, column = number % n_rows, number // n_rows * 2
            key = QLabel(keys, self)
            key.setProperty("tone", "key")
            key.setAlignment(Qt.AlignmentFlag.AlignCenter)
            grid.addWidget(key, row, column, Qt.AlignmentFlag.AlignLeft)
            grid.addWidget(QLabel(text, self), row, column + 1)
        layout.addLayout(grid)
        note = QLabel(
            self.tr(
                "Everything stays on this machine: chats, models and what you type. "
                "A link is opened in your browser only when you click it."
            ),
            self,
        )
        note.setProperty("tone", "muted")
        note.setWordWrap(True)
        layout.addSpacing(6)
        layout.addWidget(note)

    def shortcuts(self) -> list[tuple[str, str]]:
        """Keys and what they do."""
        return [
            ("Enter", self.tr("Send the message")),
            ("Shift+Enter", self.tr("Start a new line")),
            ("Esc", self.tr("Stop the answer")),
            ("↑", self.tr("Edit the last message, in an empty field")),
            ("Ctrl+N", self.tr("New chat")),
            ("Ctrl+F", self.tr("Search chats")),
            ("Ctrl+L", self.tr("Go to the message field")),
            ("Ctrl+R", self.tr("Regenerate the last answer")),
            ("Ctrl+M", self.tr("Choose a model")),
            ("Ctrl+Shift+C", self.tr("Copy the last answer")),
            ("F2 / Del", self.tr("Rename or delete, in the chat list")),
            ("Ctrl+B", self.tr("Show or hide the chat list")),
            ("Ctrl+E", self.tr("Show or hide the experts")),
            ("Ctrl+1 … 6", self.tr("Show or hide latency, time, cache, memory, bandwidth, cores")),
            ("Ctrl++ / Ctrl+−", self.tr("Larger or smaller text")),
            ("Ctrl+Shift+D", self.tr("System check")),
            ("Ctrl+,", self.tr("Settings")),
            ("F1", self.tr("This help")),
        ]
