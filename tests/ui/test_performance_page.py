"""The page of recordings, with the real engine service and recordings made of made-up telemetry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PySide6.QtGui import QImage

from app.engine_service import EngineService
from app.settings import Settings
from tests.app.test_recording import MACHINE, made
from tests.support.made_up_steps import MadeUpTelemetry
from ui.performance.performance_page import PerformancePage
from ui.performance.recordings import Recordings, measurements_dir, recordings_dir


class Info:
    name, tier, sampling = "Tiny", "avx2", None


@pytest.fixture
def page(qtbot: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PerformancePage]:
    monkeypatch.setenv("COLIBRI_HOME", str(tmp_path / "home"))
    telemetry = MadeUpTelemetry(3, 8, 2, 2)
    telemetry.advance(60)
    one = made(telemetry)
    slower = replace(one.steps, wall_us=one.steps.wall_us * 1.5)
    one.save(recordings_dir() / "1 before.colibri-recording")
    replace(one, label="after", steps=slower).save(recordings_dir() / "2 after.colibri-recording")
    service = EngineService()
    page = PerformancePage(Recordings(service, Settings), service)
    qtbot.addWidget(page)
    page.resize(1100, 700)
    with qtbot.waitExposed(page):
        page.show()
    yield page
    service.close()


def choose(page: PerformancePage, *names: str) -> None:
    page.list.clearSelection()
    for row in range(page.list.count()):
        item = page.list.item(row)
        if item.text() in names:
            item.setSelected(True)


def test_without_a_model_nothing_can_be_recorded_or_measured(page: PerformancePage) -> None:
    assert not page.record.isEnabled() and not page.measure.isEnabled()
    assert not page.export.isEnabled()
    assert [page.list.item(row).text() for row in range(2)] == ["2 after", "1 before"]


def test_what_a_model_does_is_recorded_kept_and_shown(page: PerformancePage, qtbot: Any) -> None:
    telemetry = MadeUpTelemetry(3, 8, 2, 2)
    telemetry.advance(5)
    service: Any = page._service
    service.telemetry, service.info = telemetry, Info()
    service._notify()
    assert page.record.isEnabled()
    page.record.click()
    telemetry.advance(30)
    page._recordings._collect()
    assert "30" in page.record.text()
    page.record.click()
    assert page.list.count() == 3
    (recording,) = page.chosen()
    assert len(recording.steps) == 30 and recording.model == "Tiny" and recording.settings["tier"] == "avx2"
    assert page.stack.currentWidget() is page.view
    assert page.view.latency.is_showing_data and page.view.time.is_showing_data
    assert not page.view.feed.timer.isActive()
    service.telemetry = service.info = None


def test_a_recording_of_nothing_is_not_kept(page: PerformancePage) -> None:
    service: Any = page._service
    service.telemetry, service.info = MadeUpTelemetry(3, 8, 2, 2), Info()
    service._notify()
    page.record.click()
    page.record.click()
    assert "ask the model something" in page.problem.text
    assert page.list.count() == 2
    service.telemetry = service.info = None


def test_two_recordings_are_compared(page: PerformancePage) -> None:
    choose(page, "1 before", "2 after")
    assert page.stack.currentWidget() is page.table
    rows = {
        page.table.item(row, 0).text(): [page.table.item(row, column).text() for column in (1, 2, 3)]
        for row in range(page.table.rowCount())
    }
    assert "+50.0 % (" in rows["time per token (ms)"][2]
    assert "none clear" in rows["experts (ms)"][2]
    assert "–" in rows["time per token (ms)"][0]


def test_a_recording_is_exported_in_four_formats(page: PerformancePage, tmp_path: Path) -> None:
    choose(page, "1 before")
    for suffix in (".json", ".csv", ".png", ".svg"):
        page.export_to(tmp_path / f"out{suffix}")
        assert page.message.text().startswith("Written: ")
    assert len(json.loads((tmp_path / "out.json").read_text())["traceEvents"]) > 60
    assert (tmp_path / "out.csv").read_text().count("\n") == 61
    picture = QImage(str(tmp_path / "out.png"))
    assert picture.width() == page.view.width()
    texts = {element.text for element in ElementTree.parse(tmp_path / "out.svg").iter() if element.text}
    assert any("experts" in text for text in texts)


def test_a_folder_that_cannot_be_written_is_said(page: PerformancePage, tmp_path: Path) -> None:
    choose(page, "1 before")
    for suffix in (".json", ".png", ".svg"):
        page.export_to(tmp_path / "nowhere" / f"out{suffix}")
        assert "nowhere" in page.problem.text and page.message.text() == ""


def test_a_file_that_is_no_recording_is_refused_in_words(page: PerformancePage, tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear Sir")
    page.open(path)
    assert "expected a recording of Colibri" in page.problem.text
    assert page.list.count() == 2


def test_a_figure_that_is_mostly_zero_has_no_share_of_change(page: PerformancePage) -> None:
    choose(page, "1 before", "2 after")
    changes = [page.table.item(row, 3).text() for row in range(page.table.rowCount())]
    assert "—" in changes  # experts that are read at some tokens only: their median is 0
    assert max(len(change) for change in changes) < 40


def test_a_comparison_shows_its_figures_whole_and_leaves_no_room_unused(page: PerformancePage, qtbot: Any) -> None:
    choose(page, "1 before", "2 after")
    header = page.table.horizontalHeader()
    for width in (1100, 1500):
        page.resize(width, 700)
        qtbot.waitUntil(lambda: header.length() >= page.table.viewport().width())
        for column in range(4):
            assert header.sectionSize(column) >= page.table.sizeHintForColumn(column)
    assert page.table.horizontalScrollBar().maximum() == 0


def test_measurements_are_listed_with_what_was_measured_in_words(page: PerformancePage) -> None:
    filed = {
        "model_name": "Tiny",
        "started_at": "2026-11-30T09:00:00+00:00",
        "medians": {"prompt 256": 808.4, "generate 64": 104.2},
    }
    (measurements_dir() / "one.json").write_text(
        json.dumps({**filed, "machine_before": MACHINE.to_json(), "machine_after": MACHINE.to_json()})
    )
    page._list_measurements()
    assert "prompt of 256 tokens: 808 tok/s\nanswer of 64 tokens: 104 tok/s" in page.measured.text()
