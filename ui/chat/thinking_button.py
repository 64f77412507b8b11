"""The button that says how long the model is to think before it answers, for models that can be told."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from ui.theme import current_theme, themed_icon

_ICON_SIZE = 15


class ThinkingButton(QPushButton):
    """Turns thinking on and off, or opens a menu of efforts; hidden while the model has no such setting."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._choices: tuple[str, ...] = ()
        self._current = ""
        self.setProperty("kind", "thinking")
        self.setCheckable(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.clicked.connect(self._on_click)
        self.hide()
        current_theme().changed.connect(self._show)

    def set_choices(self, choices: Sequence[str], current: str) -> None:
        """What the model knows, from `Thinking.choices`, and which of it is in force; none hides the button."""
        self._choices, self._current = tuple(choices), current
        self._show()
        self.setVisible(bool(choices))

    @property
    def current(self) -> str:
        """The choice that is shown."""
        return self._current

    @property
    def is_switch(self) -> bool:
        """Whether there are only on and off."""
        return set(self._choices) == {"on", "off"}

    def menu_of_efforts(self) -> QMenu:
        """The choices, the one in force marked."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for choice in self._choices:
            action = QAction(self._effort(choice), menu)
            action.setCheckable(True)
            action.setChecked(choice == self._current)
            action.triggered.connect(lambda _checked=False, choice=choice: self.chosen.emit(choice))
            menu.addAction(action)
        return menu

    def _on_click(self) -> None:
        self.setChecked(self._is_lit)  # what is shown follows from the settings, not from the click
        if self.is_switch:
            self.chosen.emit("off" if self._current == "on" else "on")
        elif self._choices:
            menu = self.menu_of_efforts()
            menu.popup(self.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    @property
    def _is_lit(self) -> bool:
        return self._current not in {"off", ""}

    def _effort(self, choice: str) -> str:
        texts = {"low": self.tr("Think briefly"), "medium": self.tr("Think"), "high": self.tr("Think long")}
        return texts.get(choice, choice)

    def _show(self) -> None:
        if self.is_switch:
            is_on = self._current == "on"
            text = self.tr("Think")
            tip = self.tr("The model thinks before it answers") if is_on else self.tr("The model answers at once")
        else:
            text = self._effort(self._current) if self._current else self.tr("Think")
            tip = self.tr("How long the model thinks before it answers")
        self.setText(text)
        self.setToolTip(tip)
        self.setAccessibleName(text)
        self.setAccessibleDescription(tip)
        self.setChecked(self._is_lit)
        size = current_theme().px(_ICON_SIZE)
        self.setIconSize(QSize(size, size))
        self.setIcon(themed_icon("bulb", "accent" if self._is_lit else "text_muted", size))
        self.setFixedHeight(current_theme().px(34))
