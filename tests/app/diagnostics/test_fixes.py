"""Changes are asked for through pkexec, remembered, and undone; the helper runs for real, on a throw-away root."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from app.diagnostics import Fix, Message, Verb
from app.diagnostics.fixes import HELPER, FixDeclinedError, Fixer, FixError, helper_command, shown_command
from app.system_helper import RefusedError, apply
from engine.hardware.pages import read_transparent_pages
from engine.hardware.system_files import SystemFiles
from tests.support.recorded_machines import write_machine

FIX = Fix(Verb.TRANSPARENT_PAGES, ("madvise",), Message("They are allowed."))
BOOT_ID = "proc/sys/kernel/random/boot_id"


class Polkit:
    """Stands for pkexec and its question: runs the real helper's change below `root`, unless the user declines."""

    def __init__(self, root: Path, exit_code: int = 0) -> None:
        self.root, self.exit_code, self.asked = root, exit_code, list[Sequence[str]]()

    def __call__(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(command)
        if self.exit_code:
            return subprocess.CompletedProcess(command, self.exit_code, "", "Request dismissed\n")
        verb, *values = command[4:]
        try:
            result = apply(verb, values, self.root, "ada")
        except RefusedError as error:
            return subprocess.CompletedProcess(command, 1, "", f"{error}\n")
        mode = self.root / "sys/kernel/mm/transparent_hugepage/enabled"
        if verb == "set-thp":  # the kernel writes the list anew around what was chosen
            mode.write_text(
                " ".join(f"[{word}]" if word == values[0] else word for word in ("always", "madvise", "never"))
            )
        return subprocess.CompletedProcess(command, 0, json.dumps(result), "")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    machine = write_machine("amd-desktop", tmp_path / "root").root
    (machine / BOOT_ID).parent.mkdir(parents=True, exist_ok=True)
    (machine / BOOT_ID).write_text("first\n")
    return machine


def mode(root: Path) -> str | None:
    return read_transparent_pages(SystemFiles(root)).mode


def test_a_change_is_made_and_undone_also_by_a_later_start(tmp_path: Path, root: Path) -> None:
    polkit, record = Polkit(root), tmp_path / "changes.json"
    change = Fixer(record, SystemFiles(root), polkit).make(FIX)
    assert (change.before, mode(root)) == (("never",), "madvise")
    later = Fixer(record, SystemFiles(root), polkit)
    assert set(later.changes()) == {Verb.TRANSPARENT_PAGES}
    later.undo(Verb.TRANSPARENT_PAGES)
    assert mode(root) == "never" and later.changes() == {}


def test_two_changes_are_undone_to_what_was_before_the_first(tmp_path: Path, root: Path) -> None:
    fixer = Fixer(tmp_path / "changes.json", SystemFiles(root), Polkit(root))
    fixer.make(FIX)
    fixer.make(Fix(Verb.TRANSPARENT_PAGES, ("always",), FIX.effect))
    fixer.undo(Verb.TRANSPARENT_PAGES)
    assert mode(root) == "never"


def test_a_restart_forgets_what_it_undid_and_keeps_what_lasts(tmp_path: Path, root: Path) -> None:
    (root / "etc/security/limits.d").mkdir(parents=True)
    fixer = Fixer(tmp_path / "changes.json", SystemFiles(root), Polkit(root))
    fixer.make(FIX)
    fixer.make(Fix(Verb.LOCKED_MEMORY, ("unlimited",), FIX.effect))
    (root / BOOT_ID).write_text("second\n")
    assert set(Fixer(tmp_path / "changes.json", SystemFiles(root)).changes()) == {Verb.LOCKED_MEMORY}


@pytest.mark.parametrize("exit_code", [126, 127])
def test_without_consent_nothing_changes(tmp_path: Path, root: Path, exit_code: int) -> None:
    fixer = Fixer(tmp_path / "changes.json", SystemFiles(root), Polkit(root, exit_code))
    with pytest.raises(FixDeclinedError, match="Consent was not given"):
        fixer.make(FIX)
    assert mode(root) == "never" and fixer.changes() == {}


@pytest.mark.parametrize(
    ("said", "told"),
    [  # as pkexec 122 said it, asked by a user without a terminal, and by one with a wrong password
        (
            "Error creating textual authentication agent: Error opening current controlling terminal for the process "
            "(`/dev/tty'): No such device or address",
            "copy the command into a terminal",
        ),
        ("Error executing command as another user: Not authorized\n\nThis incident has been reported.\n", "password"),
        ("Error executing command as another user: Request dismissed\n", "dismissed"),
    ],
)
def test_why_consent_was_not_given_is_told_in_words_that_help(tmp_path: Path, root: Path, said: str, told: str) -> None:
    def declined(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 127, "", said)

    with pytest.raises(FixDeclinedError, match=told) as caught:
        Fixer(tmp_path / "changes.json", SystemFiles(root), declined).make(FIX)
    assert "incident" not in str(caught.value)


def test_a_refusal_of_the_helper_is_told_in_its_words(tmp_path: Path, root: Path) -> None:
    fixer = Fixer(tmp_path / "changes.json", SystemFiles(root), Polkit(root))
    with pytest.raises(FixError, match="expected at most"):
        fixer.make(Fix(Verb.HUGE_PAGES, ("999999999",), FIX.effect))


def test_undoing_what_was_not_done_is_refused(tmp_path: Path, root: Path) -> None:
    with pytest.raises(FixError, match="found none"):
        Fixer(tmp_path / "changes.json", SystemFiles(root), Polkit(root)).undo(Verb.GOVERNOR)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"verb": "format-disk"}]', "\x00"])
def test_a_damaged_record_is_no_record(tmp_path: Path, root: Path, text: str) -> None:
    record = tmp_path / "changes.json"
    record.write_text(text)
    assert Fixer(record, SystemFiles(root)).changes() == {}


def test_the_helper_is_started_isolated_and_by_its_full_path() -> None:
    command = helper_command(Verb.GOVERNOR, ["performance"])
    assert command[0] == "pkexec" and Path(command[1]).is_absolute()
    assert command[2:] == ["-I", str(HELPER), "set-governor", "performance"]
    assert HELPER.is_file()
    assert shown_command(FIX).endswith("set-thp madvise")
