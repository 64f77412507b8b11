"""The kinds of file to choose from, each with its size and whether it will run on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.speed_forecast import is_most
from ui import format as fmt
from ui.theme import current_theme, themed_icon
from ui.widgets.elided_label import ElidedLabel

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
        self._hint = ElidedLabel(self)
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
        second.addWidget(self._hint, 1)
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
            text = self.tr("Runs in {needed} of memory").format(needed=needed)
            if outlook.tokens_per_second:
                text += "  ·  " + self._speed(outlook.tokens_per_second)
            return text, "small"
        text = self.tr("Needs {needed} of memory, {available} are free")
        return text.format(needed=needed, available=fmt.size(fit.available_bytes)), "small-warning"

    def _speed(self, tokens_per_second: float) -> str:
        text = self.tr("{rate} or more") if is_most(tokens_per_second) else self.tr("about {rate}")
        return text.format(rate=fmt.rough_rate(tokens_per_second))


class TypeChoice(QWidget):
    """Shows the recommended kind, and all others when they are asked for. Arrow keys move between the cards."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Kind of file"))
        self._group = QButtonGroup(self)
        self._kinds: tuple[FileType, ...] = ()
        self._cards: dict[str, TypeCard] = {}  # made when they are first shown
        self._shown: tuple[dict[str, Outlook], str | None, str] = ({}, None, "")
        self.toggle = QPushButton(self)
        self.toggle.setProperty("kind", "reasoning")
        self.toggle.setCheckable(True)
        self.toggle.setCursor(Qt.CursorShape.PointingHandCursor)
        self.toggle.toggled.connect(lambda _is_open: self._arrange())
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(6)
        self._column.addWidget(self.toggle, 0, Qt.AlignmentFlag.AlignLeft)
        current_theme().changed.connect(self._restyle)

    def set_kinds(self, kinds: tuple[FileType, ...]) -> None:
        """The kinds to choose from; nothing happens if they are known already."""
        if kinds == self._kinds:
            return
        for old in self._cards.values():
            self._group.removeButton(old)
            self._column.removeWidget(old)
            old.hide()
            old.deleteLater()
        self._kinds, self._cards = kinds, {}
        self._arrange()

    def show_outlooks(self, outlooks: dict[str, Outlook], recommended: str | None, source_key: str) -> None:
        """What is known of the kinds by now; `source_key`: the one that is nearest to the source."""
        self._shown = (dict(outlooks), recommended, source_key)
        for card in self._cards.values():
            self._show_outlook(card)
        self._arrange()

    def choose(self, key: str) -> None:
        if key in {kind.key for kind in self._kinds}:
            self._card(key).setChecked(True)
            self._arrange()

    @property
    def key(self) -> str | None:
        """The kind that is chosen."""
        return next((key for key, card in self._cards.items() if card.isChecked()), None)

    @property
    def cards(self) -> dict[str, TypeCard]:
        """All of them, in order."""
        return {kind.key: self._card(kind.key) for kind in self._kinds}

    def _card(self, key: str) -> TypeCard:
        if key not in self._cards:
            kind = next(kind for kind in self._kinds if kind.key == key)
            card = self._cards[key] = TypeCard(key, kind.name, self)
            self._group.addButton(card)
            card.toggled.connect(lambda is_on: self.chosen.emit(key) if is_on else None)
            self._show_outlook(card)
        return self._cards[key]

    def _show_outlook(self, card: TypeCard) -> None:
        outlooks, recommended, source_key = self._shown
        hint = self._hint(card.key, is_source=card.key == source_key)
        card.show_outlook(outlooks.get(card.key), hint, is_recommended=card.key == recommended)

    def _arrange(self) -> None:
        """The recommended kind and the chosen one on top, then the others if they are asked for."""
        is_open = self.toggle.isChecked()
        first = [key for key in (self._shown[1], None if is_open else self.key) if key is not None]
        wanted = list(dict.fromkeys(first or ([self.key] if self.key else [])))
        n_first = len(wanted)
        if is_open:
            wanted += [kind.key for kind in self._kinds if kind.key not in wanted]
        for place, key in enumerate(wanted):
            self._column.insertWidget(place if place < n_first else place + 1, self._card(key))
        for key, card in self._cards.items():
            card.setVisible(key in wanted)
        n_others = len(self._kinds) - n_first
        self.toggle.setText(self.tr("Other kinds ({n})").format(n=n_others))
        self.toggle.setAccessibleName(self.toggle.text())
        self._restyle()

    def _restyle(self) -> None:
        size = current_theme().px(14)
        icon = "chevron-down" if self.toggle.isChecked() else "chevron-right"
        self.toggle.setIcon(themed_icon(icon, "text_muted", size))
        self.toggle.setIconSize(QSize(size, size))

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
