"""Why is it slow? At most three sentences, most important first, whose gains follow from what was measured."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.diagnostics import Inspection, Verb, run_checks
from app.diagnostics.causes import Cause, OpenModel
from app.diagnostics.last_run import LEAST_TOKENS, LastRun
from app.diagnostics.why import MOST_SENTENCES, explain
from app.machine_speeds import MachineSpeeds
from engine.hardware.memory_speed import MemorySpeed
from engine.steps import BANDS
from tests.app.diagnostics.test_checks import inspection
from tests.support.made_up_run import EVEN, MadeUpRun
from tests.support.recorded_machines import NAMES

MODEL = OpenModel("Mixtral", 4.5, 6_000_000_000, 6_000_000_000, 0.0)
QUIET = "epyc-zen4"  # a machine on which nothing is wrong


def machine(name: str, folder: Path, *, memory: float | None = None) -> Inspection:
    """A recorded machine; `memory`: the bandwidth that was measured on it, in GB/s."""
    looked = replace(inspection(name, folder), speeds_file=folder / "speeds.json")
    if memory is not None:
        rate = memory * 1e9
        MachineSpeeds().with_memory(MemorySpeed(2, rate, rate, rate)).save(folder / "speeds.json")
    return looked


def why(looked: Inspection, run: MadeUpRun | None, model: OpenModel | None = MODEL) -> list[Cause]:
    return explain(looked, run_checks(looked), None if run is None else run.steps(), model)


def full(looked: Inspection, **facts: Any) -> MadeUpRun:
    """A run that uses every core."""
    return MadeUpRun(n_workers=looked.cores.n_usable_cores, **facts)


def shares(**bands: float) -> dict[str, float]:
    """These, and the rest of the time for experts."""
    return {**bands, "experts": 1.0 - sum(bands.values())}


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("intel-hybrid-laptop", "heat"),
        ("amd-desktop", "frequency"),
        ("xeon-two-sockets", "nothing"),
        ("epyc-zen4", "nothing"),
        ("kvm-guest", "memory-pressure"),
        ("wsl2", "nothing"),
        ("container", "quota"),
        ("arm-board", "nothing"),
    ],
)
def test_each_recorded_machine_is_told_its_own_first_cause(tmp_path: Path, name: str, first: str) -> None:
    looked = machine(name, tmp_path)
    found = why(looked, full(looked, shares=shares(waiting=0.1), disturbed=1.2))
    assert found[0].id == first, [(cause.id, cause.gain) for cause in found]


def test_a_machine_in_order_is_told_what_sets_the_pace(tmp_path: Path) -> None:
    looked = machine(QUIET, tmp_path / "a")
    (cause,) = why(looked, full(looked))
    assert cause.gain is None and "measure the memory" in str(cause.sentence)
    looked = machine(QUIET, tmp_path / "b", memory=12.0)
    (cause,) = why(looked, full(looked))  # 200 MB in 20 ms, of which the team worked 98 %
    assert "200 MB of weights at 10.2 of the 12.0 GB/s" in str(cause.sentence)
    looked = machine(QUIET, tmp_path / "c", memory=5.0)
    (cause,) = why(looked, full(looked))
    assert "stays in the processor's cache" in str(cause.sentence)


@pytest.mark.parametrize(
    ("facts", "model", "words"),
    [
        ({"loads": 3}, MODEL, "for the first time"),
        ({"loads": 3, "evictions": 3}, replace(MODEL, all_experts_bytes=9_000_000_000), "3.0 GB more, which is free"),
        ({"loads": 3, "evictions": 3}, replace(MODEL, all_experts_bytes=9 * 10**14), "do not fit into memory"),
        ({"loads": 3, "evictions": 3}, None, "do not fit into memory"),
    ],
)
def test_waiting_for_the_disk_gains_what_was_waited(
    tmp_path: Path, facts: dict[str, int], model: OpenModel | None, words: str
) -> None:
    looked = machine(QUIET, tmp_path)
    (cause,) = why(looked, full(looked, shares=shares(disk=0.4), **facts), model)
    assert cause.gain == pytest.approx(1 / 0.6)
    assert words in str(cause.sentence)
    assert "40 % of each token" in str(cause.sentence) and "about 1.7 times as fast" in str(cause.sentence)


def test_a_governor_gains_the_ratio_of_frequencies_as_far_as_memory_lets_it(tmp_path: Path) -> None:
    looked = machine("amd-desktop", tmp_path / "a")
    frequency = looked.frequency
    ratio = max(frequency.highest_khz.values()) / min(frequency.lowest_khz.values())
    cause = {cause.id: cause for cause in why(looked, full(looked, shares=shares(host=0.2)))}["frequency"]
    assert cause.gain == pytest.approx(1 / (1 - 0.8 * (1 - 1 / ratio)))
    assert cause.fix is not None and cause.fix.verb is Verb.GOVERNOR
    rate = 200e6 / (0.8 * 20e-3)
    slow_memory = machine("amd-desktop", tmp_path / "b", memory=1.25 * rate / 1e9)
    run = full(slow_memory, shares=shares(host=0.2))
    cause = {cause.id: cause for cause in why(slow_memory, run)}["frequency"]
    assert cause.gain == pytest.approx(1 / (1 - 0.8 * (1 - 1 / 1.25)))


def test_small_pages_gain_what_reading_through_them_costs(tmp_path: Path) -> None:
    looked = machine("amd-desktop", tmp_path)
    model = replace(MODEL, small_page_share=0.9)
    cause = {cause.id: cause for cause in why(looked, full(looked, shares=shares(host=0.1)), model)}["pages"]
    assert cause.gain == pytest.approx(1 / (1 - 0.2 * 0.9 * 0.9))
    assert cause.fix is not None and cause.fix.verb is Verb.TRANSPARENT_PAGES
    assert "90 % of the model" in str(cause.sentence)


def test_other_programs_cost_what_undisturbed_tokens_are_quicker(tmp_path: Path) -> None:
    looked = machine(QUIET, tmp_path)
    n_cpus = len(looked.cores.online)
    (looked.files.root / "proc/loadavg").write_text(f"{n_cpus}.0 3.0 2.0 1/100 1\n")
    (cause,) = why(looked, full(looked, disturbed=3.0))
    assert (cause.id, cause.gain) == ("other-programs", pytest.approx(1.5))
    (looked.files.root / "proc/loadavg").write_text("0.1 0.1 0.1 1/100 1\n")
    (cause,) = why(looked, full(looked, disturbed=3.0))
    assert cause.id == "nothing"


def test_cores_without_work_gain_their_share_up_to_the_memorys_limit(tmp_path: Path) -> None:
    looked = machine(QUIET, tmp_path / "a")
    n_cores = looked.cores.n_usable_cores
    (cause,) = why(looked, MadeUpRun(n_workers=n_cores // 2, shares=shares(host=0.0)))
    assert (cause.id, cause.gain) == ("threads", pytest.approx(2.0))
    assert f"Only {n_cores // 2} of {n_cores} cores" in str(cause.sentence)
    near = machine(QUIET, tmp_path / "b", memory=10.05)
    (cause,) = why(near, MadeUpRun(n_workers=n_cores // 2, shares=shares(host=0.0)))
    assert cause.id == "nothing"


def test_more_workers_than_cores_wait_for_each_other(tmp_path: Path) -> None:
    looked = machine(QUIET, tmp_path)
    (cause,) = why(looked, MadeUpRun(n_workers=2 * looked.cores.n_usable_cores, shares=shares(waiting=0.5)))
    assert (cause.id, cause.gain) == ("threads", pytest.approx(2.0))


def test_wide_weights_at_the_memorys_limit_gain_the_bytes_that_fewer_bits_save(tmp_path: Path) -> None:
    looked = machine(QUIET, tmp_path, memory=10.5)
    run = full(looked, shares=shares(host=0.0))
    (cause,) = why(looked, run, replace(MODEL, weight_bits=8.5))
    assert (cause.id, cause.gain) == ("bits", pytest.approx(8.5 / 4.5))
    assert why(looked, run, MODEL)[0].id == "nothing"


def test_the_step_that_ends_an_answer_and_gives_its_positions_back_does_not_count_as_a_short_conversation(
    tmp_path: Path,
) -> None:
    looked = machine(QUIET, tmp_path)
    run = full(looked, kv_start=4000, kv_per_token=40, us_per_position=2.0, shares=shares(attention=0.0))
    steps = run.steps()
    steps.kv_tokens[-1] = 0
    ended, going_on = LastRun.of(steps), LastRun.of(run.steps())
    assert ended is not None and going_on is not None and going_on.attention_growth is not None
    assert ended.kv_tokens == 4000 + 40 * 63
    assert ended.attention_growth == pytest.approx(going_on.attention_growth, rel=0.01)


def test_the_length_of_a_conversation_costs_what_attention_grew_by(tmp_path: Path) -> None:
    looked = machine(QUIET, tmp_path)
    run = full(looked, kv_start=4000, kv_per_token=40, us_per_position=2.0, shares=shares(attention=0.0))
    (cause,) = why(looked, run)
    mean_ms = 2e-3 * (4000 + 40 * 32.5)
    assert (cause.id, cause.gain) == ("conversation", pytest.approx((20 + mean_ms) / 20, rel=0.01))


def test_a_long_prompt_is_told_with_its_time_and_the_unused_matrix_unit(tmp_path: Path) -> None:
    looked = machine("xeon-two-sockets", tmp_path)
    run = full(looked, prompt_tokens=4000, prompt_s=9 * 64 * 0.02)
    (cause,) = why(looked, run)
    assert (cause.id, cause.gain) == ("prompt", pytest.approx(1 / (1 - 0.45)))
    assert "Reading 4,000 tokens of the prompt took 11.5 of 12.8 s" in str(cause.sentence)
    forced = replace(looked, host=replace(looked.host, forced_tier="avx512"))
    found = {cause.id: cause for cause in why(forced, run)}
    assert found["amx"].gain == pytest.approx(1 / (1 - 0.9 * (1 - 1 / 2.1)))
    assert found["amx"].command == "unset COLIBRI_ISA"


@pytest.mark.parametrize("run", [None, MadeUpRun(n_tokens=LEAST_TOKENS - 1)])
def test_without_a_run_the_check_is_told_and_what_to_do_to_learn_more(tmp_path: Path, run: MadeUpRun | None) -> None:
    first, second = why(machine("amd-desktop", tmp_path / "a"), run)
    assert "3 problems, the first of them: Frequency governor, powersave" in str(first.sentence)
    assert first.gain is None and first.fix is not None
    assert second.id == "no-run" and "ask the model something" in str(second.sentence)
    (only,) = why(machine(QUIET, tmp_path / "b"), run)
    assert only.id == "no-run"


def test_a_run_is_read_from_its_newest_answer_and_its_bands_sum_to_its_time() -> None:
    earlier, later = MadeUpRun(prompt_tokens=900, prompt_s=5.0).steps(), MadeUpRun(n_tokens=32).steps()
    run = LastRun.of(earlier.joined(later, 1000))
    assert run is not None
    assert (run.prompt_tokens, run.prompt_s) == (100, pytest.approx(0.2))
    assert run.answer_s == pytest.approx(32 * 0.02) and run.n_tokens == 96
    assert sum(run.shares.values()) == pytest.approx(1.0)
    assert run.team_share == pytest.approx(1 - EVEN["host"])


@settings(max_examples=60)
@given(
    name=st.sampled_from(NAMES),
    weights=st.lists(st.floats(0.001, 1.0), min_size=len(BANDS), max_size=len(BANDS)),
    memory=st.none() | st.floats(0.5, 500.0),
    disturbed=st.floats(1.0, 20.0),
    loads=st.integers(0, 50),
    evictions=st.integers(0, 50),
    n_workers=st.integers(1, 64),
    growth=st.sampled_from([0.0, 3.0]),
    small_pages=st.floats(0.0, 1.0),
    prompt_s=st.floats(0.0, 60.0),
)
def test_whatever_was_measured_the_answer_is_one_to_three_sentences_by_falling_gain(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    weights: list[float],
    memory: float | None,
    disturbed: float,
    loads: int,
    evictions: int,
    n_workers: int,
    growth: float,
    small_pages: float,
    prompt_s: float,
) -> None:
    looked = machine(name, tmp_path_factory.mktemp("machine"), memory=memory)
    run = MadeUpRun(
        shares={band: weight / sum(weights) for band, weight in zip(BANDS, weights, strict=True)},
        disturbed=disturbed,
        loads=loads,
        evictions=evictions,
        n_workers=n_workers,
        us_per_position=growth,
        kv_per_token=30,
        prompt_s=prompt_s,
    )
    found = why(looked, run, replace(MODEL, small_page_share=small_pages, weight_bits=16.0))
    assert 1 <= len(found) <= MOST_SENTENCES
    gains = [cause.gain or 1.0 for cause in found]
    assert gains == sorted(gains, reverse=True) and all(gain < 100 for gain in gains)
    for cause in found:
        sentence = str(cause.sentence)
        assert sentence.endswith(".") and not re.search(r"[.!?] [A-Z]", sentence) and "{" not in sentence
        assert cause.gain is None or "faster." in sentence or "times as fast." in sentence
