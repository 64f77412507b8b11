"""The settings: appearance, engine, sampling, folders; each takes effect at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSignalBlocker, QSize, Qt
from PySide6.QtWidgets import (
    QDialog,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.settings import SamplingSettings, SettingsFile
from ui.settings.recommendation import recommendation
from ui.theme.theme import MAX_FONT_SIZE_PX, MIN_FONT_SIZE_PX, usual_font_size_px
from ui.translation import LANGUAGES
from ui.widgets.combo_box import ComboBox
from ui.widgets.file_dialogs import ask_folder
from ui.widgets.number_field import DecimalField, IntegerField

if TYPE_CHECKING:
    from engine import ModelInfo

_CONTEXT_LENGTHS = (1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)


class SettingsDialog(QDialog):
    """Writes straight into the settings file's object; there is nothing to confirm."""

    def __init__(
        self, settings: SettingsFile, n_cores: int, parent: QWidget | None = None, *, model: ModelInfo | None = None
    ) -> None:
        """`model`: the one that is open, whose recommended sampling is shown."""
        super().__init__(parent)
        self._settings = settings
        self._model = model
        self._n_cores = n_cores
        self.setWindowTitle(self.tr("Settings"))
        page = QWidget(self)
        page.setObjectName("DialogPage")
        page.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._column = QVBoxLayout(page)
        self._column.setContentsMargins(28, 22, 28, 26)
        self._column.setSpacing(12)
        self._appearance()
        self._engine()
        self._sampling()
        self._folders()
        self._column.addStretch(1)
        scroll = QScrollArea(self)
        scroll.setWidgetResizable(True)
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(scroll)
        self.resize(self.sizeHint())

    def sizeHint(self) -> QSize:
        return QSize(560, 640)

    def _section(self, title: str) -> QFormLayout:
        if self._column.count():
            self._column.addSpacing(10)
        label = QLabel(title, self)
        label.setProperty("tone", "section")
        self._column.addWidget(label)
        form = QFormLayout()
        form.setHorizontalSpacing(24)
        form.setVerticalSpacing(10)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._column.addLayout(form)
        return form

    def _row(self, form: QFormLayout, title: str, field: QWidget, hint: str = "") -> None:
        field.setAccessibleName(title)
        label = QLabel(title, self)
        label.setMinimumWidth(170)
        if hint:
            box = QVBoxLayout()
            box.setSpacing(3)
            note = QLabel(hint, self)
            note.setProperty("tone", "faint")
            note.setWordWrap(True)
            box.addWidget(field)
            box.addWidget(note)
            form.addRow(label, box)
        else:
            form.addRow(label, field)

    def _choice(self, values: list[tuple[Any, str]], current: object, on_chosen: Callable[[Any], object]) -> ComboBox:
        combo = ComboBox(self)
        for value, text in values:
            combo.addItem(text, value)
        index = next((number for number, (value, _) in enumerate(values) if value == current), 0)
        combo.setCurrentIndex(index)
        combo.activated.connect(lambda number: on_chosen(values[number][0]))
        return combo

    def _appearance(self) -> None:
        settings = self._settings.settings
        form = self._section(self.tr("Appearance"))
        themes = [
            ("system", self.tr("As the system")),
            ("light", self.tr("Light")),
            ("dark", self.tr("Dark")),
        ]
        self.theme = self._choice(themes, settings.theme, lambda value: self._settings.change(theme=value))
        self._row(form, self.tr("Theme"), self.theme)
        size = settings.font_size or usual_font_size_px()
        self.font_size = IntegerField(MIN_FONT_SIZE_PX, MAX_FONT_SIZE_PX, size, self)
        self.font_size.setSuffix(" px")
        self.font_size.valueChanged.connect(lambda value: self._settings.change(font_size=value))
        self._row(form, self.tr("Text size"), self.font_size)
        languages = [("system", self.tr("As the system")), *LANGUAGES.items()]
        self.language = self._choice(languages, settings.language, lambda value: self._settings.change(language=value))
        self._row(form, self.tr("Language"), self.language, self.tr("Takes effect at the next start"))

    def _engine(self) -> None:
        settings = self._settings.settings
        form = self._section(self.tr("Engine"))
        threads: list[tuple[int | None, str]] = [(None, self.tr("Automatic: physical cores"))]
        threads += [(number, str(number)) for number in range(1, self._n_cores + 1)]
        self.threads = self._choice(threads, settings.threads, lambda value: self._settings.change(threads=value))
        self._row(form, self.tr("Threads"), self.threads)
        lengths = sorted({*_CONTEXT_LENGTHS, settings.context_length})
        contexts = [(length, self.tr("{n} tokens").format(n=self.locale().toString(length))) for length in lengths]
        self.context = self._choice(
            contexts, settings.context_length, lambda value: self._settings.change(context_length=value)
        )
        hint = self.tr("Takes effect when a model is loaded; longer needs more memory")
        self._row(form, self.tr("Context length"), self.context, hint)

    def _sampling(self) -> None:
        form = self._section(self.tr("Answers"))
        sampling = self._settings.settings.sampling
        values = sampling.resolved(self._recommended())
        note = QLabel(recommendation(self._model), self)
        note.setProperty("tone", "small")
        note.setWordWrap(True)
        form.addRow(note)
        rows: list[tuple[str, str, float, float, float]] = [
            ("temperature", self.tr("Temperature"), 0.0, 2.0, 0.05),
            ("top_p", self.tr("Top p"), 0.0, 1.0, 0.01),
            ("min_p", self.tr("Min p"), 0.0, 1.0, 0.01),
            ("repetition_penalty", self.tr("Repetition penalty"), 1.0, 2.0, 0.01),
        ]
        top_k = IntegerField(0, 1000, values["top_k"], self)
        top_k.setSpecialValueText(self.tr("Off"))
        top_k.valueChanged.connect(lambda value: self._change_sampling(top_k=value))
        for name, title, low, high, step in rows:
            field = DecimalField(low, high, values[name], step, self)
            field.valueChanged.connect(lambda value, name=name: self._change_sampling(**{name: round(value, 2)}))
            self._row(form, title, field)
            setattr(self, name, field)
        self._row(form, self.tr("Top k"), top_k)
        self.top_k = top_k
        self.recommended = QPushButton(self.tr("Use what is recommended"), self)
        self.recommended.setToolTip(self.tr("Forget these five values; each model is asked as is best for it"))
        self.recommended.setEnabled(not sampling.is_untouched)
        self.recommended.clicked.connect(self._use_recommended)
        form.addRow("", self.recommended)
        limit = IntegerField(0, 1_000_000, sampling.max_tokens or 0, self)
        limit.setSingleStep(128)
        limit.setSpecialValueText(self.tr("As far as the context goes"))
        limit.valueChanged.connect(lambda value: self._change_sampling(max_tokens=value or None))
        self._row(form, self.tr("Longest answer, tokens"), limit)
        self.max_tokens = limit

    def _change_sampling(self, **changes: Any) -> None:
        sampling: SamplingSettings = replace(self._settings.settings.sampling, **changes)
        self._settings.change(sampling=sampling)
        self.recommended.setEnabled(not sampling.is_untouched)

    def _recommended(self) -> Mapping[str, float] | None:
        return None if self._model is None or self._model.sampling is None else self._model.sampling.values

    def _use_recommended(self) -> None:
        """The user's own choices are forgotten, and the fields show what counts now."""
        values = SamplingSettings().resolved(self._recommended())
        for name in ("temperature", "top_p", "min_p", "repetition_penalty", "top_k"):
            field = getattr(self, name)
            with QSignalBlocker(field):
                field.setValue(values[name])
        self._settings.change(sampling=self._settings.settings.sampling.untouched())
        self.recommended.setEnabled(False)

    def _folders(self) -> None:
        self._section(self.tr("Model folders"))
        note = QLabel(self.tr("GGUF files in these folders are offered in the model list."), self)
        note.setProperty("tone", "muted")
        self._column.addWidget(note)
        self.folders = QListWidget(self)
        self.folders.setAccessibleName(self.tr("Model folders"))
        self.folders.addItems(list(self._settings.settings.model_folders))
        self.folders.setFixedHeight(96)
        self.folders.setProperty("kind", "boxed")
        self._column.addWidget(self.folders)
        add = QPushButton(self.tr("Add a folder…"), self)
        add.clicked.connect(self._add_folder)
        remove = QPushButton(self.tr("Remove"), self)
        remove.clicked.connect(self._remove_folder)
        buttons = QHBoxLayout()
        buttons.addWidget(add)
        buttons.addWidget(remove)
        buttons.addStretch(1)
        self._column.addLayout(buttons)

    def _add_folder(self) -> None:
        ask_folder(self, self.tr("Add a folder of models"), self.add_folder)

    def add_folder(self, folder: str) -> None:
        """Offer the models of one more folder."""
        folders = self._settings.settings.model_folders
        if folder and folder not in folders:
            self.folders.addItem(folder)
            self._settings.change(model_folders=(*folders, folder))

    def _remove_folder(self) -> None:
        item = self.folders.takeItem(self.folders.currentRow())
        if item is not None:
            folders = tuple(name for name in self._settings.settings.model_folders if name != item.text())
            self._settings.change(model_folders=folders)
