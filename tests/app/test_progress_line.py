"""Progress in the terminal: redrawn in place, erased at the end, a line per phase in a log."""

from __future__ import annotations

import io

import pytest

from app.commands import progress_line
from app.commands.progress_line import ProgressLine, describe
from app.jobs import Job


class Stream(io.StringIO):
    """A stream that says whether it is a terminal."""

    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_DELAY_S", "_DELAY_IN_LOGS_S", "_REDRAW_S"):
        monkeypatch.setattr(progress_line, name, 0.0)


def copy(job: Job) -> None:
    job.report("Copying", done_bytes=0, total_bytes=20_000_000)
    job.report(done_bytes=5_000_000)
    job.report("Checking", fraction=0.5)


def show(stream: Stream) -> str:
    job = Job("Model")
    with ProgressLine(job, stream):
        job.run_blocking(copy)
    return stream.getvalue()


@pytest.mark.usefixtures("no_delay")
def test_a_terminals_line_is_redrawn_and_erased() -> None:
    shown = show(Stream(is_terminal=True))
    assert "Copying  [######..................]  25%  5 of 20 MB" in shown
    assert "Checking  [############............]  50%" in shown
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown


@pytest.mark.usefixtures("no_delay")
def test_a_log_gets_one_line_for_each_phase() -> None:
    assert show(Stream(is_terminal=False)) == "Model: Copying ...\nModel: Checking ...\n"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_is_quick_is_not_mentioned(is_terminal: bool) -> None:
    assert show(Stream(is_terminal)) == ""


def test_only_what_is_known_is_described() -> None:
    job = Job("x")
    job.report("Waiting")
    assert describe(job) == "Waiting"
