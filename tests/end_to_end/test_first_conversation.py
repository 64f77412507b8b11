"""The whole program, as a newcomer meets it: window, starter model, question, answer, stop, restart."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app import paths
from tests.end_to_end.virtual_desktop import Program, VirtualDesktop, wait_until

FIRST_START_S = 240  # kernels are compiled
LATER_START_S = 60
ANSWER_S = 120
WINDOW_SHOWN_MS = 1500
MODEL_READY_MS = 1000
STALL_MS = 50
CLOSE_S = 1.0
BUSY_FACTOR = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))  # times are promised for a machine of one's own


@pytest.fixture(scope="module")
def pictures() -> Path:
    return Path(tempfile.mkdtemp(prefix="colibri-end-to-end-"))


@pytest.fixture
def desktop() -> Iterator[VirtualDesktop]:
    with VirtualDesktop() as desktop:
        yield desktop


def answers() -> list[tuple[str, str]]:
    """(state, text) of every answer in the store, oldest first."""
    path = paths.chats_db()
    if not path.exists():
        return []
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute("SELECT state, content FROM messages WHERE role = 'assistant' ORDER BY id").fetchall()


def titles() -> list[str]:
    with closing(sqlite3.connect(f"file:{paths.chats_db()}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT title FROM chats WHERE deleted_at IS NULL ORDER BY id").fetchall()
    return [title for (title,) in rows]


def milliseconds(program_text: str, what: str) -> float:
    return float(re.findall(rf"{what} after (\d+) ms", program_text)[-1])


def stalls(program_text: str) -> list[tuple[float, float]]:
    """(how long the event loop stood still, how much of it was computing) in ms."""
    found = re.findall(r"stall of (\d+) ms, computing (\d+) ms", program_text)
    return [(float(late), float(used)) for late, used in found]


@pytest.mark.slow
@pytest.mark.starter
def test_first_conversation(desktop: VirtualDesktop, home_with_starter: Path, pictures: Path) -> None:
    home = home_with_starter
    greedy = {"language": "en", "sampling": {"temperature": 0.0}}
    paths.settings_file().write_text(json.dumps(greedy), encoding="utf-8")
    print(f"pictures: {pictures}")
    with Program(desktop, home) as program:
        program.wait_for("window shown", LATER_START_S)
        desktop.picture(pictures / "1-first-start.png")
        program.wait_for("model ready", FIRST_START_S)
        program.focus()

        desktop.type("What is the capital of France?")
        desktop.key("Return")
        wait_until(lambda: [state for state, _ in answers()] == ["complete"], ANSWER_S, "answer", program)
        assert "Paris" in answers()[0][1]
        desktop.picture(pictures / "2-answer.png")

        desktop.key("ctrl+n")
        desktop.type("Write a very long story about a hummingbird, with many chapters.")
        desktop.key("Return")
        wait_until(lambda: len(answers()) == 2 and len(answers()[1][1]) > 80, ANSWER_S, "story", program)
        desktop.picture(pictures / "3-streaming.png")
        desktop.key("Escape")
        wait_until(lambda: answers()[1][0] == "stopped", 5, "stopped answer", program)
        stopped_text = answers()[1][1]
        desktop.picture(pictures / "4-stopped.png")
        closed_within_s = program.close()
        print(f"closed within {closed_within_s:.2f} s")
        assert closed_within_s < CLOSE_S * BUSY_FACTOR
        assert program.process.returncode == 0

    with Program(desktop, home) as program:
        program.wait_for("model ready", LATER_START_S)
        desktop.picture(pictures / "5-second-start.png")
        assert titles() == [
            "What is the capital of France?",
            "Write a very long story about a hummingbird…",
        ]
        assert answers()[1] == ("stopped", stopped_text)
        assert milliseconds(program.text(), "window shown") < WINDOW_SHOWN_MS * BUSY_FACTOR
        assert milliseconds(program.text(), "model ready") < MODEL_READY_MS * BUSY_FACTOR

        program.focus()
        desktop.key("ctrl+n")
        desktop.type("Say it again.")
        desktop.key("Return")
        wait_until(lambda: len(answers()) == 3 and answers()[2][1] != "", ANSWER_S, "third answer", program)
        closed_within_s = program.close()  # in the middle of the answer
        print(f"closed in mid-answer within {closed_within_s:.2f} s")
        assert closed_within_s < CLOSE_S * BUSY_FACTOR
        assert program.process.returncode == 0
    assert answers()[2][0] in {"stopped", "complete"}

    log = (home / "log" / "colibri.log").read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert not re.search(r"(WARNING|ERROR) qt", log)
    ours = [(late, used) for late, used in stalls((home / "output.txt").read_text()) if used > STALL_MS * BUSY_FACTOR]
    assert ours == []
