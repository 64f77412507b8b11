"""`colibri chat` with the starter model: one answer, a pipe, lines, JSON, a terminal, Ctrl-C."""

from __future__ import annotations

import codecs
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.program import colibri
from tests.support.waiting import PATIENCE_S, still_patient

pytestmark = pytest.mark.starter

ROOT = Path(__file__).resolve().parents[2]
FRANCE = "What is the capital of France?"
PARIS = "The capital of France is Paris."
GREEDY = ("--temperature", "0")


@pytest.fixture(autouse=True)
def home(home_with_starter: Path) -> Path:
    return home_with_starter


def test_one_question_is_answered_by_the_starter_model() -> None:
    done = colibri("chat", "-p", FRANCE, *GREEDY)
    assert (done.returncode, done.stdout) == (0, f"{PARIS}\n")


def test_text_from_a_pipe_is_one_message() -> None:
    assert colibri("chat", *GREEDY, text=f"{FRANCE}\n").stdout == f"{PARIS}\n"


def test_json_has_every_figure() -> None:
    done = colibri("chat", "-p", FRANCE, *GREEDY, "--json", "--threads", "1")
    figures = json.loads(done.stdout)
    assert figures["text"] == PARIS
    assert len(figures["token_ids"]) == figures["completion_tokens"] == 8
    assert figures["prompt_tokens"] == 37
    assert figures["expert_calls"] == 0
    assert figures["finish_reason"] == "stop"
    for name in ("ttft_ms", "prefill_tokens_per_second", "decode_tokens_per_second", "load_ms"):
        assert figures[name] > 0


def test_the_answer_ends_after_n_tokens() -> None:
    figures = json.loads(colibri("chat", "-p", "Write a long story.", *GREEDY, "-n", "5", "--json").stdout)
    assert (figures["completion_tokens"], figures["finish_reason"]) == (5, "length")


def test_a_seed_gives_the_same_answer_again() -> None:
    call = ("chat", "-p", "Tell me something.", "--temperature", "1.5", "-n", "12", "--json", "--seed")
    one, same, other = (json.loads(colibri(*call, seed).stdout)["token_ids"] for seed in ("7", "7", "8"))
    assert one == same != other


def test_the_system_prompt_is_the_templates_own_unless_given() -> None:
    counts = [
        json.loads(colibri("chat", "-p", "Hi", "-n", "1", "--json", *system).stdout)["prompt_tokens"]
        for system in ((), ("--system", ""), ("--system", "You are a bird that knows all about France."))
    ]
    assert len(set(counts)) == 3


def test_with_no_prompt_each_line_is_a_message_of_one_conversation() -> None:
    done = colibri("chat", "--no-prompt", *GREEDY, "-n", "16", text=f"{FRANCE}\n\nWhat did I ask you?\n")
    lines = done.stdout.splitlines()
    assert lines[0] == PARIS
    assert len(lines) >= 2
    assert ">" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["-m", "missing.gguf", "-p", "x"], "missing.gguf"),
        (["-m", "README.md", "-p", "x"], "README.md"),
        (["-m", "/", "-p", "x"], "/"),
        (["--context", "64", "-p", "word " * 200], "64"),
        (["--context", "3", "-p", "x"], "context_length must be at least"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line_and_1(arguments: list[str], complaint: str) -> None:
    done = colibri("chat", *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("colibri chat: ")
    assert complaint in last
    assert "Traceback" not in done.stderr


class Terminal:
    """The program in a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "app", "chat", *arguments],
            cwd=ROOT,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(slave)
        self.seen = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a read may end inside a character

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str, timeout_s: float = PATIENCE_S) -> str:
        """What was shown since the last wait, up to and including this text."""
        until_s = time.monotonic() + timeout_s
        while text not in self.seen:
            assert time.monotonic() < until_s, f"{text!r} did not come; seen: {self.seen!r}"
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    self.seen += self._decoder.decode(os.read(self._master, 65536)).replace("\r\n", "\n")
                except OSError:  # the program has ended
                    assert text in self.seen, f"{text!r} did not come; seen: {self.seen!r}"
        shown, self.seen = self.seen.split(text, 1)
        return shown + text

    def interrupt_until(self, text: str) -> None:
        """Ctrl-C, and again after five seconds: readline does not see one that comes just before it waits for a key."""
        is_patient, next_s = still_patient(repr(text)), 0.0
        while text not in self.seen and is_patient():
            if time.monotonic() >= next_s:
                self.process.send_signal(signal.SIGINT)
                next_s = time.monotonic() + 5.0
            if select.select([self._master], [], [], 0.1)[0]:
                self.seen += self._decoder.decode(os.read(self._master, 65536)).replace("\r\n", "\n")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    terminal = Terminal(*GREEDY, "-n", "2000")
    yield terminal
    terminal.close()


def test_a_conversation_in_a_terminal(terminal: Terminal, home: Path) -> None:
    terminal.wait_for("> ")
    terminal.type(f"{FRANCE}\n")
    terminal.wait_for(PARIS)
    terminal.wait_for("> ")
    terminal.type("/stats\n")
    terminal.wait_for("8 tokens")
    terminal.type("/reset\n")
    terminal.wait_for("Forgotten.")
    terminal.type("What is \\\n")
    terminal.wait_for("…")
    terminal.type("the capital of France?\n")
    terminal.wait_for("capital of France")
    terminal.wait_for("> ")
    terminal.type("/quit\n")
    assert terminal.process.wait(PATIENCE_S) == 0
    assert FRANCE in (home / "data" / "terminal_history").read_text()


def test_ctrl_c_stops_the_answer_and_not_the_program(terminal: Terminal) -> None:
    terminal.wait_for("> ")
    terminal.type("Write a very long story about a hummingbird and its friends.\n")
    terminal.wait_for("friends.\n")
    terminal.wait_for(" ")  # between two words of the story
    terminal.process.send_signal(signal.SIGINT)
    terminal.wait_for("(stopped)")
    terminal.wait_for("> ")
    terminal.interrupt_until("Ctrl-D ends the chat.")
    terminal.wait_for("Ctrl-D ends the chat.")
    terminal.type("/reset\n")
    terminal.wait_for("Forgotten.")
    terminal.type(f"{FRANCE}\n")
    terminal.wait_for(PARIS)
    terminal.wait_for("> ")
    terminal.type("\x04")
    assert terminal.process.wait(PATIENCE_S) == 0
