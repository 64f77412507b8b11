"""The kinds of file to choose from, each with its size and whether it will run on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from ui import format as fmt
from ui.theme import current_theme

if TYPE_CHECKING:
    from app.conversion_plan import Outlook
    from app.file_types import FileType


class TypeCard(QPushButton):
    """One kind: its name, what it is good for, size, memory."""

    def __init__(self, key: str, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.key, self._name = key, name
        self.setProperty("kind", "choice")
        self.setCheckable(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._title = QLabel(name, self)
        self._title.setProperty("tone", "strong")
        self._badge = QLabel(self.tr("Recommended"), self)
        self._badge.setProperty("tone", "badge")
        self._badge.hide()
        self._hint = QLabel(self)
        self._hint.setProperty("tone", "small")
        self._size = QLabel(self)
        self._size.setProperty("tone", "strong")
        self._fit = QLabel(self)
        self._fit.setProperty("tone", "small")
        for label in (self._size, self._fit):
            label.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        for label in (self._title, self._badge, self._hint, self._size, self._fit):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        first = QHBoxLayout()
        first.setSpacing(8)
        first.addWidget(self._title)
        first.addWidget(self._badge)
        first.addStretch(1)
        first.addWidget(self._size)
        second = QHBoxLayout()
        second.setSpacing(8)
        second.addWidget(self._hint)
        second.addStretch(1)
        second.addWidget(self._fit)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 9, 14, 9)
        column.setSpacing(2)
        column.addLayout(first)
        column.addLayout(second)

    def sizeHint(self) -> QSize:
        layout = self.layout()
        return layout.sizeHint() if layout is not None else super().sizeHint()

    def minimumSizeHint(self) -> QSize:
        return QSize(current_theme().px(200), self.sizeHint().height())

    def show_outlook(self, outlook: Outlook | None, hint: str, *, is_recommended: bool) -> None:
        """`outlook` None: it is still being computed."""
        self._badge.setVisible(is_recommended)
        if outlook is None:
            self._size.setText("…")
            fit, tone = self.tr("Calculating…"), "small"
        else:
            self._size.setText(fmt.size(outlook.n_bytes))
            bits = self.tr("{bits} bits per weight").format(bits=fmt.decimal(outlook.bits_per_weight))
            hint = f"{hint}  ·  {bits}" if hint else bits
            fit, tone = self._fit_text(outlook)
        self._hint.setText(hint)
        self._fit.setText(fit)
        self._fit.setToolTip(outlook.problem if outlook is not None else "")
        if self._fit.property("tone") != tone:
            self._fit.setProperty("tone", tone)
            self._fit.style().unpolish(self._fit)
            self._fit.style().polish(self._fit)
        badge = self._badge.text() if is_recommended else ""
        self.setAccessibleName(" ".join(part for part in (self._name, badge, self._size.text(), hint, fit) if part))

    @property
    def fit_text(self) -> str:
        return self._fit.text()

    @property
    def is_recommended(self) -> bool:
        return not self._badge.isHidden()

    def _fit_text(self, outlook: Outlook) -> tuple[str, str]:
        fit = outlook.memory
        if fit is None:
            return self.tr("Colibri cannot run this kind yet"), "small-warning"
        needed = fmt.size(fit.plan.total_bytes)
        if fit.fits:
            return self.tr("Runs in {needed} of memory").format(needed=needed), "small"
        text = self.tr("Needs {needed} of memory, {available} are free")
        return text.format(needed=needed, available=fmt.size(fit.available_bytes)), "small-warning"


class TypeChoice(QWidget):
    """Arrow keys move between the cards."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Kind of file"))
        self._group = QButtonGroup(self)
        self._cards: dict[str, TypeCard] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)

    def set_kinds(self, kinds: tuple[FileType, ...]) -> None:
        """Make a card for each kind; nothing happens if they are there already."""
        if list(self._cards) == [kind.key for kind in kinds]:
            return
        for old in self._cards.values():
            self._group.removeButton(old)
            self._column.removeWidget(old)
            old.hide()
            old.deleteLater()
        self._cards = {kind.key: TypeCard(kind.key, kind.name, self) for kind in kinds}
        for card in self._cards.values():
            self._group.addButton(card)
            self._column.addWidget(card)
            card.toggled.connect(lambda is_on, key=card.key: self.chosen.emit(key) if is_on else None)

    def show_outlooks(self, outlooks: dict[str, Outlook], recommended: str | None, source_key: str) -> None:
        for key, card in self._cards.items():
            card.show_outlook(
                outlooks.get(key), self._hint(key, is_source=key == source_key), is_recommended=key == recommended
            )

    def choose(self, key: str) -> None:
        if key in self._cards:
            self._cards[key].setChecked(True)

    @property
    def key(self) -> str | None:
        """The kind that is chosen."""
        return next((key for key, card in self._cards.items() if card.isChecked()), None)

    @property
    def cards(self) -> dict[str, TypeCard]:
        return dict(self._cards)

    def _hint(self, key: str, *, is_source: bool) -> str:
        if is_source:
            return self.tr("As published, nothing is lost")
        return {
            "f32": self.tr("The full width, for comparisons"),
            "f16": self.tr("Half width, finer steps but a smaller range"),
            "bf16": self.tr("Half width, with the full range"),
            "q8_0": self.tr("Hardly to be told from the original"),
            "q6_k": self.tr("Very close to the original"),
            "q5_k_m": self.tr("Close to the original"),
            "q4_k_m": self.tr("The usual balance of size and quality"),
            "q4_k_s": self.tr("Smaller, a little less exact"),
            "iq4_xs": self.tr("The smallest that is still good"),
            "q4_0": self.tr("Simple and fast, less exact"),
            "mxfp4": self.tr("Four bits for the experts"),
        }.get(key, "")
