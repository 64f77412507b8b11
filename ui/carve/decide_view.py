"""The table of what each number of experts costs, and the decision which one the file shall say."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from ui import format as fmt
from ui.carve.carving_task import CarvingTask
from ui.carve.loss_table import LossTable
from ui.widgets.notice import InlineNotice
from ui.wizard.shell import StageView


class DecideView(StageView):
    """All experts are chosen at first: that loses nothing. `keep` and `discard` are for the page's foot."""

    decided = Signal(int)
    discarded = Signal()

    def __init__(self, task: CarvingTask, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._task = task
        self._title = QLabel(self.tr("How many experts for each token?"), self)
        self._title.setProperty("tone", "hero-small")
        self._text = QLabel(self)
        self._text.setProperty("tone", "muted")
        self._text.setWordWrap(True)
        self.table = LossTable(self)
        self.table.chosen.connect(lambda _top_k: self._on_chosen())
        self.notice = InlineNotice(self)
        self.keep = QPushButton(self.tr("Make the model"), self)
        self.keep.setProperty("kind", "primary")
        self.keep.clicked.connect(self._on_keep)
        self.discard = QPushButton(self.tr("Discard"), self)
        self.discard.clicked.connect(self.discarded)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        for widget in (self._title, self._text, self.table, self.notice):
            column.addWidget(widget)

    def refresh(self) -> None:
        """Show what was measured."""
        trial = self._task.trial
        if trial is None or not trial.losses:
            return
        self._text.setText(
            self.tr(
                "Measured on text that the cutting has not seen: the dense model has a perplexity of {perplexity} on "
                "it. Divergence says how far the next token's probabilities are from the dense model's. {shared} "
                "shared experts work besides. You can choose again whenever you open the model."
            ).format(
                perplexity=fmt.decimal(trial.losses[0].source_perplexity, 2), shared=fmt.count(trial.request.n_shared)
            )
        )
        known = self.table.loss
        self.table.show_losses(trial.losses, known.top_k if known is not None else trial.losses[0].top_k)
        if self.table.loss is None:
            self.table.choose(trial.losses[0].top_k)
        self._on_chosen()

    def _on_chosen(self) -> None:
        loss = self.table.loss
        if loss is None:
            return
        if loss.is_demonstration:
            self.notice.say(
                "warning",
                self.tr(
                    "With {k} experts this is a demonstration: it shows routing, but answers are clearly worse than "
                    "the dense model's. It will be named so."
                ).format(k=fmt.count(loss.top_k)),
            )
        else:
            self.notice.say("info", "")

    def _on_keep(self) -> None:
        loss = self.table.loss
        if loss is not None:
            self.decided.emit(loss.top_k)

    def focus(self) -> None:
        """Put the keyboard where Enter accepts."""
        self.keep.setFocus(Qt.FocusReason.OtherFocusReason)
