"""What is recommended for a model: its file's keys first, then its publisher, then a rule for small ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import SamplingParams
from engine.recommended_sampling import RecommendedSampling, Source, recommended_sampling

LARGE = 8_000_000_000


def test_the_file_s_own_keys_come_first() -> None:
    keys = {
        "general.name": "SmolLM2 135M",
        "general.sampling.temp": float(np.float32(0.95)),
        "general.sampling.top_k": 64,
        "general.sampling.penalty_repeat": 1.05,
        "general.sampling.mirostat": 2,  # is not known here
    }
    expected = {"temperature": 0.95, "top_k": 64, "repetition_penalty": 1.05}
    assert recommended_sampling(keys, LARGE) == RecommendedSampling(expected, Source.FILE)


@pytest.mark.parametrize(
    ("keys", "temperature"),
    [
        ({"general.basename": "smollm2"}, 0.2),
        ({"general.name": "SmolLM3 3B"}, 0.6),
        ({"general.name": "Qwen3 30B A3B", "general.basename": "Qwen3"}, 0.6),
        ({"general.name": "LFM2-8B-A1B"}, 0.3),
    ],
)
def test_a_publisher_s_advice_is_found_by_the_family(keys: dict[str, Any], temperature: float) -> None:
    found = recommended_sampling(keys, LARGE)
    assert found is not None and found.source is Source.FAMILY
    assert found.values["temperature"] == temperature


@pytest.mark.parametrize(
    "name", ["Qwen3 Coder 30B A3B Instruct", "Qwen3 4B Instruct 2507", "SmolLM 135M", "Mixtral", "LFM2.5 1.2B"]
)
def test_others_get_no_advice_that_was_not_given_for_them(name: str) -> None:
    assert recommended_sampling({"general.name": name}, LARGE) is None


def test_a_small_model_of_nobody_is_kept_from_improbable_tokens() -> None:
    found = recommended_sampling({}, 100_000_000)
    assert found is not None and found.source is Source.SIZE and found.values["temperature"] == 0.2


def test_a_small_model_is_kept_from_loops_where_its_publisher_says_nothing_of_them() -> None:
    small = recommended_sampling({"general.name": "SmolLM2 135M"}, 135_000_000)
    large = recommended_sampling({"general.name": "SmolLM2 1.7B"}, 1_700_000_000)
    assert small is not None and large is not None
    assert small == RecommendedSampling({**large.values, "repetition_penalty": 1.1}, Source.SIZE)

    advised = recommended_sampling({"general.name": "LFM2 350M"}, 350_000_000)
    assert advised is not None and advised.source is Source.FAMILY and advised.values["repetition_penalty"] == 1.05


@given(
    st.dictionaries(
        st.sampled_from([f"general.sampling.{key}" for key in ("temp", "top_k", "top_p", "min_p", "penalty_repeat")]),
        st.one_of(st.floats(), st.integers(), st.text(max_size=3), st.booleans(), st.none()),
    )
)
def test_whatever_a_file_says_its_values_can_be_sampled_with(keys: dict[str, Any]) -> None:
    found = recommended_sampling(keys, LARGE)
    if found is not None:
        values: dict[str, Any] = dict(found.values)
        SamplingParams(**values)
