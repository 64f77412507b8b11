"""How long each token took, how evenly, and how long an answer's first one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from ui import format as fmt
from ui.performance.chart import trimmed
from ui.performance.latency_charts import Durations, LatencyHistogram, LatencySeries, PromptSpeed
from ui.performance.panel import LivePanel
from ui.performance.step_feed import StepFeed

if TYPE_CHECKING:
    from engine.steps import Steps

_MOST_PROMPT_STEPS = 24


def durations_of(steps: Steps) -> Durations | None:
    """Of the tokens that steps without any prompt brought; None if there are none."""
    import numpy as np  # noqa: PLC0415  (not needed for the first paint of the window)

    is_token = steps.is_decode & (steps.n_answered > 0)
    if not is_token.any():
        return None
    places = np.cumsum(is_token)
    first = (steps.ttft_us > 0).nonzero()[0]
    marks = [(int(places[step]), float(steps.ttft_us[step]) / 1e3) for step in first]
    return Durations(steps.wall_us[is_token] / 1e3, marks)


class LatencyPanel(LivePanel):
    """Decoding above, its spread in the middle, reading prompts below."""

    def __init__(self, feed: StepFeed, parent: QWidget | None = None) -> None:
        super().__init__(feed, "", parent)
        self.title = self.tr("Latency")
        self.setAccessibleName(self.title)
        self.help_text = self.tr(
            "Above: how long each token of the answers took; an orange flag marks where an answer began, with the time "
            "to its first token. The dotted lines are the median (grey), the 95th (yellow) and the 99th percentile "
            "(red). In the middle: how many tokens took how long. A narrow hill is a steady machine; a long tail to "
            "the right means that something held single tokens up. Below: how fast prompts were read, step by step."
        )
        self.series, self.histogram, self.prompts = LatencySeries(self), LatencyHistogram(self), PromptSpeed(self)
        self.column.addWidget(self.series, 3)
        self.column.addWidget(self.histogram, 2)
        self.column.addWidget(self.prompts, 1)

    def show_steps(self) -> None:
        steps = self.feed.steps
        assert steps is not None
        data = durations_of(steps)
        self.series.set_data(data)
        self.histogram.set_data(data)
        reading = (~steps.is_decode).nonzero()[0][-_MOST_PROMPT_STEPS:]
        sizes = steps.n_prompt[reading]
        rates = sizes / steps.wall_us[reading] * 1e6
        self.prompts.set_data(rates.tolist(), sizes.tolist())
        if not self.feed.is_time_for_figures:
            return
        parts = []
        if data is not None:
            parts.append(
                self.tr("median {p50} ms · 95 % within {p95} ms · 99 % within {p99} ms").format(
                    p50=trimmed(data.p50), p95=trimmed(data.p95), p99=trimmed(data.p99)
                )
            )
        if len(rates):
            parts.append(self.tr("prompts {rate}").format(rate=fmt.rate(float(rates[-1]))))
        first = steps.ttft_us[steps.ttft_us > 0]
        if len(first):
            parts.append(self.tr("first token {time}").format(time=fmt.duration(float(first[-1]) / 1e3)))
        self.summary.setText(" · ".join(parts))
