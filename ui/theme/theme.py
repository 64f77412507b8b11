"""The theme: named colours for light and dark, the text size, and the style sheet made from both."""

from __future__ import annotations

import json
import logging
import re
from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from ui.resources import resource_path
from ui.theme import fonts

log = logging.getLogger(__name__)

Mode = Literal["system", "light", "dark"]
BASE_FONT_SIZE_PX = 14
MIN_FONT_SIZE_PX, MAX_FONT_SIZE_PX = 10, 24

_PLACEHOLDER = re.compile(r"@px\((\d+)\)|@([a-z_0-9]+)")


def usual_font_size_px() -> int:
    """The height of normal text for whoever has chosen none: ours, or the desktop's where that is larger."""
    system_px = QFontInfo(QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)).pixelSize()
    return max(BASE_FONT_SIZE_PX, min(MAX_FONT_SIZE_PX, system_px))


class Theme(QObject):
    """Holds the colours in force; emits ``changed`` after the whole application has been restyled."""

    changed = Signal()

    def __init__(self, mode: Mode = "system", font_size_px: int = BASE_FONT_SIZE_PX) -> None:
        super().__init__()
        self._mode: Mode = mode
        self._font_size_px = font_size_px
        self._tokens: dict[str, str] = {}
        self._colors: dict[str, QColor] = {}
        self.is_dark = False
        self._load()
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._on_system_scheme)

    @property
    def mode(self) -> Mode:
        return self._mode

    @property
    def font_size_px(self) -> int:
        return self._font_size_px

    def set_mode(self, mode: Mode) -> None:
        """Follow the system, or stay light or dark."""
        if mode != self._mode:
            self._mode = mode
            self._apply_if_dark_changed()

    def set_font_size(self, size_px: int) -> None:
        """Set the height of normal text; everything else grows with it."""
        size_px = max(MIN_FONT_SIZE_PX, min(MAX_FONT_SIZE_PX, size_px))
        if size_px != self._font_size_px:
            self._font_size_px = size_px
            self.apply()

    def color(self, token: str) -> QColor:
        """The colour of a token, e.g. ``color("accent")``."""
        return self._colors[token]

    def px(self, size: float) -> int:
        """A length designed at the base text size, scaled to the chosen one."""
        return round(size * self._font_size_px / BASE_FONT_SIZE_PX)

    def font(self, size: float = BASE_FONT_SIZE_PX, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        """The text font at a size designed at the base text size."""
        return fonts.text_font(self.px(size), weight)

    def code_font(self, size: float = 13) -> QFont:
        """The code font at a size designed at the base text size."""
        return fonts.code_font(self.px(size))

    def apply(self) -> None:
        """Restyle the application and tell whoever paints by hand."""
        self._load()
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.setPalette(self._palette())
            app.setFont(self.font())
            app.setStyleSheet(self._style_sheet())
        self.changed.emit()

    def _on_system_scheme(self, _scheme: Qt.ColorScheme) -> None:
        self._apply_if_dark_changed()

    def _apply_if_dark_changed(self) -> None:
        if self._wants_dark() != self.is_dark:
            self.apply()

    def _wants_dark(self) -> bool:
        scheme = QGuiApplication.styleHints().colorScheme()
        return self._mode == "dark" or (self._mode == "system" and scheme == Qt.ColorScheme.Dark)

    def _load(self) -> None:
        self.is_dark = self._wants_dark()
        name = "dark" if self.is_dark else "light"
        self._tokens = json.loads(resource_path("themes", f"{name}.json").read_text(encoding="utf-8"))
        self._colors = {token: QColor(value) for token, value in self._tokens.items()}

    def _style_sheet(self) -> str:
        template = resource_path("themes", "style.qss").read_text(encoding="utf-8")

        def fill(match: re.Match[str]) -> str:
            size, token = match.groups()
            return f"{self.px(int(size))}px" if size else self._tokens[token]

        return _PLACEHOLDER.sub(fill, template)

    def _palette(self) -> QPalette:
        palette = QPalette()
        role = QPalette.ColorRole
        for color_role, token in (
            (role.Window, "window"),
            (role.WindowText, "text"),
            (role.Base, "surface"),
            (role.AlternateBase, "sunken"),
            (role.Text, "text"),
            (role.Button, "raised"),
            (role.ButtonText, "text"),
            (role.BrightText, "danger"),
            (role.ToolTipBase, "toast"),
            (role.ToolTipText, "toast_text"),
            (role.PlaceholderText, "text_faint"),
            (role.Highlight, "selection"),
            (role.HighlightedText, "selection_text"),
            (role.Accent, "accent"),
            (role.Link, "link"),
            (role.LinkVisited, "link"),
            (role.Light, "raised"),
            (role.Midlight, "hover"),
            (role.Mid, "border"),
            (role.Dark, "border_strong"),
            (role.Shadow, "border_strong"),
        ):
            palette.setColor(color_role, self.color(token))
        for color_role in (role.WindowText, role.Text, role.ButtonText):
            palette.setColor(QPalette.ColorGroup.Disabled, color_role, self.color("text_faint"))
        return palette


class _Holder:
    theme: Theme | None = None


def current_theme() -> Theme:
    """The application's one theme, made on first use."""
    if _Holder.theme is None:
        _Holder.theme = Theme()
    return _Holder.theme


def forget_theme() -> None:
    """Drop the theme, so that a new QApplication gets a fresh one."""
    _Holder.theme = None
