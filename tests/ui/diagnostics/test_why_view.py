"""The button that asks why answers are slow: its answer is read away from the window's thread, and shown with fixes."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QWidget

from app.engine_service import EngineService
from tests.support.made_up_run import MadeUpRun, let_run
from tests.support.waiting import until
from tests.ui.diagnostics.test_system_page import Machine, make_page
from ui.diagnostics.why import WhyQuestion
from ui.diagnostics.why_view import WhyButton, WhyView


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
async def question(machine: Machine, qapp: object) -> AsyncIterator[WhyQuestion]:
    service: Any = EngineService()
    yield WhyQuestion(machine.look, service)
    service.close()


def run_a_model(question: WhyQuestion, run: MadeUpRun) -> None:
    let_run(question._service, run)


async def answered(question: WhyQuestion) -> None:
    await until(lambda: not question.is_busy, QCoreApplication.processEvents)


async def test_the_question_is_answered_beside_the_windows_thread(question: WhyQuestion, machine: Machine) -> None:
    parent = QWidget()
    view, button = WhyView(question, parent), WhyButton(question, parent)
    assert view.isHidden() and button.text() == "Why is it slow?"
    run_a_model(question, MadeUpRun(n_workers=8))
    button.click()
    assert not view.isHidden() and view.rows == [] and not button.isEnabled()
    await answered(question)
    assert threading.main_thread().name not in machine.threads and machine.threads
    assert button.isEnabled()
    assert [row.cause.id for row in view.rows] == ["frequency", "pages"]
    first, second = (row.cause.gain for row in view.rows)
    assert first is not None and second is not None and first > second > 1
    assert "choose the governor performance" in view.rows[0].sentence.text()
    assert view.rows[0].sentence.text() in view.accessibleDescription()
    parent.deleteLater()


async def test_a_long_sentence_is_shown_whole_however_narrow_the_page(question: WhyQuestion) -> None:
    view = WhyView(question)
    view.resize(320, 10)
    run_a_model(question, MadeUpRun(n_workers=8))
    question.ask()
    await answered(question)
    view.resize(320, view.heightForWidth(320))
    QCoreApplication.processEvents()
    sentence = view.rows[0].sentence
    assert sentence.height() >= sentence.heightForWidth(sentence.width()) > 2 * sentence.fontMetrics().height()
    view.deleteLater()


async def test_before_any_answer_it_says_what_to_do(question: WhyQuestion) -> None:
    view = WhyView(question)
    question.ask()
    await answered(question)
    assert "ask the model something" in view.rows[-1].sentence.text()
    view.deleteLater()


async def test_a_command_of_the_answer_is_copied(question: WhyQuestion) -> None:
    view, told = WhyView(question), list[bool]()
    view.copied.connect(lambda: told.append(True))
    question.ask()
    await answered(question)
    copy = next(button for button in view.rows[0].children() if getattr(button, "toolTip", str)() == "Copy the command")
    copy.click()
    assert QGuiApplication.clipboard().text() == view.rows[0].cause.command and told == [True]
    view.deleteLater()


async def test_the_fix_of_an_answer_is_made_only_with_consent(question: WhyQuestion, machine: Machine) -> None:
    page = make_page(machine, question=question)
    run_a_model(question, MadeUpRun(n_workers=8))
    question.ask()
    await answered(question)
    assert page.why is not None
    fix = next(button for button in page.why.rows[0].findChildren(QPushButton) if button.text() == "Fix…")
    fix.click()
    assert machine.asked == [] and "performance" in page.confirmation.text()
    page.confirmation.accept()
    governor = machine.root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    await until(lambda: governor.read_text().strip() == "performance", QCoreApplication.processEvents)
    await until(lambda: not page.check.is_busy, QCoreApplication.processEvents)
    await page.check.close()
    page.deleteLater()


async def test_an_answer_that_cannot_be_found_is_told(question: WhyQuestion, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    question.failed.connect(told.append)

    def look(_needs: object) -> Any:
        raise OSError("gone")

    monkeypatch.setattr(question, "_look", look)
    question.ask()
    await answered(question)
    assert told == ["gone"] and question.causes == []
