"""The list of models: name, kind, size and whose it is; the loaded and the default one are marked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt, Signal
from PySide6.QtGui import QFont, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QFrame,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from ui.theme import current_theme, themed_pixmap

_ROW = 54
_ROLE = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One row."""

    path: Path
    name: str
    facts: str
    is_loaded: bool = False
    is_default: bool = False
    has_problem: bool = False


class _Delegate(QStyledItemDelegate):
    def sizeHint(self, _option: QStyleOptionViewItem, _index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(80, current_theme().px(_ROW))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        theme = current_theme()
        model: ListedModel = index.data(_ROLE)
        view = self.parent()
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        rect = option.rect.adjusted(0, 1, 0, -1)
        state = option.state
        is_selected = bool(state & QStyle.StateFlag.State_Selected)
        is_hovered = bool(state & QStyle.StateFlag.State_MouseOver)
        if is_selected or is_hovered:
            painter.setPen(Qt.PenStyle.NoPen)
            if is_selected and isinstance(view, QWidget) and view.hasFocus():
                painter.setPen(theme.color("accent"))
            painter.setBrush(theme.color("selected" if is_selected else "hover"))
            painter.drawRoundedRect(rect.adjusted(1, 0, -1, 0), 8, 8)
        self._paint_texts(painter, rect, model)
        painter.restore()

    def _paint_texts(self, painter: QPainter, rect: QRect, model: ListedModel) -> None:
        theme = current_theme()
        size, left = theme.px(18), theme.px(12)
        icon, token = ("warning", "danger") if model.has_problem else ("model", "text_faint")
        if model.is_loaded:
            icon, token = "check", "ok"
        ratio = painter.device().devicePixelRatio()
        painter.drawPixmap(rect.left() + left, rect.center().y() - size // 2, themed_pixmap(icon, token, size, ratio))
        x = rect.left() + left + size + theme.px(10)
        right = rect.right() - theme.px(10)
        half = rect.height() // 2
        if model.is_default:
            pin = theme.px(14)
            painter.drawPixmap(right - pin, rect.top() + half - pin, themed_pixmap("pin", "text_muted", pin, ratio))
            name_right = right - pin - 6
        else:
            name_right = right
        for text, weight, px, token, top, end in (
            (model.name, QFont.Weight.Medium, 14, "text", rect.top(), name_right),
            (model.facts, QFont.Weight.Normal, 12, "text_muted", rect.top() + half, right),
        ):
            painter.setFont(theme.font(px, weight))
            painter.setPen(theme.color(token))
            align = Qt.AlignmentFlag.AlignLeft | (
                Qt.AlignmentFlag.AlignBottom if top == rect.top() else Qt.AlignmentFlag.AlignTop
            )
            box = QRect(x, top, max(0, end - x), half)
            shown = painter.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, box.width())
            painter.drawText(box, int(align), shown)


class ModelList(QListWidget):
    """Delete asks to delete, Enter to chat."""

    selected = Signal(object)  # Path or None
    delete_pressed = Signal()
    activated_path = Signal(object)  # Path

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._shown: list[ListedModel] = []
        self._is_filling = False
        self.setItemDelegate(_Delegate(self))
        self.setMouseTracking(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollMode(QListWidget.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(self.tr("Models"))
        self.currentItemChanged.connect(lambda *_items: self._on_current())
        self.itemActivated.connect(lambda item: self.activated_path.emit(item.data(_ROLE).path))
        current_theme().changed.connect(self.doItemsLayout)

    def set_models(self, models: list[ListedModel]) -> None:
        """Fill the list; the selection stays on its model, or goes to the loaded or default one."""
        if models == self._shown:
            return
        selected = self.path
        self._is_filling = True
        self.clear()
        self._shown = models
        for model in models:
            item = QListWidgetItem(f"{model.name}, {model.facts}")
            item.setData(_ROLE, model)
            item.setToolTip(str(model.path))
            self.addItem(item)
        paths = [model.path for model in models]
        best = min(
            models, key=lambda model: (model.has_problem, not model.is_loaded, not model.is_default), default=None
        )
        for wanted in (selected, best.path if best is not None else None):
            if wanted in paths:
                self.setCurrentRow(paths.index(wanted))
                break
        self._is_filling = False
        self._on_current()

    @property
    def path(self) -> Path | None:
        """The model that is selected."""
        row = self.currentRow()
        return self._shown[row].path if 0 <= row < len(self._shown) else None

    @property
    def models(self) -> list[ListedModel]:
        return list(self._shown)

    def select(self, path: Path) -> None:
        for row, model in enumerate(self._shown):
            if model.path == path:
                self.setCurrentRow(row)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete and self.path is not None:
            self.delete_pressed.emit()
        else:
            super().keyPressEvent(event)

    def _on_current(self) -> None:
        if not self._is_filling:
            self.selected.emit(self.path)
