"""A tool button with a line icon that follows the theme."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QToolButton, QWidget

from ui.theme import current_theme, themed_icon


class IconButton(QToolButton):
    """Shows one of our icons; ``label`` is both the tool tip and the accessible name."""

    def __init__(
        self,
        icon: str,
        label: str,
        parent: QWidget | None = None,
        *,
        size: int = 30,
        icon_size: int = 17,
        kind: str = "icon",
        token: str = "text_muted",
    ) -> None:
        super().__init__(parent)
        self._icon_name, self._token = icon, token
        self._size, self._icon_size = size, icon_size
        self.setProperty("kind", kind)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.set_label(label)
        self._restyle()
        current_theme().changed.connect(self._restyle)

    def set_label(self, label: str) -> None:
        self.setToolTip(label)
        self.setAccessibleName(label)

    def set_icon(self, icon: str, token: str | None = None) -> None:
        """Show another icon, in another colour if ``token`` is given."""
        wanted = (icon, token or self._token)
        if wanted != (self._icon_name, self._token):
            self._icon_name, self._token = wanted
            self._restyle()

    def _restyle(self) -> None:
        theme = current_theme()
        size, icon_size = theme.px(self._size), theme.px(self._icon_size)
        self.setFixedSize(size, size)
        self.setIconSize(QSize(icon_size, icon_size))
        self.setIcon(themed_icon(self._icon_name, self._token, icon_size))
