"""Which experts served one answer, or some words of it: a choice, a heat map and how evenly the calls are spread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QLineEdit, QSizePolicy, QStackedLayout, QVBoxLayout, QWidget

from app.routing import AnswerRoutes, Balance, RouteBook, balance_of
from ui import format as fmt
from ui.performance.explanation import Explanation
from ui.performance.heat_map import HeatMap
from ui.widgets.combo_box import ComboBox

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TITLE_CHARACTERS = 44


def title_of(answer: AnswerRoutes) -> str:
    """The beginning of an answer, in a line."""
    words = " ".join(answer.text.split())
    return words if len(words) <= _TITLE_CHARACTERS else words[:_TITLE_CHARACTERS].rstrip() + "…"


class RoutingSide(QWidget):
    """``changed`` tells that other calls are shown: those in :attr:`counts`."""

    changed = Signal()

    def __init__(self, book: RouteBook, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._book = book
        self.answers: list[AnswerRoutes] = []
        self.counts: NDArray[np.int64] | None = None
        self.choice = ComboBox(self)
        self.choice.setAccessibleName(name)
        self.choice.currentIndexChanged.connect(self._show)
        self.words = QLineEdit(self)
        self.words.setProperty("kind", "search")
        self.words.setClearButtonEnabled(True)
        self.words.setPlaceholderText(self.tr("Only these words of it"))
        self.words.setAccessibleName(self.tr("Only these words of it"))
        self.words.textChanged.connect(self._show)
        self.map = HeatMap(self)
        self.map.ground = "surface"
        self.figures = QLabel(self)
        self.figures.setWordWrap(True)
        self.figures.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.figures.setProperty("tone", "small")
        self.explanation = Explanation(self)
        shown = QWidget(self)
        column = QVBoxLayout(shown)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.map, 1)
        column.addWidget(self.figures)
        body = QWidget(self)
        self._stack = QStackedLayout(body)
        self._stack.addWidget(self.explanation)
        self._stack.addWidget(shown)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)  # as wide as the other side
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self.choice)
        layout.addWidget(self.words)
        layout.addWidget(body, 1)
        self.refresh()

    @property
    def answer(self) -> AnswerRoutes | None:
        """The one that is chosen."""
        place = self.choice.currentIndex() - 1
        return self.answers[place] if 0 <= place < len(self.answers) else None

    def refresh(self) -> None:
        """List the answers that are remembered now; the choice stays."""
        kept = self.answer
        self.answers = self._book.answers()
        self.choice.blockSignals(True)
        self.choice.clear()
        self.choice.addItem(self.tr("No answer"))
        for answer in self.answers:
            text = self.tr("{title} · {n} tokens").format(title=title_of(answer), n=fmt.count(answer.n_tokens))
            self.choice.addItem(text)
        self.choice.blockSignals(False)
        self.choose(None if kept is None else kept.message_id)

    def choose(self, message_id: int | None, words: str = "") -> None:
        """Show an answer; None, or one that is not remembered: none. `words` are looked for when they are given."""
        places = [place for place, answer in enumerate(self.answers) if answer.message_id == message_id]
        self.choice.setCurrentIndex(places[0] + 1 if places else 0)
        if words:
            self.words.setText(words)
        self._show()

    def _show(self) -> None:
        answer, words = self.answer, self.words.text().strip()
        counts = None if answer is None else answer.counts(words)
        balance = None if answer is None or counts is None else balance_of(counts, answer.moe_layers)
        if answer is None or counts is None or balance is None:
            self.counts = None
            self._explain(answer, words)
        else:
            self.counts = counts
            self.map.show_counts(counts, list(answer.moe_layers))
            self.figures.setText(self._describe(answer, words, balance))
            self._stack.setCurrentIndex(1)
        self.changed.emit()

    def _explain(self, answer: AnswerRoutes | None, words: str) -> None:
        if answer is None:
            title = self.tr("Choose an answer") if self.answers else self.tr("No answers to look into yet")
            text = self.tr("Answers of this session by models with experts are remembered, the newest 48.")
        elif words and not answer.tokens_of(words).any():
            title, text = self.tr("These words are not in the answer"), words
        else:
            title = self.tr("The experts of these tokens are not known")
            text = self.tr("Other answers were written in the same steps.")
        self._stack.setCurrentIndex(0)
        self.explanation.explain(title, text)

    def _describe(self, answer: AnswerRoutes, words: str, balance: Balance) -> str:
        n_tokens = int((answer.tokens_of(words) & (answer.routes[:, 0, 0] >= 0)).sum())
        expert = self.tr("layer {layer} expert {expert} ({share} %)")

        def listed(found: tuple[tuple[int, int, float], ...]) -> str:
            return ", ".join(
                expert.format(layer=layer, expert=number, share=f"{100 * share:.0f}") for layer, number, share in found
            )

        lines = [
            self.tr("{n} of {all} tokens · {used} of {experts} experts called · {even} % evenly spread").format(
                n=fmt.count(n_tokens),
                all=fmt.count(answer.n_tokens),
                used=fmt.count(balance.n_used),
                experts=fmt.count(balance.n_experts),
                even=f"{100 * balance.evenness:.0f}",
            ),
            self.tr("Most: {experts}").format(experts=listed(balance.most)),
            self.tr("Least, of those called: {experts}").format(experts=listed(balance.least)),
        ]
        return "\n".join(lines)
