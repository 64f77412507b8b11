"""The whole way of a fix: a program called pkexec in PATH asks, and runs the real helper, on a throw-away root."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import sys
from pathlib import Path

import pytest

from app.diagnostics import Fix, Message, Verb
from app.diagnostics.fixes import FixDeclinedError, Fixer, FixError
from engine.hardware.frequency import read_frequency
from engine.hardware.pages import read_transparent_pages
from engine.hardware.system_files import SystemFiles
from tests.support.recorded_machines import write_machine

SOURCE = Path(__file__).resolve().parents[2] / "support" / "pkexec.py"
EFFECT = Message("It is changed.")
GOVERNOR = Fix(Verb.GOVERNOR, ("performance",), EFFECT)
PAGES = Fix(Verb.HUGE_PAGES, ("3005",), EFFECT)
MODE = Fix(Verb.TRANSPARENT_PAGES, ("madvise",), EFFECT)
LIMIT = Fix(Verb.LOCKED_MEMORY, ("unlimited",), EFFECT)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="polkit is Linux's")


class Desk:
    """A machine below a folder, a pkexec in PATH, and who answers its question."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = write_machine("amd-desktop", folder / "root").root
        (self.root / "etc/security/limits.d").mkdir(parents=True)
        (self.root / "proc/sys/kernel/random").mkdir(parents=True, exist_ok=True)
        (self.root / "proc/sys/kernel/random/boot_id").write_text("first\n")
        self._programs, self._record = folder / "bin", folder / "changes.json"
        self._programs.mkdir()
        program = Path(shutil.copy(SOURCE, self._programs / "pkexec"))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        (self._programs / "root").write_text(str(self.root))
        self.answer("yes")
        monkeypatch.setenv("PATH", f"{self._programs}{os.pathsep}{os.environ['PATH']}")

    def answer(self, word: str) -> None:
        (self._programs / "answer").write_text(word)

    @property
    def asked(self) -> list[str]:
        log = self._programs / "asked"
        return log.read_text().splitlines() if log.exists() else []

    def fixer(self) -> Fixer:
        """A new one each time, as after a restart of the program."""
        return Fixer(self._record, SystemFiles(self.root))

    def state(self) -> tuple[set[str], str | None, str, list[str]]:
        """Governors, mode, pool, and the files of limits."""
        files = SystemFiles(self.root)
        pool = (self.root / "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages").read_text().strip()
        limits = sorted(path.name for path in (self.root / "etc/security/limits.d").iterdir())
        mode = (self.root / "sys/kernel/mm/transparent_hugepage/enabled").read_text().strip()
        return set(read_frequency(files).governors.values()), read_transparent_pages(files).mode or mode, pool, limits


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(tmp_path, monkeypatch)


def test_every_fix_is_made_with_consent_and_undone_by_a_later_start(desk: Desk) -> None:
    before = desk.state()
    for fix in (GOVERNOR, PAGES, MODE):
        desk.fixer().make(fix)
    governors, mode, pool, _ = desk.state()
    assert (governors, mode, pool) == ({"performance"}, "madvise", "3005")
    assert set(desk.fixer().changes()) == {Verb.GOVERNOR, Verb.HUGE_PAGES, Verb.TRANSPARENT_PAGES}
    for verb in desk.fixer().changes():
        desk.fixer().undo(verb)
    assert desk.state() == before and desk.fixer().changes() == {}
    assert desk.asked[:3] == ["set-governor performance", "set-nr-hugepages 3005", "set-thp madvise"]
    assert len(desk.asked) == 6


def test_the_limit_of_the_user_who_asked_is_lifted_and_put_back(desk: Desk) -> None:
    user = pwd.getpwuid(os.getuid()).pw_name
    if user == "root":
        with pytest.raises(FixError, match="expected a user's name, found 'root'"):
            desk.fixer().make(LIMIT)
        return
    desk.fixer().make(LIMIT)
    assert f"{user} - memlock unlimited" in (desk.root / "etc/security/limits.d/90-colibri-memlock.conf").read_text()
    desk.fixer().undo(Verb.LOCKED_MEMORY)
    assert desk.state()[3] == []


@pytest.mark.parametrize(("word", "reason"), [("no", "Request dismissed"), ("stranger", "The password was wrong, or")])
def test_without_consent_nothing_changes_and_the_reason_is_told(desk: Desk, word: str, reason: str) -> None:
    before = desk.state()
    desk.answer(word)
    with pytest.raises(FixDeclinedError, match=rf"nothing was changed\..*{reason}"):
        desk.fixer().make(GOVERNOR)
    assert desk.state() == before and desk.fixer().changes() == {} and desk.asked == ["set-governor performance"]


def test_an_undo_that_is_declined_leaves_the_change_and_its_record(desk: Desk) -> None:
    desk.fixer().make(MODE)
    desk.answer("no")
    with pytest.raises(FixDeclinedError):
        desk.fixer().undo(Verb.TRANSPARENT_PAGES)
    assert set(desk.fixer().changes()) == {Verb.TRANSPARENT_PAGES} and desk.state()[1] == "madvise"


def test_what_the_helper_refuses_is_told_in_its_words(desk: Desk) -> None:
    before = desk.state()
    with pytest.raises(FixError, match=r"expected at most .* pages, nine tenths of the memory"):
        desk.fixer().make(Fix(Verb.HUGE_PAGES, ("99999999",), EFFECT))
    assert desk.state() == before


def test_where_there_is_no_pkexec_the_command_is_pointed_to(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FixError, match=r"pkexec is not installed.*Copy the command"):
        desk.fixer().make(GOVERNOR)
    assert desk.asked == []
