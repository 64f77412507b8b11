"""`colibri` from outside: exit codes, messages, help, and commands that need no model."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from app import starter
from app.__main__ import COMMANDS, version
from tests.support.program import colibri

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert version() == project["version"]
    assert colibri("--version").stdout == f"colibri {project['version']}\n"


def test_help_names_every_command() -> None:
    done = colibri("--help")
    assert done.returncode == 0
    assert all(command in done.stdout for command in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["sing"], "invalid choice: 'sing'"),
        (["chat", "--top-p", "3"], "--top-p: expected 0 to 1, found 3"),
        (["chat", "--temperature", "-1"], "--temperature: expected 0 or more, found -1"),
        (["chat", "--temperature", "nan"], "--temperature: expected 0 or more, found nan"),
        (["chat", "-n", "0"], "--max-tokens: expected 1 or more, found 0"),
        (["chat", "--threads", "two"], "invalid whole_number value: 'two'"),
        (["chat", "--no-prompt", "--json"], "--json needs -p TEXT"),
        (["starter", "--path", "--if-none"], "not allowed with"),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_what_was_expected(arguments: list[str], complaint: str) -> None:
    done = colibri(*arguments)
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stdout == ""


def test_an_empty_pipe_is_an_error_in_one_line(colibri_home: Path) -> None:
    done = colibri("chat", text="  \n")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "colibri chat: standard input: expected a message, found no text. Use -p TEXT, or a terminal."
    ]


def test_a_pipe_that_is_not_utf_8_is_refused_with_the_offset(colibri_home: Path) -> None:
    done = colibri("chat", text=b"abc \xff def")
    assert done.returncode == 1
    assert "expected UTF-8 text, found the byte 0xff at offset 4" in done.stderr


def test_without_a_display_the_terminal_chat_is_opened_and_said_so(colibri_home: Path) -> None:
    done = colibri()
    assert "There is no display here" in done.stderr
    assert "Opening the terminal chat instead." in done.stderr
    assert "colibri chat: standard input" in done.stderr


def test_starter_path_fails_while_there_is_none(colibri_home: Path) -> None:
    done = colibri("starter", "--path")
    assert (done.returncode, done.stdout) == (1, "")
    assert "`colibri starter` fetches it" in done.stderr


@pytest.mark.starter
def test_starter_finds_a_model_that_is_there(home_with_starter: Path) -> None:
    path = home_with_starter / "data" / "models" / starter.Manifest.load().file_name
    for arguments in (["--path"], []):
        done = colibri("starter", *arguments, PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_CONFIG_FILE=os.devnull)
        assert (done.returncode, done.stdout) == (0, f"{path}\n")
    assert colibri("starter", "--if-none").returncode == 0
