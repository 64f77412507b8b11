"""The whole program, as a newcomer meets it: window, starter model, question, answer, stop, restart."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app import paths
from app.chats import ChatStore
from tests.end_to_end.virtual_desktop import Program, VirtualDesktop, wait_until

FIRST_START_S = 300  # kernels are compiled
LATER_START_S = 180
ANSWER_S = 300
STALL_MS = 2000  # of computing: less than a call of the engine's on the window's thread takes, on any machine


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
        wait_until(lambda: answers()[1][0] == "stopped", ANSWER_S, "stopped answer", program)
        stopped_text = answers()[1][1]
        desktop.picture(pictures / "4-stopped.png")
        print(f"closed within {program.close():.2f} s")
        assert program.process.returncode == 0

    with Program(desktop, home) as program:
        program.wait_for("model ready", LATER_START_S)
        desktop.picture(pictures / "5-second-start.png")
        assert titles() == [
            "What is the capital of France?",
            "Write a very long story about a hummingbird…",
        ]
        assert answers()[1] == ("stopped", stopped_text)
        assert program.text().rindex("window shown") < program.text().rindex("model ready")

        program.focus()
        desktop.key("ctrl+n")
        desktop.type("Write a very long story about a river, with many chapters.")
        desktop.key("Return")
        wait_until(lambda: len(answers()) == 3 and answers()[2][1] != "", ANSWER_S, "third answer", program)
        print(f"closed in mid-answer within {program.close():.2f} s")
        assert program.process.returncode == 0
    ChatStore(paths.chats_db()).close()  # on a busy machine the program does not wait until the answer has ended
    state, text = answers()[2]
    assert state == "stopped" and text

    log = (home / "log" / "colibri.log").read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert not re.search(r"(WARNING|ERROR) qt", log)
    found = stalls((home / "output.txt").read_text())
    print(f"stalls (late, computing) in ms: {found}")
    assert [(late, used) for late, used in found if used > STALL_MS] == []
