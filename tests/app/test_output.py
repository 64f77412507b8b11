"""What commands put on standard output: reasoning dim in a terminal, and nowhere else."""

from __future__ import annotations

import sys

import pytest

from app.commands.output import ReasoningWriter


@pytest.mark.parametrize(("is_terminal", "expected"), [(True, "\x1b[2mHm. So\x1b[22m\n\nYes, 4."), (False, "Yes, 4.")])
def test_reasoning_is_dim_in_a_terminal_and_left_out_elsewhere(
    is_terminal: bool, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    writer = ReasoningWriter()
    for text in ("Hm.", " So"):
        writer.reasoning(text)
    for text in ("Yes,", " 4."):
        writer.answer(text)
    writer.close()
    assert capsys.readouterr().out == expected


def test_reasoning_that_was_cut_off_is_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    writer = ReasoningWriter()
    writer.reasoning("Hm\x1b[31m")
    writer.close()
    writer.close()
    assert capsys.readouterr().out == "\x1b[2mHm[31m\x1b[22m\n\n"
