"""Makes and undoes the changes that a finding offers, with the user's consent, through polkit."""

from __future__ import annotations

import json
import logging
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from app import paths
from app.diagnostics.finding import Fix, Verb
from engine.errors import ColibriError
from engine.hardware.system_files import SystemFiles

logger = logging.getLogger(__name__)

HELPER = Path(__file__).resolve().parent.parent / "system_helper.py"
_DISMISSED, _NOT_AUTHORISED = 126, 127  # pkexec's exit codes
_TIMEOUT_S = 300.0  # the user may look for a password
_LASTING = {Verb.LOCKED_MEMORY}  # what a restart does not undo

Run = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


class FixError(ColibriError):
    """A change that was not made; the text says why."""


class FixDeclinedError(FixError):
    """The user did not consent; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change that was made: `before` undoes it. boot_id tells whether a restart has undone it already."""

    verb: Verb
    before: tuple[str, ...]
    after: tuple[str, ...]
    boot_id: str


def helper_command(verb: Verb, values: Sequence[str]) -> list[str]:
    """What pkexec is asked to run: the system's own Python, isolated from all settings of the user."""
    system_python = "/usr/bin/python3"
    python = system_python if Path(system_python).exists() else sys.executable
    return ["pkexec", python, "-I", str(HELPER), verb.value, *values]


def shown_command(fix: Fix) -> str:
    """The same for a user to read."""
    return shlex.join(helper_command(fix.verb, fix.values))


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)


def _why_declined(said: str) -> str:
    """What pkexec's words mean for the user; "" for a question that was simply dismissed."""
    if "authentication agent" in said:
        return " No program of this desktop can ask for it (a polkit agent): copy the command into a terminal instead."
    if "Not authorized" in said:
        return " The password was wrong, or the system's rules do not allow it to this user."
    reason = said.strip().splitlines()
    return f" {reason[-1]}" if reason else ""


class Fixer:
    """Remembers what it changed in `record`, so that it can be undone after the program was closed, too."""

    def __init__(self, record: Path, files: SystemFiles | None = None, run: Run = _run) -> None:
        self._record = record
        self._run = run
        self._boot_id = (files or SystemFiles()).text("proc/sys/kernel/random/boot_id") or ""

    def changes(self) -> dict[Verb, Change]:
        """The changes that are in force."""
        try:
            entries = json.loads(self._record.read_text(encoding="utf-8"))
            found = [
                Change(Verb(entry["verb"]), tuple(entry["before"]), tuple(entry["after"]), entry["boot_id"])
                for entry in entries
            ]
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.warning(
                "%s cannot be read (%s); changes made earlier cannot be undone from here", self._record, error
            )
            return {}
        return {change.verb: change for change in found if change.verb in _LASTING or change.boot_id == self._boot_id}

    def make(self, fix: Fix) -> Change:
        """Make a change; blocks while the user is asked. Raises FixDeclinedError, FixError."""
        before, after = self._ask(fix.verb, fix.values)
        known = self.changes()
        first = known.get(fix.verb)  # a second change is undone to what was before the first
        change = Change(fix.verb, first.before if first else before, after, self._boot_id)
        self._save({**known, fix.verb: change})
        return change

    def undo(self, verb: Verb) -> None:
        """Put back what was before; blocks while the user is asked. Raises FixDeclinedError, FixError."""
        change = self.changes().get(verb)
        if change is None:
            raise FixError(f"{verb.value}: expected a change that was made here, found none. Nothing was undone.")
        self._ask(verb, change.before)
        self._save({other: kept for other, kept in self.changes().items() if other is not verb})

    def _ask(self, verb: Verb, values: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if self._run is _run and not shutil.which("pkexec"):
            raise FixError("pkexec is not installed, which would ask for consent. Copy the command instead.")
        try:
            ended = self._run(helper_command(verb, values))
        except subprocess.TimeoutExpired:
            raise FixDeclinedError("Nobody answered the question for consent; nothing was changed.") from None
        except OSError as error:
            raise FixError(f"pkexec could not be started: {error}. Copy the command instead.") from error
        if ended.returncode in (_DISMISSED, _NOT_AUTHORISED):
            raise FixDeclinedError(f"Consent was not given; nothing was changed.{_why_declined(ended.stderr)}")
        if ended.returncode != 0:
            raise FixError(f"The system refused the change: {ended.stderr.strip()[-300:]}")
        try:
            result = json.loads(ended.stdout)
            return tuple(map(str, result["before"])), tuple(map(str, result["after"]))
        except (ValueError, KeyError, TypeError):
            raise FixError(f"The helper gave no answer that can be read: {ended.stdout[:200]!r}") from None

    def _save(self, changes: dict[Verb, Change]) -> None:
        temporary = self._record.with_suffix(".new")
        temporary.write_text(json.dumps([asdict(change) for change in changes.values()], indent=1), encoding="utf-8")
        temporary.replace(self._record)


def fixer() -> Fixer:
    """Makes and undoes changes on this machine."""
    return Fixer(paths.data_dir() / "system-changes.json")
