"""The button over the conversation that names the model, shows its loading, and opens the list of models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QPushButton, QWidget

from ui import format as fmt
from ui.theme import current_theme, themed_icon, themed_pixmap
from ui.widgets.icon_button import IconButton


@dataclass(frozen=True, slots=True)
class ShownModel:
    """One model of the list."""

    path: Path
    name: str
    file_bytes: int = 0
    type_name: str = ""
    is_starter: bool = False
    comparison: str = ""  # with what it was converted from
    problem: str = ""  # why it cannot be opened, if that is known


class PickerButton(QPushButton):
    """The name, a chevron, and while loading a line that fills underneath."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setProperty("kind", "picker")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.fraction: float | None = None
        self.is_loading = False

    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        return QSize(hint.width() + current_theme().px(22), hint.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        theme = current_theme()
        painter = QPainter(self)
        size = theme.px(14)
        chevron = themed_pixmap("chevron-down", "text_muted", size, self.devicePixelRatioF())
        painter.drawPixmap(self.width() - size - 9, (self.height() - size) // 2 + 1, chevron)
        if self.is_loading:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            track = QRectF(10, self.height() - 3, self.width() - 20, 2)
            painter.setBrush(theme.color("pressed"))
            painter.drawRoundedRect(track, 1, 1)
            track.setWidth(track.width() * (self.fraction or 0.0))
            painter.setBrush(theme.color("accent"))
            painter.drawRoundedRect(track, 1, 1)


class ModelPicker(QWidget):
    """Asks to load, cancel, unload; the truth is the engine service's."""

    chosen = Signal(object)  # Path
    opened_file = Signal()
    opened_folder = Signal()
    unload_requested = Signal()
    cancel_requested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._models: list[ShownModel] = []
        self._loaded: Path | None = None
        self._loading: Path | None = None
        self.button = PickerButton(self)
        self.button.clicked.connect(self.open_menu)
        self.cancel_button = IconButton("close", self.tr("Cancel loading"), self, size=24, icon_size=14)
        self.cancel_button.clicked.connect(self.cancel_requested)
        self.cancel_button.hide()
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(2)
        layout.addWidget(self.button)
        layout.addWidget(self.cancel_button)
        self.show_none()

    def set_models(self, models: list[ShownModel]) -> None:
        """The models that can be chosen."""
        self._models = models

    def show_none(self) -> None:
        self._show(self.tr("Choose a model"), loaded=None, loading=None)

    def show_loaded(self, path: Path, name: str, type_name: str) -> None:
        self._show(f"{name}  ·  {type_name}" if type_name else name, loaded=path, loading=None)

    def show_loading(self, path: Path, name: str, fraction: float | None) -> None:
        """Show that a model is on its way; ``fraction`` 0 to 1, None if unknown."""
        percent = "" if fraction is None else f" {round(fraction * 100)} %"
        self.button.fraction = fraction
        self._show(self.tr("Loading {name}").format(name=name) + percent, loaded=None, loading=path)

    def _show(self, text: str, *, loaded: Path | None, loading: Path | None) -> None:
        self._loaded, self._loading = loaded, loading
        self.button.is_loading = loading is not None
        self.cancel_button.setVisible(loading is not None)
        if self.button.text() != text:
            self.button.setText(text)
            self.button.setAccessibleName(self.tr("Model: {name}").format(name=text))
        self.button.update()

    def menu(self) -> QMenu:
        """The list of models, with what can be done besides."""
        menu = QMenu(self)
        menu.setToolTipsVisible(True)
        for model in self._models:
            facts = [part for part in (model.type_name, fmt.size(model.file_bytes) if model.file_bytes else "") if part]
            if model.is_starter:
                facts.append(self.tr("starter"))
            if model.path == self._loaded:
                facts.append(self.tr("loaded"))
            elif model.path == self._loading:
                facts.append(self.tr("loading"))
            action = menu.addAction(f"{model.name}\t{' · '.join(facts)}")
            is_current = model.path in {self._loaded, self._loading}
            action.setIcon(themed_icon("check" if is_current else "model", "accent" if is_current else "text_faint"))
            action.setToolTip(model.problem or "\n".join(filter(None, (str(model.path), model.comparison))))
            action.setEnabled(not model.problem)
            action.triggered.connect(lambda _checked=False, path=model.path: self.chosen.emit(path))
        if self._models:
            menu.addSeparator()
        menu.addAction(themed_icon("folder"), self.tr("Open a model file…"), self.opened_file.emit)
        menu.addAction(themed_icon("search"), self.tr("Add a folder of models…"), self.opened_folder.emit)
        unload = menu.addAction(themed_icon("close"), self.tr("Unload the model"), self.unload_requested.emit)
        unload.setEnabled(self._loaded is not None)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return menu

    def open_menu(self) -> None:
        self.menu().popup(self.button.mapToGlobal(self.button.rect().bottomLeft()))
