"""A file whose writer was killed is gone on with; one whose writer failed, or is of something else, is not."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.errors import FileInUseError
from engine.gguf.partial_file import PartialFile

PARTS = [bytes([i]) * (1000 + i) for i in range(1, 9)]

# Writes five parts to the file of its first argument, each at once on disk, then some more bytes, and waits.
WRITER = """
import sys, time
from pathlib import Path
from engine.gguf import partial_file
partial_file.SYNC_BYTES = 1
with partial_file.PartialFile(Path(sys.argv[1]), "one") as partial:
    for i in range(1, 6):
        partial.file.write(bytes([i]) * (1000 + i))
        partial.part_done(i)
    partial.file.write(b"torn")
    partial.file.flush()
    print("written", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The name of a file whose writer was killed behind five parts."""
    path = tmp_path / "model.gguf"
    process = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "written\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return path


def finish(path: Path, identity: str) -> int:
    """Write what is missing; gives how many parts were there."""
    with PartialFile(path, identity) as partial:
        found = partial.n_parts
        for i, part in enumerate(PARTS, 1):
            if i > found:
                partial.file.write(part)
                partial.part_done(i)
    return found


def test_a_killed_writer_s_parts_are_kept(killed: Path) -> None:
    assert not killed.exists()
    assert finish(killed, "one") == 5
    assert killed.read_bytes() == b"".join(PARTS)
    assert list(killed.parent.iterdir()) == [killed]


def test_parts_of_something_else_are_written_anew(killed: Path) -> None:
    assert finish(killed, "another") == 0
    assert killed.read_bytes() == b"".join(PARTS)


def test_parts_that_a_crash_of_the_system_took_are_written_anew(killed: Path) -> None:
    data = killed.with_name(".model.gguf.part")
    with data.open("r+b") as file:
        file.truncate(sum(map(len, PARTS[:3])) + 10)
    assert finish(killed, "one") == 3
    assert killed.read_bytes() == b"".join(PARTS)


def test_a_torn_line_of_the_journal_counts_for_nothing(killed: Path) -> None:
    journal = killed.with_name(".model.gguf.journal.part")
    journal.write_bytes(journal.read_bytes()[:-2])
    assert finish(killed, "one") == 4
    assert killed.read_bytes() == b"".join(PARTS)


def test_a_writer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="stop"), PartialFile(path, "one") as partial:
        partial.file.write(b"new")
        raise RuntimeError("stop")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    with PartialFile(path, "one") as partial:
        partial.file.write(b"first")
        with pytest.raises(FileInUseError, match="another conversion is writing"), PartialFile(path, "one"):
            pass
    assert path.read_bytes() == b"first"
