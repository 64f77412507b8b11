"""What `--perf` says about where the time went."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.commands.perf_report import perf_report
from tests.support.made_up_run import MadeUpRun
from tests.support.program import ROOT, colibri

MODEL = ROOT / "tests" / "data" / "fixtures" / "mixtral-mixed.gguf"


def test_kinds_of_work_come_with_the_largest_first_and_their_times() -> None:
    lines = perf_report(MadeUpRun(ms=20.0, shares={"experts": 0.7, "attention": 0.2, "router": 0.1}).steps())
    assert lines[0] == "Where the time went (64 steps, 20.00 ms each)"
    assert [line.split()[:4] for line in lines[1:4]] == [
        ["experts", "70.0", "%", "14.000"],
        ["attention", "20.0", "%", "4.000"],
        ["router", "10.0", "%", "2.000"],
    ]


@pytest.mark.parametrize(
    ("band", "share", "words"),
    [("disk", 0.1, "larger --cache-size"), ("router", 0.41, "several conversations"), ("experts", 0.5, "bandwidth")],
)
def test_advice_is_given_from_a_share_on_and_not_below(band: str, share: float, words: str) -> None:
    def report(part: float) -> str:
        return "\n".join(perf_report(MadeUpRun(shares={band: part, "attention": 1 - part}).steps()))

    assert words in report(share)
    assert words not in report(share - 0.02)


def test_the_cache_and_what_was_asked_for_ahead_are_told() -> None:
    text = "\n".join(perf_report(MadeUpRun(loads=2).steps()))
    assert "Experts: 512 needed, 75.0 % found in memory, 128 read (128 MB)" in text
    assert "Ahead: 67 % foreseen, 256 asked for (256 MB), 128 of them in vain" in text
    assert "Ahead" not in "\n".join(perf_report(MadeUpRun().steps()))


def test_of_no_steps_nothing_is_told() -> None:
    assert perf_report(MadeUpRun().steps().chosen(slice(0, 0))) == [
        "Nothing was computed, so there is nothing to tell."
    ]


def test_the_report_follows_an_answer_and_stays_out_of_it(colibri_home: Path) -> None:
    call = ("chat", "-m", str(MODEL), "-p", "Hello", "-n", "6", "--temperature", "0", "--threads", "1")
    limits = ("--cache-size", "4", "--prefetch", "always")
    plain, told = colibri(*call), colibri(*call, *limits, "--perf")
    assert (plain.returncode, told.returncode) == (0, 0), told.stderr
    assert told.stdout == plain.stdout
    for words in ("Where the time went", "Experts:", "Ahead:"):
        assert words in told.stderr
        assert words not in plain.stderr
