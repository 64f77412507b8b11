"""When experts are asked for ahead."""

from __future__ import annotations

import numpy as np
import pytest

from engine.experts.foresight import Foresight


def foresight(prefetch: str = "auto") -> tuple[Foresight, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    sums = np.zeros(6, np.int64)
    return Foresight(prefetch, sums.data), sums


@pytest.mark.parametrize("reads_disk", [True, False])
def test_always_asks_and_auto_only_while_experts_come_from_the_disk(reads_disk: bool) -> None:
    assert foresight("always")[0].is_of_use(reads_disk)
    assert foresight("auto")[0].is_of_use(reads_disk) == reads_disk


@pytest.mark.parametrize("prefetch", ["auto", "always", "never"])
def test_a_plan_that_foresees_nothing_is_never_let_ask(prefetch: str) -> None:
    nothing = Foresight(prefetch, None)
    assert not nothing.is_of_use(True)
    assert set(vars_of(nothing)) == {0}


def vars_of(of: Foresight) -> list[int]:
    sums = of.sums
    return [sums.foreseeable, sums.foreseen, sums.asked, sums.asked_bytes, sums.used, sums.unused]


def test_who_is_mostly_wrong_pauses_and_then_tries_again() -> None:
    auto, sums = foresight()
    sums[4:] = 20, 50
    answers = [auto.is_of_use(True) for _ in range(300)]
    assert not any(answers[:256])
    assert all(answers[257:])  # nothing new is known against it
    sums[4:] += 20, 50
    assert not auto.is_of_use(True)


def test_who_is_mostly_right_goes_on() -> None:
    auto, sums = foresight()
    for _ in range(50):
        assert auto.is_of_use(True)
        sums[4:] += 20, 10


def test_a_few_mistakes_are_not_judged() -> None:
    auto, sums = foresight()
    sums[4:] = 0, 60
    assert auto.is_of_use(True)
