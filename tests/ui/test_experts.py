from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PySide6.QtCore import QCoreApplication, QPoint
from PySide6.QtWidgets import QApplication

from tests.support.paints import PaintCounter
from ui.performance.expert_panel import ExpertPanel
from ui.performance.heat_map import HeatMap
from ui.performance.raster import Axis


class Telemetry:
    """The arrays that the engine's telemetry offers, filled by hand."""

    def __init__(self, n_layers: int, n_experts: int, top_k: int) -> None:
        self.expert_counts = np.zeros((n_layers, n_experts), np.int64)
        self.last_experts = np.full((n_layers, top_k), -1, np.int32)
        self.moe_layers = list(range(1, n_layers + 1))

    def call(self, layer: int, expert: int, n_calls: int = 1) -> None:
        self.expert_counts[layer, expert] += n_calls
        self.last_experts[layer, 0] = expert


@pytest.fixture
def heat_map(qtbot: Any) -> HeatMap:
    heat_map = HeatMap()
    qtbot.addWidget(heat_map)
    heat_map.resize(340, 320)
    return heat_map


def feed(heat_map: HeatMap, telemetry: Telemetry, elapsed_ms: float = 33) -> None:
    heat_map.advance(telemetry.expert_counts, telemetry.last_experts, telemetry.moe_layers, elapsed_ms)


def test_calls_before_the_panel_was_opened_are_not_heat(heat_map: HeatMap) -> None:
    telemetry = Telemetry(4, 8, 2)
    telemetry.call(1, 3, 1000)
    feed(heat_map, telemetry)
    assert heat_map.heat is not None and not heat_map.heat.any()


def test_fresh_calls_heat_and_time_cools(heat_map: HeatMap) -> None:
    telemetry = Telemetry(4, 8, 2)
    feed(heat_map, telemetry)
    telemetry.call(1, 3, 10)
    feed(heat_map, telemetry)
    heat = heat_map.heat
    assert heat is not None
    assert heat[1, 3] == pytest.approx(10) and heat.sum() == heat[1, 3]
    feed(heat_map, telemetry, elapsed_ms=2500)
    assert heat[1, 3] == pytest.approx(5)
    feed(heat_map, telemetry, elapsed_ms=60_000)
    assert not heat.any()


def test_cells_fade_in_steps_and_nothing_is_painted_between_them(heat_map: HeatMap, qtbot: Any) -> None:
    painted: list[int] = []
    paint = heat_map.paintEvent
    heat_map.paintEvent = lambda event: (painted.append(1), paint(event))  # type: ignore[method-assign,assignment]
    with qtbot.waitExposed(heat_map):
        heat_map.show()
    telemetry = Telemetry(4, 8, 2)
    feed(heat_map, telemetry)
    telemetry.call(1, 3, 10)
    feed(heat_map, telemetry)
    QCoreApplication.processEvents()
    painted.clear()
    for _ in range(2):
        feed(heat_map, telemetry, elapsed_ms=33)
        QCoreApplication.processEvents()
    assert painted == [] and heat_map.heat is not None and heat_map.heat[1, 3] == pytest.approx(10)
    feed(heat_map, telemetry, elapsed_ms=34)
    QCoreApplication.processEvents()
    assert painted == [1] and heat_map.heat[1, 3] == pytest.approx(10 * 0.5 ** (100 / 2500))


def test_a_cell_tells_layer_expert_count_and_share(heat_map: HeatMap) -> None:
    telemetry = Telemetry(2, 4, 1)
    telemetry.call(0, 0, 1)
    telemetry.call(0, 3, 3)
    feed(heat_map, telemetry)
    cells = {
        (cell.layer, cell.expert): cell
        for x in range(0, 340, 4)
        for y in range(0, 320, 4)
        if (cell := heat_map.cell_at(QPoint(x, y))) is not None
    }
    assert set(cells) == {(layer, expert) for layer in (1, 2) for expert in range(4)}
    assert cells[1, 3].n_calls == 3 and cells[1, 3].share == pytest.approx(0.75)
    assert heat_map.describe(cells[1, 3]) == "Layer 1, expert 3\n3 calls, 75.0 % of the layer's"
    assert cells[2, 0].share == 0


def test_hot_cells_are_painted_in_another_colour(heat_map: HeatMap) -> None:
    telemetry = Telemetry(4, 4, 1)
    feed(heat_map, telemetry)
    cold = heat_map.grab().toImage()
    telemetry.call(2, 1, 50)
    telemetry.last_experts[:] = -1
    feed(heat_map, telemetry)
    hot = heat_map.grab().toImage()
    changed = {
        (cell.layer, cell.expert)
        for x in range(0, 340, 3)
        for y in range(0, 320, 3)
        if cold.pixel(x, y) != hot.pixel(x, y) and (cell := heat_map.cell_at(QPoint(x, y))) is not None
    }
    assert changed == {(3, 1)}


def test_the_newest_experts_are_lit(heat_map: HeatMap, theme: Any) -> None:
    telemetry = Telemetry(2, 2, 1)
    telemetry.call(1, 0)
    feed(heat_map, telemetry)
    image = heat_map.grab().toImage()
    lit = [
        cell
        for x in range(0, 340, 2)
        for y in range(0, 320, 2)
        if image.pixelColor(x, y) == theme.color("heat_lit") and (cell := heat_map.cell_at(QPoint(x, y))) is not None
    ]
    assert {(cell.layer, cell.expert) for cell in lit} == {(2, 0)}


def test_the_panel_says_what_is_missing(qtbot: Any) -> None:
    source: list[Telemetry | None] = [None]
    panel = ExpertPanel(lambda: source[0])
    qtbot.addWidget(panel)
    assert panel.explanation.title.text() == "No model is loaded"
    source[0] = Telemetry(0, 0, 0)
    panel.poll()
    assert panel.explanation.title.text() == "This model has no experts"
    source[0] = Telemetry(4, 8, 2)
    panel.poll()
    assert panel.is_showing_map
    source[0] = None
    panel.poll()
    assert not panel.is_showing_map


def test_a_hidden_panel_does_nothing(qtbot: Any) -> None:
    n_polls = 0

    def source() -> None:
        nonlocal n_polls
        n_polls += 1

    panel = ExpertPanel(source)
    qtbot.addWidget(panel)
    with qtbot.waitExposed(panel):
        panel.show()
    assert panel.timer.isActive()
    panel.hide()
    assert not panel.timer.isActive()
    before = n_polls
    qtbot.wait(150)
    assert n_polls == before


@pytest.mark.parametrize(
    ("n_cells", "n_pixels", "scale"), [(128, 640, 1.0), (8, 320, 2.0), (3, 3, 1.0), (60, 299, 1.25)]
)
def test_every_cell_has_pixels_and_its_mark_in_the_middle(n_cells: int, n_pixels: int, scale: float) -> None:
    axis = Axis.of(n_cells, n_pixels, scale)
    assert (np.diff(axis.cells) >= 0).all()
    assert set(axis.cells) == set(range(n_cells))
    for cell in range(n_cells):
        own = (axis.cells == cell).nonzero()[0]
        marked = (axis.marks & (axis.cells == cell)).nonzero()[0]
        assert marked.size
        assert abs(marked.mean() - own.mean()) <= max(1.5, scale)


def test_a_poll_draws_the_map_once_and_nothing_around_it(qtbot: Any) -> None:
    telemetry = Telemetry(48, 128, 8)
    panel = ExpertPanel(lambda: telemetry)
    qtbot.addWidget(panel)
    panel.resize(340, 700)
    with qtbot.waitExposed(panel):
        panel.show()
    panel.timer.stop()  # the test sets the pace
    telemetry.call(0, 0)
    panel.poll()
    with PaintCounter() as paints:
        for number in range(20):
            telemetry.call(number % 48, number % 128)
            panel.poll()
            QApplication.processEvents()
    assert 0 < paints.by_class["HeatMap"] <= 20
    assert paints.by_class["Legend"] == 0
