"""The system check's page shows findings at a glance, opens them, and changes nothing without consent."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMessageBox

from app.diagnostics import Host, Inspection, ModelNeeds, Status, measurements
from app.diagnostics.fixes import Fixer
from app.jobs import Job
from app.system_helper import apply
from engine.hardware.system_files import SystemFiles
from tests.support import waiting
from tests.support.recorded_machines import write_machine
from ui.diagnostics.finding_row import FindingBody
from ui.diagnostics.system_check import SystemCheck
from ui.diagnostics.system_page import SystemPage
from ui.diagnostics.why import WhyQuestion
from ui.theme import current_theme


class Machine:
    """A recorded desktop, with the real helper behind a pkexec that agrees or declines."""

    def __init__(self, folder: Path) -> None:
        self.root = write_machine("amd-desktop", folder / "root").root
        self.folder, self.agrees = folder, True
        self.asked: list[Sequence[str]] = []
        self.threads: set[str] = set()

    def look(self, model: ModelNeeds | None) -> Inspection:
        self.threads.add(threading.current_thread().name)
        host = Host("Linux", "x86_64", "glibc 2.36", None)
        return Inspection(SystemFiles(self.root), host, self.folder, self.folder / "kernels", model)

    def pkexec(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(command)
        if not self.agrees:
            return subprocess.CompletedProcess(command, 126, "", "")
        return subprocess.CompletedProcess(command, 0, json.dumps(apply(command[4], command[5:], self.root)), "")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def make_page(machine: Machine, *, has_polkit: bool = True, question: WhyQuestion | None = None) -> SystemPage:
    fixer = Fixer(machine.folder / "changes.json", SystemFiles(machine.root), machine.pkexec)
    return SystemPage(SystemCheck(machine.look, fixer, lambda: None, has_polkit), question=question)


@pytest.fixture
async def page(machine: Machine, qapp: object) -> AsyncIterator[SystemPage]:
    page = make_page(machine)
    page.check.check()
    await until(lambda: page.is_complete)
    yield page
    await page.check.close()
    page.deleteLater()


async def until(condition: Callable[[], bool]) -> None:
    await waiting.until(condition, QCoreApplication.processEvents)  # the test's own loop does not serve Qt's timers


def opened(page: SystemPage, id_: str) -> FindingBody:
    """What a row shows below its line, opened if it was not."""
    page.rows[id_].open()
    body = page.rows[id_].body
    assert body is not None
    return body


def governor(machine: Machine) -> str:
    return (machine.root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").read_text().strip()


async def test_the_state_is_told_at_a_glance_and_problems_are_open(page: SystemPage) -> None:
    assert page.summary.text().startswith("Problems: 3  ·  Advice: ")
    assert {id_ for id_, row in page.rows.items() if row.is_open} == {"governor", "frequency", "transparent-pages"}
    assert len(page.rows) == 29


async def test_checks_run_beside_the_windows_thread(page: SystemPage, machine: Machine) -> None:
    assert threading.main_thread().name not in machine.threads and machine.threads


async def test_a_row_opens_and_closes_by_the_keyboard(page: SystemPage, qtbot: object) -> None:
    row = page.rows["swap"]
    assert row.line.focusPolicy() & Qt.FocusPolicy.TabFocus
    qtbot.keyClick(row.line, Qt.Key.Key_Space)  # type: ignore[attr-defined]
    body = opened(page, "swap")
    assert row.is_open and not body.isHidden() and "4 KiB" in body.why.text()
    qtbot.keyClick(row.line, Qt.Key.Key_Space)  # type: ignore[attr-defined]
    assert body.isHidden()


async def test_a_screen_reader_hears_title_status_and_value(page: SystemPage) -> None:
    assert page.rows["turbo"].line.accessibleName() == "Turbo: advice, off"
    assert opened(page, "governor").fix.accessibleName() == "Fix: Frequency governor"
    assert page.rows["amx"].line.accessibleName().startswith("AMX permission: not available")


async def test_a_command_is_copied(page: SystemPage) -> None:
    notices: list[str] = []
    page.notice.connect(notices.append)
    opened(page, "turbo").copy.click()
    assert QGuiApplication.clipboard().text() == "echo 1 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    assert notices == ["The command was copied"]


async def test_nothing_is_changed_before_the_user_agrees(page: SystemPage, machine: Machine) -> None:
    opened(page, "governor").fix.click()
    assert "performance" in page.confirmation.text()
    assert page.confirmation.defaultButton() is page.confirmation.button(QMessageBox.StandardButton.Cancel)
    page.confirmation.reject()
    await asyncio.sleep(0.05)
    assert machine.asked == [] and governor(machine) == "powersave"


async def test_a_fix_is_made_shown_and_undone(page: SystemPage, machine: Machine) -> None:
    row = page.rows["governor"]
    body = opened(page, "governor")
    assert body.undo.isHidden()
    body.fix.click()
    page.confirmation.accept()
    await until(lambda: page.is_complete and row.finding.status is Status.OK)
    assert governor(machine) == "performance"
    assert body.fix.isHidden() and not body.undo.isHidden()
    body.undo.click()
    page.confirmation.accept()
    await until(lambda: page.is_complete and row.finding.status is Status.PROBLEM)
    assert governor(machine) == "powersave"
    assert body.undo.isHidden() and not body.fix.isHidden()


async def test_a_declined_question_of_the_system_is_told(page: SystemPage, machine: Machine) -> None:
    notices: list[str] = []
    page.notice.connect(notices.append)
    machine.agrees = False
    opened(page, "governor").fix.click()
    page.confirmation.accept()
    await until(lambda: page.is_complete and bool(notices))
    assert "nothing was changed" in notices[0] and governor(machine) == "powersave"


async def test_without_polkit_only_the_command_is_offered(machine: Machine, qapp: object) -> None:
    page = make_page(machine, has_polkit=False)
    page.check.check()
    await until(lambda: page.is_complete)
    body = opened(page, "governor")
    assert body.fix.isHidden() and body.undo.isHidden()
    assert not body.command.isHidden() and "scaling_governor" in body.command.text()
    page.deleteLater()


async def test_a_measurement_shows_its_progress_and_can_be_cancelled(
    page: SystemPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(inspection: Inspection, job: Job) -> list[object]:
        job.report("memory", fraction=0.25)
        while True:
            job.check()
            threading.Event().wait(0.01)

    monkeypatch.setattr(measurements, "measure", endless)
    page.measure.click()
    await until(lambda: page.bar.value() == 250)
    assert not page.bar.isHidden() and page.summary.text() == "Measuring the memory…" and not page.again.isEnabled()
    page.cancel.click()
    await until(lambda: page.is_complete)
    assert (
        page.bar.isHidden()
        and page.again.isEnabled()
        and page.rows["memory-speed"].finding.status is Status.UNAVAILABLE
    )


async def test_a_new_check_sees_what_has_changed_and_leaves_rows_open(page: SystemPage, machine: Machine) -> None:
    page.rows["turbo"].open()
    (machine.root / "sys/devices/system/cpu/cpufreq/boost").write_text("1\n")
    page.again.click()
    await until(lambda: page.is_complete)
    assert page.rows["turbo"].finding.status is Status.OK
    assert page.rows["turbo"].is_open and page.rows["turbo"].line.accessibleName() == "Turbo: in order, on"


async def test_the_page_follows_the_theme(page: SystemPage) -> None:
    before = page.rows["turbo"].line.icon_label.pixmap().toImage()
    current_theme().set_mode("dark")
    assert page.rows["turbo"].line.icon_label.pixmap().toImage() != before
