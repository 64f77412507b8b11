"""Colours, type and icons: the one place that knows how Colibri looks."""

from ui.theme.icons import themed_icon, themed_pixmap
from ui.theme.theme import Theme, current_theme

__all__ = ["Theme", "current_theme", "themed_icon", "themed_pixmap"]
