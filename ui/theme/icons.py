"""Draws the line icons of resources/icons in the theme's colours, sharp at any scale."""

from __future__ import annotations

from functools import cache, lru_cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QGuiApplication, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from ui.resources import resource_path
from ui.theme.theme import current_theme


def _scales() -> list[float]:
    """The scales in use on this desktop, and a large one for what may come."""
    screens = {screen.devicePixelRatio() for screen in QGuiApplication.screens()}
    return sorted(screens | {2.0})


@cache
def _source(name: str) -> str:
    return resource_path("icons", f"{name}.svg").read_text(encoding="utf-8")


@lru_cache(maxsize=512)
def _render(name: str, rgb: str, size: int, scale: float) -> QPixmap:
    pixmap = QPixmap(round(size * scale), round(size * scale))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    renderer = QSvgRenderer(QByteArray(_source(name).replace("currentColor", rgb).encode()))
    renderer.render(painter, QRectF(pixmap.rect()))
    painter.end()
    pixmap.setDevicePixelRatio(scale)
    return pixmap


def themed_pixmap(name: str, token: str, size: int, scale: float) -> QPixmap:
    """One icon as a pixmap of ``size`` logical pixels for a screen of the given scale."""
    return _render(name, current_theme().color(token).name(), size, scale)


def themed_icon(name: str, token: str = "text_muted", size: int = 18, *, disabled: str = "text_faint") -> QIcon:
    """One icon in a theme colour; ask again when the theme has changed."""
    icon = QIcon()
    theme = current_theme()
    scales = _scales()
    for mode, color in ((QIcon.Mode.Normal, theme.color(token)), (QIcon.Mode.Disabled, theme.color(disabled))):
        for scale in scales:
            icon.addPixmap(_render(name, QColor(color).name(), size, scale), mode)
    return icon
