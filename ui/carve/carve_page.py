"""Makes a model with experts of a dense one: choose, plan, measure, decide, chat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app import carving_request
from app.carving_request import CarvingRequest
from app.library import ModelEntry
from ui import format as fmt
from ui.carve.carving_task import CarvingTask
from ui.carve.cut_view import CutView
from ui.carve.decide_view import DecideView
from ui.carve.dense_view import DenseView
from ui.widgets.file_dialogs import ask_file
from ui.wizard.long_task import Stage
from ui.wizard.run_view import Phase
from ui.wizard.shell import StageView
from ui.wizard.wizard_page import WizardPage


class CarvePage(WizardPage):
    """Carving's own views, and what it says of its result."""

    task: CarvingTask

    def __init__(
        self, task: CarvingTask, entries: Callable[[], Sequence[ModelEntry]], parent: QWidget | None = None
    ) -> None:
        """`entries`: the models of this machine, as far as they are known."""
        super().__init__(task, carving_request, parent)
        self.stepper.set_steps(
            [self.tr("Choose"), self.tr("Plan"), self.tr("Measure"), self.tr("Decide"), self.tr("Chat")]
        )
        self._entries = entries
        self._looking: asyncio.Task[None] | None = None
        self._refresh()

    @cached_property
    def dense_view(self) -> DenseView:
        view = DenseView(self.task, self)
        view.chosen.connect(self.task.choose)
        view.file_requested.connect(self.ask_file)
        view.unfinished.resumed.connect(self.task.start)
        view.unfinished.discarded.connect(self._discard)
        return self.added(view)

    @cached_property
    def cut_view(self) -> CutView:
        view = CutView(self.task, self)
        view.started.connect(self.task.start)
        view.back_requested.connect(self.task.back)
        view.text_requested.connect(self.ask_text)
        view.target.requested.connect(self.ask_target)
        return self.added(view, view.back, view.start)

    @cached_property
    def decide_view(self) -> DecideView:
        view = DecideView(self.task, self)
        view.decided.connect(self.task.decide)
        view.discarded.connect(self.task.back)
        return self.added(view, view.discard, view.keep)

    def _own_view(self, stage: Stage) -> StageView:
        if stage is Stage.CHOOSE:
            return self.dense_view
        return self.cut_view if stage is Stage.PLAN else self.decide_view

    def _phases(self) -> list[Phase]:
        return [
            Phase(self.tr("Read the text, and watch every neuron"), ("reading the text",)),
            Phase(self.tr("Cut the networks, and fit the routers"), ("splitting the layers",)),
            Phase(self.tr("Measure what each number of experts costs"), ("measuring the loss",)),
            Phase(self.tr("Write the file"), ("writing",)),
        ]

    def _running_title(self) -> str:
        return self.tr("Carving {name}").format(name=self.task.name)

    def _running_note(self) -> str:
        return self.tr(
            "You can go on chatting meanwhile. If Colibri is closed, it goes on at the next start where it was; "
            "nothing stays of a carving that is cancelled."
        )

    def look_around(self) -> None:
        self._looking = self.task.look_for(self._entries())
        super().look_around()

    def _show_unfinished(self, request: CarvingRequest | None) -> None:
        self.dense_view.show_unfinished(request)

    def ask_file(self) -> None:
        """Ask for a dense model."""
        filters = [self.tr("Models (*.gguf)"), self.tr("All files (*)")]
        ask_file(self, self.tr("Choose a dense model"), filters, lambda name: self.task.choose(Path(name)))

    def ask_text(self) -> None:
        """Ask for a text to watch the model on."""
        self._ask_text(self.tr("Choose a text"), self.cut_view.set_text)

    def ask_target(self, present: str) -> None:
        """Ask where the file shall go."""
        self._ask_target(self.cut_view.target, present)

    def _show_done(self) -> None:
        trial, path, top_k = self.task.trial, self.task.result, self.task.top_k
        assert trial is not None and path is not None and top_k is not None
        loss = next(loss for loss in trial.losses if loss.top_k == top_k)
        n_routed = trial.request.n_routed
        text = self.tr("Chat with it, and watch in the panel “Experts” which of them it calls.")
        if top_k == n_routed:
            text = self.tr(
                "With all experts on it computes what the dense model does. To see its router choose, set fewer "
                "experts in the list of models."
            )
        warning = self.tr("This is a demonstration of routing: its answers are clearly worse than the dense model's.")
        self.end_view.show_done(
            self.tr("The model is ready"),
            path,
            text,
            [
                (
                    self.tr("Experts"),
                    self.tr("{n}, {k} for each token").format(n=fmt.count(n_routed), k=fmt.count(top_k)),
                ),
                (self.tr("Shared besides"), fmt.count(trial.request.n_shared)),
                (
                    self.tr("Perplexity"),
                    self.tr("{own}; the dense model has {source}").format(
                        own=fmt.decimal(loss.perplexity, 2), source=fmt.decimal(loss.source_perplexity, 2)
                    ),
                ),
                (self.tr("Divergence"), self.tr("{n} nats").format(n=fmt.significant(loss.divergence))),
            ],
            warning=warning if loss.is_demonstration else "",
            another=self.tr("Carve another"),
        )
