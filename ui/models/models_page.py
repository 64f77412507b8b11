"""The model manager: all models of this machine to the left, the selected one in full to the right."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.library import ModelEntry
from app.settings import SettingsFile
from ui import format as fmt
from ui.carve.carving_task import CarvingTask
from ui.models.model_inspector import ModelInspector
from ui.models.model_list import ListedModel, ModelList
from ui.models.model_loader import LoadState, ModelLoader
from ui.models.model_view import ModelView
from ui.models.place_names import place_name
from ui.theme import current_theme, themed_icon, themed_pixmap
from ui.widgets.icon_button import IconButton
from ui.widgets.page_header import PageHeader


class EmptyModels(QWidget):
    """There is no model yet, or none that is looked for."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._mark = QLabel(self)
        self.title = QLabel(self)
        self.title.setProperty("tone", "title")
        self.text = QLabel(self)
        self.text.setProperty("tone", "muted")
        self.add_folder = QPushButton(self.tr("Add a folder…"), self)
        self.convert = QPushButton(self.tr("Convert a model…"), self)
        column = QVBoxLayout(self)
        column.addStretch(1)
        for label in (self._mark, self.title, self.text):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            label.setWordWrap(True)
            column.addWidget(label)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(self.add_folder)
        row.addWidget(self.convert)
        row.addStretch(1)
        column.addSpacing(8)
        column.addLayout(row)
        column.addStretch(1)
        size = current_theme().px(34)
        self._mark.setPixmap(themed_pixmap("model", "text_faint", size, self.devicePixelRatioF()))


class ModelsPage(QWidget):
    """Asks; what is done is done by the window and its loader."""

    chat_requested = Signal(object)  # Path
    load_requested = Signal(object)
    unload_requested = Signal()
    reveal_requested = Signal(object)
    delete_requested = Signal(object)  # ModelEntry
    folder_requested = Signal()
    convert_requested = Signal()
    refresh_requested = Signal()
    carve_requested = Signal(object)  # Path
    carving_shown = Signal()  # the page of the carving that is under way

    def __init__(
        self, loader: ModelLoader, settings: SettingsFile, carving: CarvingTask, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("Page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._loader, self._settings, self._carving = loader, settings, carving
        self.inspector = ModelInspector(loader.engine_config)
        self.inspector.setParent(self)
        self._context_length = settings.settings.context_length
        self._build()
        self._connect()
        self.refresh()

    def _build(self) -> None:
        header = PageHeader(self.tr("Models"), self)
        self.look_again = IconButton("regenerate", self.tr("Look for models again"), self)
        self.add_folder = IconButton("folder", self.tr("Add a folder of models…"), self)
        header.add(self.look_again)
        header.add(self.add_folder)
        self.filter = QLineEdit(self)
        self.filter.setProperty("kind", "search")
        self.filter.setPlaceholderText(self.tr("Search models"))
        self.filter.setAccessibleName(self.tr("Search models"))
        self._filter_icon = self.filter.addAction(
            themed_icon("search", "text_faint", 16), QLineEdit.ActionPosition.LeadingPosition
        )
        self.list = ModelList(self)
        self._count = QLabel(self)
        self._count.setProperty("tone", "faint")
        left = QWidget(self)
        column = QVBoxLayout(left)
        column.setContentsMargins(12, 12, 12, 8)
        column.setSpacing(8)
        column.addWidget(self.filter)
        column.addWidget(self.list, 1)
        column.addWidget(self._count)
        self.view = ModelView(self.inspector, self._carving, self)
        self.empty = EmptyModels(self)
        self._stack = QStackedWidget(self)
        self._stack.addWidget(self.view)
        self._stack.addWidget(self.empty)
        splitter = QSplitter(Qt.Orientation.Horizontal, self)
        splitter.setHandleWidth(1)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(left)
        splitter.addWidget(self._stack)
        splitter.setStretchFactor(1, 1)
        left.setMinimumWidth(170)
        self._stack.setMinimumWidth(240)
        splitter.setSizes([current_theme().px(250), 10_000])
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(header)
        layout.addWidget(splitter, 1)
        current_theme().changed.connect(self._restyle)

    def _connect(self) -> None:
        view = self.view
        self.list.selected.connect(self._on_selected)
        self.list.activated_path.connect(self.chat_requested)
        self.list.delete_pressed.connect(self._ask_delete)
        self.filter.textChanged.connect(lambda _text: self.refresh())
        self.look_again.clicked.connect(self.refresh_requested)
        self.add_folder.clicked.connect(self.folder_requested)
        self.empty.add_folder.clicked.connect(self.folder_requested)
        self.empty.convert.clicked.connect(self.convert_requested)
        view.chat_requested.connect(lambda: self.chat_requested.emit(self.list.path))
        view.load_requested.connect(lambda: self.load_requested.emit(self.list.path))
        view.unload_requested.connect(self.unload_requested)
        view.reveal_requested.connect(lambda: self.reveal_requested.emit(self.list.path))
        view.delete_requested.connect(self._ask_delete)
        view.default_requested.connect(self._on_default)
        view.carve_requested.connect(lambda: self.carve_requested.emit(self.list.path))
        view.top_k_chosen.connect(self._on_top_k)
        view.demonstration.chat_requested.connect(self.chat_requested)
        view.demonstration.details_requested.connect(self.carving_shown)
        self._loader.changed.connect(self.refresh)
        self._settings.on_change(lambda _settings: self._later.start())
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._on_settings)
        find = QShortcut(QKeySequence.StandardKey.Find, self, context=Qt.ShortcutContext.WidgetWithChildrenShortcut)
        find.activated.connect(lambda: self.filter.setFocus(Qt.FocusReason.ShortcutFocusReason))

    def refresh(self) -> None:
        """Show the library as it is now."""
        loader, default = self._loader, self._settings.settings.default_model
        entries = loader.library.entries if loader.library is not None else []
        wanted = self.filter.text().casefold().split()
        shown = [entry for entry in entries if all(word in _searched(entry) for word in wanted)]
        loaded = loader.path if loader.state is LoadState.READY else None
        self.list.set_models(
            [
                ListedModel(
                    entry.path,
                    entry.name,
                    _facts(entry),
                    is_loaded=entry.path == loaded,
                    is_default=str(entry.path) == default,
                    has_problem=bool(entry.problem),
                )
                for entry in shown
            ]
        )
        total = fmt.size(sum(entry.file_bytes for entry in shown))
        text = self.tr("1 model, {size}") if len(shown) == 1 else self.tr("{n} models, {size}")
        self._count.setText(text.format(n=fmt.count(len(shown)), size=total))
        self._stack.setCurrentWidget(self.view if shown else self.empty)
        self.empty.title.setText(self.tr("Nothing found") if entries else self.tr("No models yet"))
        self.empty.text.setText(
            self.tr("No model has all of these words in its name, kind or place.")
            if entries
            else self.tr("Add a folder with GGUF files, or convert a published model.")
        )
        self._show_selected()

    def leave(self) -> None:
        """The program ends."""
        self.inspector.leave()

    def _on_selected(self, path: Path | None) -> None:
        self.inspector.select(path)
        self._show_selected()

    def _show_selected(self) -> None:
        loader, path = self._loader, self.list.path
        entry = loader.library.find(path) if loader.library is not None and path is not None else None
        is_loaded = path is not None and loader.state is LoadState.READY and path == loader.path
        wanted = self._settings.settings.experts_per_token.get(str(path))
        self.view.show_entry(
            entry,
            is_loaded=is_loaded,
            is_loading=path is not None and loader.state is LoadState.LOADING and path == loader.path,
            is_default=path is not None and str(path) == self._settings.settings.default_model,
            top_ks=(wanted, loader.top_k if is_loaded else None),
        )

    def _ask_delete(self) -> None:
        if self.view.entry is not None:
            self.delete_requested.emit(self.view.entry)

    def _on_default(self, is_wanted: bool) -> None:
        self._settings.change(default_model=str(self.list.path) if is_wanted else "")

    def _on_top_k(self, top_k: int | None) -> None:
        kept = {path: k for path, k in self._settings.settings.experts_per_token.items() if path != str(self.list.path)}
        self._settings.change(experts_per_token=kept if top_k is None else {**kept, str(self.list.path): top_k})

    def _on_settings(self) -> None:
        if self._settings.settings.context_length != self._context_length:
            self._context_length = self._settings.settings.context_length
            self.inspector.look()
        self.refresh()

    def _restyle(self) -> None:
        self._filter_icon.setIcon(themed_icon("search", "text_faint", 16))

    def sizeHint(self) -> QSize:
        return QSize(current_theme().px(900), current_theme().px(640))


def _facts(entry: ModelEntry) -> str:
    parts = (entry.type_name, fmt.size(entry.file_bytes), place_name(entry.place))
    return "  ·  ".join(part for part in parts if part)


def _searched(entry: ModelEntry) -> str:
    return f"{entry.name} {entry.path} {entry.architecture} {entry.type_name} {place_name(entry.place)}".casefold()
