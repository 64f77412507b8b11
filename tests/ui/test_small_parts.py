from __future__ import annotations

import asyncio
import faulthandler
import gc
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QTextCursor, QTextDocument
from PySide6.QtWidgets import QApplication, QWidget

from tests.support.waiting import still_patient
from ui import format as fmt
from ui.chat.drafts import Drafts
from ui.chat.highlight import apply_spans, highlight, spans
from ui.collector import MainThreadCollector
from ui.crash_report import CrashReport
from ui.models.load_notice import LoadNotice
from ui.models.model_picker import ModelPicker, ShownModel
from ui.stall_watch import StallWatch
from ui.start_clock import process_age_ms
from ui.status_line import FigureLabel, StatusLine
from ui.widgets.throttle import Throttle
from ui.widgets.toast import Toast


def test_numbers_are_written_for_people(qapp: Any) -> None:
    assert fmt.count(1234567) == "1,234,567"
    assert [fmt.size(n) for n in (999, 98_362_432, 4_660_000_000)] == ["999 B", "98 MB", "4.7 GB"]
    assert [fmt.rate(rate) for rate in (38.24, 131.4)] == ["38.2 tok/s", "131 tok/s"]
    assert [fmt.duration(ms) for ms in (84.4, 1240)] == ["84 ms", "1.2 s"]
    assert [fmt.time_left(s) for s in (0.2, 20, 200)] == ["1 s left", "20 s left", "3 min left"]


def test_long_texts_are_cut_where_a_word_ends() -> None:
    assert fmt.brief("short") == "short"
    assert fmt.brief("1\n2\n3\n4\n5") == "1\n2\n3\n4 …"
    assert fmt.brief("word " * 100, 22) == "word word word word …"


def test_spans_cover_the_right_characters() -> None:
    code = 'def f():\n    return "x"  # why'
    found = {code[span.start : span.start + span.length]: span.token for span in spans(code, "python")}
    assert found["def"] == "code_keyword"
    assert found["f"] == "code_function"
    assert found["# why"] == "code_comment"
    assert spans(code, "klingon") == []
    assert highlight(code, "py").name == "Python"


def test_only_lines_whose_colours_changed_are_laid_out_again(qapp: Any) -> None:
    document = QTextDocument('x = 1\ny = 2\nz = "open')
    assert apply_spans(document, spans(document.toPlainText(), "python")) == 3
    assert apply_spans(document, spans(document.toPlainText(), "python")) == 0
    cursor = QTextCursor(document)
    cursor.movePosition(QTextCursor.MoveOperation.End)
    cursor.insertText('"  # done\nw = 3')
    assert apply_spans(document, spans(document.toPlainText(), "python")) == 2
    last = document.findBlockByNumber(2).layout().formats()[-1]
    assert document.findBlockByNumber(2).text()[last.start : last.start + last.length] == "# done"


def test_a_stall_is_noticed_with_what_it_computed(qtbot: Any) -> None:
    stalls: list[tuple[float, float]] = []
    watch = StallWatch(lambda late_ms, used_ms: stalls.append((late_ms, used_ms)))
    qtbot.wait(60)
    stalls.clear()
    until = time.thread_time() + 0.12
    while time.thread_time() < until:
        pass
    qtbot.waitUntil(lambda: bool(stalls))
    late_ms, used_ms = stalls[0]
    assert late_ms > 100 and used_ms > 100
    assert watch.worst_ms >= late_ms


def test_a_stall_is_traced_to_its_place(qtbot: Any, caplog: pytest.LogCaptureFixture) -> None:
    def stall() -> None:
        time.sleep(0.2)

    watch, is_patient = StallWatch(), still_patient("the trace of a stall")
    watch.trace()
    while "in stall" not in caplog.text and is_patient():
        qtbot.wait(40)
        stall()
    watch.stop()


def test_the_process_is_older_than_this_test() -> None:
    first = process_age_ms()
    time.sleep(0.05)
    assert 0 < first < (time.time() - psutil.boot_time()) * 1000 + 1000
    assert process_age_ms() - first >= 40


def test_no_exception_goes_unnoticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    trace = tmp_path / "crash.txt"
    trace.write_text("Fatal Python error", encoding="utf-8")
    was_enabled = faulthandler.is_enabled()
    report = CrashReport(trace)
    try:
        assert report.previous == "Fatal Python error"
        shown: list[str] = []
        loop = asyncio.new_event_loop()
        report.watch_loop(loop, shown.append)
        sys.excepthook(ValueError, ValueError("one"), None)
        thread = threading.Thread(target=lambda: 1 // 0)
        thread.start()
        thread.join()

        async def fail() -> None:
            loop.call_soon(lambda: {}["three"])  # type: ignore[var-annotated]
            await asyncio.sleep(0.01)

        loop.run_until_complete(fail())
        loop.close()
        assert shown == ["one", "integer division or modulo by zero", "'three'"]
        assert caplog.text.count("Traceback") >= 2
    finally:
        report.close()
        faulthandler.disable()
        if was_enabled:
            faulthandler.enable()


def test_many_requests_become_few_calls_and_the_last_is_not_lost(qtbot: Any) -> None:
    calls: list[float] = []
    throttle, is_patient = Throttle(lambda: calls.append(time.perf_counter()), 40), still_patient("the third call")
    while len(calls) < 3 and is_patient():
        throttle.request()
        qtbot.wait(1)
    last_request = time.perf_counter()
    throttle.request()
    qtbot.waitUntil(lambda: calls[-1] >= last_request)
    assert np.diff(calls).min() > 0.036  # Qt's timers may be 5 % early


def test_a_slow_call_is_made_less_often(qtbot: Any) -> None:
    began, ended = list[float](), list[float]()

    def slow() -> None:
        began.append(time.perf_counter())
        time.sleep(0.03)
        ended.append(time.perf_counter())

    throttle, is_patient = Throttle(slow, 1), still_patient("the third call")
    while len(ended) < 3 and is_patient():
        throttle.request()
        qtbot.wait(1)
    assert min(np.subtract(began[1:], ended[:-1])) > 5 * 0.03


def test_garbage_is_collected_by_a_timer_only(qtbot: Any) -> None:
    collector = MainThreadCollector()
    try:
        assert not gc.isenabled()
        for _ in range(2000):
            loop: list[Any] = []
            loop.append(loop)
        assert gc.get_count()[0] > 700
        collector.check()
        assert gc.get_count()[0] < 700
    finally:
        collector.stop()
    assert gc.isenabled()
    gc.disable()  # as all tests of the window have it


def test_drafts_survive_a_restart_and_a_damaged_file(tmp_path: Path) -> None:
    path = tmp_path / "drafts.json"
    drafts = Drafts(path)
    drafts.put(None, "new")
    drafts.put(7, "seven")
    drafts.put(8, "x")
    drafts.put(8, "")
    drafts.save()
    again = Drafts(path)
    assert (again.text(None), again.text(7), again.text(8)) == ("new", "seven", "")
    path.write_text("[broken", encoding="utf-8")
    assert Drafts(path).text(7) == ""


def test_a_toast_acts_once_and_goes(qtbot: Any) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    parent.resize(800, 600)
    parent.show()
    toast = Toast(parent)
    acted: list[int] = []
    toast.show_message("Deleted", "Undo", lambda: acted.append(1))
    assert toast.isVisible()
    toast.act()
    toast.act()
    assert acted == [1] and not toast.isVisible()


def test_the_picker_lists_models_with_their_facts(qtbot: Any) -> None:
    picker = ModelPicker()
    qtbot.addWidget(picker)
    starter, broken = Path("/m/starter.gguf"), Path("/m/broken.gguf")
    picker.set_models(
        [
            ShownModel(starter, "SmolLM2", 98_362_432, "Q4_1", is_starter=True),
            ShownModel(broken, "Broken", problem="The file is cut short."),
        ]
    )
    picker.show_loaded(starter, "SmolLM2", "Q4_1")
    actions = [action for action in picker.menu().actions() if action.text()]
    assert actions[0].text() == "SmolLM2\tQ4_1 · 98 MB · starter · loaded"
    assert not actions[1].isEnabled() and actions[1].toolTip() == "The file is cut short."
    with qtbot.waitSignal(picker.chosen) as chosen:
        actions[0].trigger()
    assert chosen.args == [starter]


def test_loading_is_shown_in_place_and_can_be_cancelled(qtbot: Any) -> None:
    picker = ModelPicker()
    qtbot.addWidget(picker)
    picker.show_loading(Path("/m/x.gguf"), "Mixtral", 0.42)
    assert picker.button.text() == "Loading Mixtral 42 %"
    with qtbot.waitSignal(picker.cancel_requested):
        picker.cancel_button.click()


def test_the_notice_shows_progress_and_errors(qtbot: Any) -> None:
    notice = LoadNotice()
    qtbot.addWidget(notice)
    assert notice.isHidden()
    notice.show_progress("Preparing kernels for this processor", 0.35, "35 %")
    assert not notice.isHidden()
    with qtbot.waitSignal(notice.cancelled):
        notice.button.click()
    notice.show_error("line\n" * 40)
    assert notice.text == "line\nline\nline\nline …"
    notice.show_error("There is no such file.")
    assert notice.text == "There is no such file."
    with qtbot.waitSignal(notice.retried):
        notice.button.click()


@pytest.mark.parametrize(("n_used", "n_total", "text"), [(812, 4096, "Context 812 / 4,096"), (0, 0, "")])
def test_the_status_line_counts_the_context(qtbot: Any, n_used: int, n_total: int, text: str) -> None:
    status = StatusLine()
    qtbot.addWidget(status)
    status.set_context(n_used, n_total)
    assert status.text == text
    status.set_rate(38.2)
    status.set_ttft(212)
    assert status.text.startswith("38.2 tok/s  First token 212 ms")


def test_figures_that_change_have_nothing_laid_out_anew(qtbot: Any) -> None:
    class Line(StatusLine):
        n_layouts = 0

        def event(self, event: QEvent) -> bool:
            self.n_layouts += event.type() == QEvent.Type.LayoutRequest
            return super().event(event)

    status = Line()
    qtbot.addWidget(status)
    with qtbot.waitExposed(status):
        status.show()
    for rate, used in zip(range(200, 240), range(1000, 1400, 10), strict=True):
        status.set_rate(float(rate))
        status.set_context(used, 4096)
        QApplication.processEvents()
        if rate < 205:  # the first ones take their room
            status.n_layouts = 0
    assert status.n_layouts == 0
    status.set_context(100_000, 131_072)
    QApplication.processEvents()
    assert status.n_layouts > 0
    for label in status.findChildren(FigureLabel):
        assert label.width() >= label.fontMetrics().horizontalAdvance(label.text())
    status.clear_figures()
    assert status.findChildren(FigureLabel)[0].width() == 0


def test_a_traced_stall_keeps_nothing_of_the_function_that_stalled(
    qtbot: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Held:
        pass

    def stall() -> weakref.ref[Held]:
        held = Held()
        time.sleep(0.2)
        return weakref.ref(held)

    watch, is_patient = StallWatch(), still_patient("the trace of a stall")
    watch.trace()
    while "in stall" not in caplog.text and is_patient():
        qtbot.wait(50)
        held = stall()
        assert held() is None
    qtbot.waitUntil(lambda: watch.n_stalls >= 1)
    watch.stop()
