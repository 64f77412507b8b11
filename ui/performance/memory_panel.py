"""What the model takes of the memory, by kind and by the size of its pages, and what the program takes in all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import psutil
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QScrollArea, QWidget

from ui import format as fmt
from ui.performance.bars import Bar, Part, PartBars
from ui.performance.panel import LivePanel
from ui.performance.step_feed import StepFeed

if TYPE_CHECKING:
    from engine import MemoryPlan

_EVERY_POLLS = 4  # the system is asked once a second


def page_name(kind: str) -> str:
    """The engine's name of a kind of pages, for people."""
    translate = QCoreApplication.translate
    return {
        "hugetlb": translate("MemoryPanel", "reserved huge pages"),
        "transparent huge pages": translate("MemoryPanel", "transparent huge pages"),
        "4 KiB pages": translate("MemoryPanel", "4 KiB pages"),
    }.get(kind, kind)


_PAGE_TOKENS = {"hugetlb": "band_experts", "transparent huge pages": "band_attention", "4 KiB pages": "band_router"}


class MemoryPanel(LivePanel):
    """Bars for the model's memory by kind, by page size, and for the machine's."""

    def __init__(self, feed: StepFeed, memory: Callable[[], MemoryPlan | None], parent: QWidget | None = None) -> None:
        super().__init__(feed, "", parent)
        self.title = self.tr("Memory")
        self.setAccessibleName(self.title)
        self.help_text = self.tr(
            "First what the model takes, by kind: its resident weights, the slabs for experts, keys and values of the "
            "conversations, and working buffers. Then the same by the size of the pages that it lies on: on huge pages "
            "the processor finds its way faster. Last the whole machine: when little is free, others are swapped out."
        )
        self._memory = memory
        self._n_polls = 0
        self.bars = PartBars(self.tr("Memory by kind"), self)
        area = QScrollArea(self)
        area.setWidgetResizable(True)
        area.setFrameShape(QScrollArea.Shape.NoFrame)
        area.setWidget(self.bars)
        self.column.addWidget(area, 1)
        feed.idle.connect(self._on_idle)

    def has_data(self) -> bool:
        return self._memory() is not None

    def show_steps(self) -> None:
        plan = self._memory()
        assert plan is not None
        kinds = (
            (self.tr("resident weights"), plan.weights_bytes, "band_experts"),
            (self.tr("expert slabs"), plan.expert_bytes, "band_attention"),
            (self.tr("keys and values"), plan.kv_bytes, "band_router"),
            (self.tr("buffers"), plan.buffer_bytes, "band_norms"),
        )
        pages = [
            Part(page_name(kind), n_bytes, _PAGE_TOKENS.get(kind, "band_norms"), fmt.size(n_bytes))
            for kind, n_bytes in sorted(plan.page_kinds.items(), key=lambda item: -item[1])
        ]
        rss_bytes = psutil.Process().memory_info().rss
        machine = psutil.virtual_memory()
        others_bytes = max(0, machine.total - machine.available - rss_bytes)
        self.bars.set_bars(
            (
                Bar(
                    self.tr("The model, by kind"),
                    tuple(Part(name, n_bytes, token, fmt.size(n_bytes)) for name, n_bytes, token in kinds if n_bytes),
                    plan.total_bytes,
                ),
                Bar(self.tr("The same, by page size"), tuple(pages), sum(part.value for part in pages)),
                Bar(
                    self.tr("This machine"),
                    (
                        Part(self.tr("Colibri"), rss_bytes, "band_experts", fmt.size(rss_bytes)),
                        Part(self.tr("other programs"), others_bytes, "band_norms", fmt.size(others_bytes)),
                        Part(self.tr("available"), machine.available, "grid", fmt.size(machine.available)),
                    ),
                    machine.total,
                ),
            )
        )
        self.bars.setMinimumHeight(self.bars.wanted_height())
        self.summary.setText(self._kv_text(plan.total_bytes))

    def _kv_text(self, total_bytes: int) -> str:
        text = self.tr("{size} planned").format(size=fmt.size(total_bytes))
        source, steps = self.feed.source, self.feed.steps
        capacity = getattr(source, "kv_capacity_tokens", 0)
        if steps is None or not len(steps) or not capacity:
            return text
        used = int(steps.kv_tokens[-1])
        return f"{text} · " + self.tr("{used} of {all} positions of keys and values in use").format(
            used=fmt.count(used), all=fmt.count(capacity)
        )

    def _on_idle(self) -> None:
        self._n_polls += 1
        if self._n_polls % _EVERY_POLLS == 0:
            super()._on_changed()

    def _on_changed(self) -> None:
        if not self.has_data() or not self.is_showing_data:
            super()._on_changed()
