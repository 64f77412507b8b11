from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtWidgets import QApplication, QMainWindow, QWidget

from app.machine_speeds import MachineSpeeds, speeds_file
from engine import MemoryPlan
from engine.hardware.memory_speed import MemorySpeed
from engine.steps import BANDS
from tests.support.made_up_run import MadeUpRun
from tests.support.made_up_steps import MadeUpTelemetry
from tests.support.paints import PaintCounter
from ui.live_docks import LiveDocks
from ui.performance.bands import SHOWN_BANDS, shown_bands_us
from ui.performance.bandwidth_panel import read_rates
from ui.performance.chart import nice_step, round_top
from ui.performance.latency_panel import durations_of
from ui.performance.load_rows import Load, LoadRows
from ui.performance.time_panel import StackedBands
from ui.widgets.icon_button import IconButton

PLAN = MemoryPlan(3 << 30, 40 << 30, 1 << 30, 1 << 28, {"transparent huge pages": 44 << 30, "4 KiB pages": 1 << 28})
KEYS = ("experts", "latency", "time", "cache", "memory", "bandwidth", "cores")


class Bench:
    """A window with all docks, reading made-up telemetry."""

    def __init__(self, telemetry: MadeUpTelemetry | None) -> None:
        self.telemetry, self.n_reads = telemetry, 0
        self.window = QMainWindow()
        self.docks = LiveDocks(self.window, self._read, lambda: PLAN if self.telemetry else None, 2)
        self.window.resize(500, 900)

    def _read(self) -> Any:
        self.n_reads += 1
        return self.telemetry

    def show_all(self) -> None:
        self.window.show()
        for dock in self.docks.docks.values():
            dock.show()


@pytest.fixture
def bench(qtbot: Any, colibri_home: Path) -> Iterator[Bench]:
    bench = Bench(MadeUpTelemetry(6, 32, 4, 4))
    qtbot.addWidget(bench.window)
    assert bench.telemetry is not None
    bench.telemetry.advance(130)
    yield bench
    bench.window.close()


def test_every_band_of_the_engine_is_shown_in_exactly_one_band() -> None:
    assert sorted(part for band in SHOWN_BANDS for part in band.parts) == sorted(BANDS)
    telemetry = MadeUpTelemetry(4, 16, 2, 2)
    telemetry.advance(20)
    steps = telemetry.steps()
    assert shown_bands_us(steps).sum() == pytest.approx(steps.bands_us.sum())
    assert shown_bands_us(steps)[:, 0] == pytest.approx(steps.bands_us[:, BANDS.index("experts")])


def test_a_dense_models_work_is_called_feed_forward_and_has_no_experts_in_its_legend(bench: Bench, qtbot: Any) -> None:
    dense = MadeUpRun(shares={"feed forward": 0.7, "attention": 0.3}).steps()
    names = {band.name: band for band in SHOWN_BANDS}
    assert names["feed forward"].parts == ("feed forward",) and names["experts"].parts == ("experts",)
    bench.window.show()
    dock = bench.docks.docks["time"]
    dock.show()
    panel: Any = dock.panel
    legend, before = panel.legend, panel.legend.heightForWidth(200)
    assert "experts" in legend.accessibleName() and "feed forward" not in legend.accessibleName()
    bench.docks.feed.steps = dense
    panel.show_steps()
    assert legend.accessibleName().startswith("feed forward 70 %, attention 30 %, norms")
    assert "experts" not in legend.accessibleName() and "router" not in legend.accessibleName()
    assert legend.heightForWidth(200) < before


def test_the_cache_panel_of_a_dense_model_says_that_it_has_no_experts(bench: Bench, qtbot: Any) -> None:
    bench.window.show()
    dock = bench.docks.docks["cache"]
    dock.show()
    panel: Any = dock.panel
    bench.docks.feed.steps = replace(MadeUpRun().steps(), experts_used=np.zeros(65, np.int64))
    panel._on_changed()
    assert panel.explanation.title.text() == "This model has no experts"


@pytest.mark.parametrize(
    ("shares", "words"),
    [
        ({"experts": 0.4, "host": 0.4, "sampling": 0.2}, "the model itself is quick"),
        ({"experts": 0.8, "disk": 0.2}, "larger expert cache"),
        ({"experts": 0.6, "waiting": 0.4}, "close other programs"),
        ({"experts": 0.7, "attention": 0.3}, "sets the pace"),
    ],
)
def test_the_band_of_time_says_what_follows_from_it(
    bench: Bench, qtbot: Any, shares: dict[str, float], words: str
) -> None:
    bench.window.show()
    dock = bench.docks.docks["time"]
    dock.show()
    panel: Any = dock.panel
    bench.docks.feed.steps = MadeUpRun(shares=shares).steps()
    panel.show_steps()
    assert words in panel.summary.text()


def test_only_the_experts_are_made_and_shown_at_first_and_hidden_docks_read_nothing(bench: Bench, qtbot: Any) -> None:
    with qtbot.waitExposed(bench.window):
        bench.window.show()
    assert [key for key, dock in bench.docks.docks.items() if dock.panel is not None] == ["experts"]
    assert not bench.docks.feed.timer.isActive()
    bench.docks.docks["time"].show()
    assert bench.docks.feed.timer.isActive()
    bench.docks.docks["time"].hide()
    bench.docks.experts.hide()
    assert not bench.docks.feed.timer.isActive()
    before = bench.n_reads
    qtbot.wait(250)
    assert bench.n_reads == before


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("key", KEYS)
def test_each_panel_explains_itself_and_shows_the_steps(
    bench: Bench, qtbot: Any, theme: Any, key: str, mode: str
) -> None:
    theme.set_mode(mode)
    telemetry, bench.telemetry = bench.telemetry, None
    dock = bench.docks.docks[key]
    bench.window.show()
    for other in bench.docks.docks.values():
        other.setVisible(other is dock)
    panel = dock.panel
    assert panel is not None and len(panel.help_text) > 100 and panel.explanation.isVisible()
    assert panel.explanation.title.text() == "No model is loaded"
    empty = panel.grab().toImage()
    bench.telemetry = telemetry
    bench.docks.feed.poll()
    getattr(panel, "poll", lambda: None)()
    qtbot.waitUntil(lambda: not panel.explanation.isVisible())
    assert panel.grab().toImage() != empty


def test_a_panel_of_a_fresh_model_says_that_nothing_was_measured_yet(qtbot: Any) -> None:
    bench = Bench(MadeUpTelemetry(2, 8, 2, 2))
    qtbot.addWidget(bench.window)
    bench.window.show()
    dock = bench.docks.docks["latency"]
    dock.show()
    assert dock.panel is not None
    assert dock.panel.explanation.title.text() == "Nothing to show yet"


def test_latency_keeps_prompts_out_and_marks_where_answers_begin() -> None:
    telemetry = MadeUpTelemetry(2, 8, 2, 2)
    telemetry.advance(250)  # prompts are steps 1, 121 and 241
    steps = telemetry.steps()
    data = durations_of(steps)
    assert data is not None
    assert len(data.ms) == 247 and data.counts.sum() == 247
    assert [place for place, _ in data.marks] == [0, 119, 238]
    assert all(ttft_ms > 1000 for _, ttft_ms in data.marks)
    assert data.p50 == pytest.approx(np.median(steps.wall_us[steps.is_decode]) / 1e3)
    assert data.p50 < data.p95 < data.p99
    assert durations_of(steps.chosen(~steps.is_decode)) is None


def test_bandwidth_is_bytes_of_weights_over_the_time_in_which_the_team_worked() -> None:
    telemetry = MadeUpTelemetry(2, 8, 2, 2)
    telemetry.advance(10)
    steps = telemetry.steps()
    token = steps.chosen(slice(3, 4))
    assert read_rates(steps)[2] == pytest.approx(token.weight_bytes[0] / token.run_us[0] * 1e6)
    outside = sum(float(token.bands_us[0, BANDS.index(band)]) for band in ("sampling", "disk", "host"))
    assert token.run_us[0] == pytest.approx(float(token.wall_us[0]) - outside, rel=1e-3)


def test_the_limit_that_the_system_check_measured_is_the_one_that_bandwidth_is_shown_against(
    bench: Bench, qtbot: Any
) -> None:
    bench.window.show()
    dock = bench.docks.docks["bandwidth"]
    dock.show()
    panel: Any = dock.panel
    bench.docks.feed.poll()
    assert panel.limit_bytes_per_s == 0.0 and "what the memory can give" not in panel.summary.text()
    MachineSpeeds().with_memory(MemorySpeed(2, 90e9, 80e9, 95e9)).save(speeds_file())
    dock.hide()
    dock.show()
    assert panel.chart.limit == 90e9 and "% of what the memory can give" in panel.summary.text()


def test_a_click_pins_an_expert_and_shows_at_which_tokens_it_was_called(bench: Bench, qtbot: Any) -> None:
    bench.window.show()
    panel: Any = bench.docks.experts.panel
    assert bench.telemetry is not None
    heat_map = panel.heat_map
    panel.poll()
    point = next(
        QPoint(x, y)
        for x in range(0, heat_map.width(), 3)
        for y in range(0, heat_map.height(), 3)
        if (cell := heat_map.cell_at(QPoint(x, y))) is not None and (cell.row, cell.expert) == (2, 7)
    )
    tip = heat_map.describe(heat_map.cell_at(point))
    assert "Layer 5, expert 7" in tip and "3 MB" in tip
    assert ("Not in memory" in tip) != bench.telemetry.is_resident(2, 7)
    qtbot.mouseClick(heat_map, Qt.MouseButton.LeftButton, pos=point)
    assert heat_map.pinned == (2, 7)
    assert panel.history.isVisible()
    expected = (bench.telemetry.steps().routes[:, 2] == 7).any(1)
    assert np.array_equal(panel.history.called, expected) and 0 < expected.sum() < len(expected)
    qtbot.keyClick(heat_map, Qt.Key.Key_Escape)
    assert not panel.history.isVisible()
    assert not bench.docks.feed.timer.isActive()


def test_the_keyboard_goes_from_expert_to_expert(bench: Bench, qtbot: Any) -> None:
    bench.window.show()
    panel: Any = bench.docks.experts.panel
    panel.poll()
    heat_map = panel.heat_map
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Return):
        qtbot.keyClick(heat_map, key)
    row, expert = heat_map.pinned
    assert {row, expert} == {0, 2}
    assert "Layer" in heat_map.accessibleDescription()


def test_charts_tell_the_figures_under_the_pointer(bench: Bench, qtbot: Any) -> None:
    bench.show_all()
    bench.window.resize(600, 2400)
    bench.docks.feed.poll()
    panels: Any = {key: dock.panel for key, dock in bench.docks.docks.items()}
    for chart, expected in (
        (panels["latency"].series, "Token 65 of 128"),
        (panels["latency"].histogram, "tokens took"),
        (panels["time"].chart, "ms in all"),
        (panels["cache"].chart, "experts were in memory"),
        (panels["bandwidth"].chart, "GB/s"),
    ):
        assert expected in chart.describe(chart.box.center())
        assert chart.describe(QPointF(-5, -5)) == ""


def test_a_panel_that_is_torn_off_goes_on_and_costs_nothing_once_closed(bench: Bench, qtbot: Any) -> None:
    bench.window.show()
    bench.docks.experts.hide()
    dock = bench.docks.docks["time"]
    dock.show()
    tear = next(button for button in dock.findChildren(IconButton) if button.toolTip() == "Tear off or put back")
    tear.click()
    assert dock.isFloating() and dock.panel is not None and dock.panel.isVisible()
    assert bench.docks.feed.timer.isActive() and bench.telemetry is not None
    bench.telemetry.advance(3)
    bench.docks.feed.poll()
    assert bench.docks.feed.n_read == 133
    dock.close()
    assert not bench.docks.feed.timer.isActive()
    dock.show()
    tear.click()
    assert not dock.isFloating()


def test_each_token_has_the_colours_of_its_bands(bench: Bench, qtbot: Any, theme: Any) -> None:
    chart = StackedBands()
    qtbot.addWidget(chart)
    chart.resize(400, 300)
    ms = np.zeros((4, len(SHOWN_BANDS)))
    ms[:, 0], ms[2, 2] = 1.0, 1.0  # experts in all tokens, attention above them in the third
    chart.set_data(ms)
    image = chart.grab().toImage()
    box = chart.box
    y = round(box.bottom()) - 4
    for token in range(4):
        x = round(box.left() + (token + 0.5) / 4 * box.width())
        assert image.pixelColor(x, y) == theme.color("band_experts")
    scale = float(np.percentile(ms.sum(1), 95)) * 1.35  # where the scale ends
    x, y = round(box.left() + 2.5 / 4 * box.width()), round(box.bottom() - 1.5 / scale * box.height())
    assert image.pixelColor(x, y) == theme.color("band_attention")
    x = round(box.left() + 0.5 / 4 * box.width())
    assert image.pixelColor(x, y) not in (theme.color("band_attention"), theme.color("band_experts"))


def test_cores_show_each_worker_and_each_core(bench: Bench, qtbot: Any) -> None:
    bench.window.show()
    dock = bench.docks.docks["cores"]
    dock.show()
    panel: Any = dock.panel
    panel.show_steps()
    said = panel.rows.accessibleDescription()
    assert all(f"Worker {number} " in said for number in range(4))
    assert "Core 0 " in said
    assert "workers are not pinned, they may run on cores " in panel.summary.text()


@pytest.mark.parametrize(("span", "step"), [(100, 50), (10, 5), (4, 1), (0.3, 0.1), (0, 1.0)])
def test_scales_have_round_steps(span: float, step: float) -> None:
    assert nice_step(span) == pytest.approx(step)


def test_a_poll_draws_each_panel_of_a_large_mixture_once_at_most(qtbot: Any, colibri_home: Path) -> None:
    bench = Bench(MadeUpTelemetry(60, 512, 8, 8))
    qtbot.addWidget(bench.window)
    bench.show_all()
    bench.window.resize(500, 2600)
    telemetry = bench.telemetry
    assert telemetry is not None
    telemetry.advance(600)
    for dock in bench.docks.docks.values():
        getattr(dock.panel, "timer", bench.docks.feed.timer).stop()  # the test sets the pace
    bench.docks.feed.poll()
    with PaintCounter() as paints:
        for _ in range(4):  # polls of the feed, each with three of the experts
            telemetry.advance(2)
            bench.docks.feed.poll()
            for _ in range(3):
                bench.docks.experts.panel.poll()  # type: ignore[union-attr]
                QApplication.processEvents()
    charts = {name: n for name, n in paints.by_class.items() if name not in {"HeatMap", "SteadyLabel", "QWidget"}}
    assert 0 < paints.by_class["HeatMap"] <= 12
    assert paints.by_class["SteadyLabel"] <= 4 * len(bench.docks.docks)
    assert len(charts) > 7 and max(charts.values()) <= 4, charts
    assert not {"LiveDock", "ExpertPanel", "TimePanel"} & charts.keys()  # nothing around them


def test_figures_change_with_every_other_poll_and_are_not_left_behind(qtbot: Any, colibri_home: Path) -> None:
    bench = Bench(MadeUpTelemetry(2, 8, 2, 2))
    qtbot.addWidget(bench.window)
    telemetry, feed = bench.telemetry, bench.docks.feed
    assert telemetry is not None
    told: list[bool] = []
    feed.changed.connect(lambda: told.append(feed.is_time_for_figures))
    feed.poll()
    told.clear()
    for _ in range(4):
        telemetry.advance(1)
        feed.poll()
    assert told == [True, False, True, False]
    feed.poll()  # nothing has come, but the figures of the last step were not shown yet
    feed.poll()
    assert told == [True, False, True, False, True]


@pytest.mark.parametrize("wanted", [0.0031, 0.9, 1.0, 3.3, 7.45, 10.0, 99.0, 101.0, 7453.0])
def test_a_scale_ends_little_above_its_data_and_at_few_places(wanted: float) -> None:
    top = round_top(wanted)
    assert wanted * (1 - 1e-6) <= top <= wanted * 1.5
    assert round_top(top) == pytest.approx(top)
    assert round_top(wanted * 1.0001) in (pytest.approx(top), round_top(top * 1.0001))


def test_the_load_of_workers_names_its_colours_below_where_there_is_no_room_beside(qtbot: Any) -> None:
    rows = LoadRows("Load")
    qtbot.addWidget(rows)
    legend = (("busy with the model", "band_experts"), ("waiting for others", "band_router"))
    heading = Load("The engine's workers", legend=legend)
    rows.set_loads((heading, Load("Worker 0", ((0.5, "band_experts"),)), Load("The cores")))
    rows.resize(700, 200)
    with qtbot.waitExposed(rows):
        rows.show()
    wide = rows.minimumHeight()
    rows.resize(200, 200)
    assert rows.minimumHeight() == wide + round(rows._lines()[1].height())
    boxes = rows._lines()
    assert all(below.top() >= above.bottom() for above, below in pairwise(boxes))


def test_panels_that_are_opened_share_a_place_when_the_window_is_too_low_for_them(qtbot: Any, theme: Any) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    window.setCentralWidget(QWidget(window))
    docks = LiveDocks(window, lambda: None, lambda: None, 2)
    window.resize(900, 1000)
    with qtbot.waitExposed(window):
        window.show()
    latency, time, cache = (docks.docks[key] for key in ("latency", "time", "cache"))
    latency.toggleViewAction().trigger()
    assert window.tabifiedDockWidgets(latency) == []
    time.toggleViewAction().trigger()
    assert window.tabifiedDockWidgets(time) == []
    cache.toggleViewAction().trigger()
    assert window.tabifiedDockWidgets(cache) == [time]
    assert window.height() == 1000


def test_the_cache_panel_says_how_much_was_foreseen_and_what_was_asked_for_in_vain(bench: Bench) -> None:
    bench.window.show()
    dock = bench.docks.docks["cache"]
    dock.show()
    panel: Any = dock.panel
    bench.docks.feed.steps = MadeUpRun(loads=3).steps()
    panel.show_steps()
    assert panel.summary.text().endswith("67 % foreseen · 384 asked for ahead, 50 % in vain")
    bench.docks.feed.steps = MadeUpRun().steps()
    panel.show_steps()
    assert "foreseen" not in panel.summary.text()
