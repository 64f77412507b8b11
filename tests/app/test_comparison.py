from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.comparison import compare, difference
from tests.app.test_recording import made
from tests.support.made_up_steps import MadeUpTelemetry


def samples(seed: int, middle: float, n: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).normal(middle, 1.0, n)


def test_a_real_change_is_clear_and_lies_in_its_interval() -> None:
    found = difference("time", "ms", samples(1, 20), samples(2, 18))
    assert found.change == pytest.approx(-0.1, abs=0.02)
    assert found.interval[0] < -0.1 < found.interval[1] < 0
    assert found.is_clear
    assert found.first.low < found.first.median < found.first.high


def test_two_runs_of_the_same_thing_do_not_differ_clearly() -> None:
    unclear = [not difference("time", "ms", samples(seed, 20), samples(seed + 100, 20)).is_clear for seed in range(40)]
    assert sum(unclear) >= 34  # 95 % of 40, less what chance may do


def test_a_handful_of_samples_does_not_pretend_to_certainty() -> None:
    found = difference("time", "ms", samples(3, 20, 3), samples(4, 20.2, 3))
    assert found.interval[0] < found.change < found.interval[1]
    assert not found.is_clear


def test_recordings_are_compared_figure_by_figure() -> None:
    telemetry = MadeUpTelemetry(3, 8, 2, 2)
    telemetry.advance(200)
    first = made(telemetry)
    slower = first.steps.chosen(slice(None))
    slower = replace(slower, wall_us=slower.wall_us * 1.2)
    found = {item.name: item for item in compare(first, replace(first, steps=slower))}
    assert found["time per token"].change == pytest.approx(0.2)
    assert found["time per token"].is_clear
    assert found["time per token"].first.n == 198  # two of the steps read prompts
    assert found["reading prompts"].change == pytest.approx(-1 / 6)
    assert found["experts"].change == 0 and not found["experts"].is_clear
    assert "feed forward" not in found  # no time in either


def test_what_one_recording_has_not_is_left_out() -> None:
    telemetry = MadeUpTelemetry(3, 8, 2, 2)
    telemetry.advance(50)
    whole = made(telemetry)
    only_tokens = replace(whole, steps=whole.steps.chosen(whole.steps.is_decode))
    names = {item.name for item in compare(whole, only_tokens)}
    assert "time per token" in names and "reading prompts" not in names
