"""The window's menus and shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu

from app.settings import Settings
from ui.management import CONVERT, MODELS
from ui.navigation import CHAT

if TYPE_CHECKING:
    from ui.main_window import MainWindow


class WindowActions(QObject):
    """Made once for a window; each action is a few words and a call."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._themes: dict[str, QAction] = {}
        self._chat_menu()
        self._model_menu()
        self._view_menu()
        self._help_menu()
        self._on_busy(False)
        window.page.busy_changed.connect(self._on_busy)

    def _menu(self, title: str) -> QMenu:
        return self._window.menuBar().addMenu(title)

    def _add(self, menu: QMenu, text: str, keys: str | list[str], act: Callable[[], object]) -> QAction:
        action = QAction(text, self._window)
        sequences = [keys] if isinstance(keys, str) else keys
        action.setShortcuts([QKeySequence(key) for key in sequences if key])
        action.triggered.connect(lambda _checked=False: self._window.try_(act))
        menu.addAction(action)
        return action

    def _chat_menu(self) -> None:
        window = self._window
        menu = self._menu(self.tr("&Chat"))
        self._add(menu, self.tr("New chat"), "Ctrl+N", window.new_chat)
        self._add(menu, self.tr("Search chats"), "Ctrl+F", self._search)
        self._add(menu, self.tr("Go to the message field"), "Ctrl+L", self._focus_composer)
        menu.addSeparator()
        self._regenerate = self._add(menu, self.tr("Regenerate answer"), "Ctrl+R", window.page.regenerate_last)
        self._edit = self._add(menu, self.tr("Edit last message"), "", window.page.edit_last)
        self._stop = self._add(menu, self.tr("Stop answer"), "Esc", window.page.stop)
        self._add(menu, self.tr("Copy last answer"), "Ctrl+Shift+C", window.copy_last_answer)
        menu.addSeparator()
        self._add(menu, self.tr("Settings…"), "Ctrl+,", window.show_settings).setMenuRole(
            QAction.MenuRole.PreferencesRole
        )
        self._add(menu, self.tr("Quit"), "Ctrl+Q", window.close).setMenuRole(QAction.MenuRole.QuitRole)

    def _model_menu(self) -> None:
        window = self._window
        menu = self._menu(self.tr("&Model"))
        self._add(menu, self.tr("Choose a model…"), "Ctrl+M", window.page.picker.open_menu)
        self._add(menu, self.tr("Open a model file…"), "Ctrl+O", window.choose_model_file)
        self._add(menu, self.tr("Add a folder of models…"), "", window.choose_model_folder)
        menu.addSeparator()
        self._add(menu, self.tr("Manage models"), "Ctrl+Shift+M", self._manage)
        self._add(menu, self.tr("Convert a model…"), "Ctrl+Shift+K", self._convert)
        self._add(menu, self.tr("Unload the model"), "", window.loader.unload)

    def _view_menu(self) -> None:
        window = self._window
        menu = self._menu(self.tr("&View"))
        sidebar = self._add(menu, self.tr("Chat list"), "Ctrl+B", self._toggle_sidebar)
        sidebar.setCheckable(True)
        sidebar.setChecked(True)
        for action in window.docks.actions:
            menu.addAction(action)
        menu.addSeparator()
        group = QActionGroup(self)
        for mode, text in (
            ("system", self.tr("Theme as the system")),
            ("light", self.tr("Light theme")),
            ("dark", self.tr("Dark theme")),
        ):
            action = self._add(menu, text, "", partial(window.services.settings.change, theme=mode))
            action.setCheckable(True)
            group.addAction(action)
            self._themes[mode] = action
        self.show_settings(window.services.settings.settings)
        menu.addSeparator()
        self._add(menu, self.tr("Larger text"), ["Ctrl++", "Ctrl+="], lambda: window.change_font_size(1))
        self._add(menu, self.tr("Smaller text"), "Ctrl+-", lambda: window.change_font_size(-1))
        self._add(menu, self.tr("Normal text"), "Ctrl+0", lambda: window.change_font_size(0))
        menu.addSeparator()
        self._add(menu, self.tr("Full screen"), "F11", self._toggle_full_screen)

    def _help_menu(self) -> None:
        menu = self._menu(self.tr("&Help"))
        self._add(menu, self.tr("Help and shortcuts"), "F1", self._window.show_help)
        self._add(menu, self.tr("System check"), "Ctrl+Shift+D", self._window.show_system_check)

    def show_settings(self, settings: Settings) -> None:
        """Check the theme in force."""
        action = self._themes.get(settings.theme)
        if action is not None:
            action.setChecked(True)

    def _on_busy(self, is_busy: bool) -> None:
        self._stop.setEnabled(is_busy)
        self._regenerate.setEnabled(not is_busy)
        self._edit.setEnabled(not is_busy)

    def _search(self) -> None:
        self._window.sidebar.show()
        self._window.sidebar.focus_search()

    def _focus_composer(self) -> None:
        self._window.pages.show_page(CHAT)
        self._window.page.composer.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def _manage(self) -> None:
        self._window.pages.show_page(MODELS)

    def _convert(self) -> None:
        self._window.pages.show_page(CONVERT)

    def _toggle_sidebar(self) -> None:
        self._window.sidebar.setVisible(self._window.sidebar.isHidden())

    def _toggle_full_screen(self) -> None:
        window = self._window
        if window.isFullScreen():
            window.showNormal()
        else:
            window.showFullScreen()
