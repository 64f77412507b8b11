"""The forecast of a model's speed counts what a token reads, and measures memory once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app import paths
from app.speed_forecast import Weights, active_bytes, forecast, is_most, memory_speed

DENSE = [Weights("token_embd.weight", 30), Weights("blk.0.ffn_up.weight", 100), Weights("output.weight", 20)]


def test_embeddings_count_only_where_they_are_the_output_too() -> None:
    assert active_bytes(DENSE, None, None) == 120
    assert active_bytes(DENSE[:2], None, None) == 130


def test_of_experts_only_the_chosen_ones_are_read() -> None:
    mixture = [Weights("blk.0.ffn_up_exps.weight", 800), Weights("blk.0.ffn_up_shexp.weight", 10)]
    assert active_bytes(mixture, 8, 2) == 210
    assert active_bytes(mixture, 8, 8) == 810


def test_half_the_bytes_are_nearly_twice_as_fast_and_the_figure_has_two_digits() -> None:
    slow, fast = forecast(2e9, 30, 20e9), forecast(1e9, 30, 20e9)
    assert slow == 8.4 and fast == 17


def test_every_layer_costs_time_however_small_the_model_is() -> None:
    assert forecast(20e6, 200, 20e9) == pytest.approx(1 / (20e6 / 17e9 + 200 * 30e-6 + 0.2e-3), rel=0.05)


def test_a_forecast_says_at_most_that_a_model_is_fast() -> None:
    assert forecast(1.0, 1, 20e9) == forecast(1e6, 2, 20e9) == 300
    assert is_most(300) and not is_most(290)


def test_memory_is_measured_once_for_a_processor_and_number_of_threads(
    colibri_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = memory_speed(1)
    assert first is not None and first > 1e8
    kept = paths.cache_dir() / "memory-speed.json"
    monkeypatch.setattr("engine.hardware.memory_speed.measure_memory", None)  # not called any more
    assert memory_speed(1) == first
    assert json.loads(kept.read_text())["threads"] == 1
    kept.write_text("damaged")
    with pytest.raises(TypeError):
        memory_speed(1)
