"""The recorded data holds together: sizes, the NumPy yardstick, Mixtral spelled twice, the divergence."""

from __future__ import annotations

import json

import numpy as np
import pytest

from engine.gguf.expansions import EXPANSIONS
from tests.reference.numpy_deepseek import NumpyDeepseek
from tests.support.divergence import DivergenceReference
from tests.support.fixtures import COMPACT, Case, compact_cases
from tests.support.gguf_copy import SourceFile

CASES = {case.name: case for case in compact_cases()}


def test_every_architecture_and_tensor_type_of_the_engine_has_a_compact_case() -> None:
    architectures = {case.architecture for case in CASES.values()}
    types = frozenset[str]().union(*(case.type_names for case in CASES.values()))

    assert architectures == {"llama", "qwen2", "qwen2moe", "qwen3moe", "olmoe", "deepseek"}
    assert types >= {tensor_type.name for tensor_type in EXPANSIONS} - {"Q5_1"}


def test_data_folder_stays_small() -> None:
    n_bytes = sum(path.stat().st_size for path in COMPACT.parent.rglob("*") if path.is_file())

    assert n_bytes < 11_000_000


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_greedy_continuation_starts_with_the_largest_recorded_logit(case: Case) -> None:
    for prompt in case.prompts:
        last = prompt.logits[prompt.positions.tolist().index(len(prompt.input_ids) - 1)]
        best, second = np.sort(last)[[-1, -2]]

        assert prompt.greedy_ids[0] == int(last.argmax())
        assert prompt.greedy_gap[0] == pytest.approx(best - second, abs=1e-4)


@pytest.mark.parametrize("name", ["deepseek-mixed", "deepseek-codes"])
def test_deepseek_expectations_are_those_of_the_numpy_evaluation(name: str) -> None:
    case = CASES[name]
    model = NumpyDeepseek(case.path)
    for prompt in case.prompts:
        logits, routes = model.forward(prompt.input_ids)

        assert prompt.router_idx is not None and prompt.router_w is not None
        np.testing.assert_allclose(logits[prompt.positions], prompt.logits, atol=1e-5)
        np.testing.assert_array_equal(routes.idx, prompt.router_idx)
        np.testing.assert_allclose(routes.w, prompt.router_w, atol=1e-6)


def test_split_mixtral_holds_the_same_experts_under_the_older_names() -> None:
    merged = SourceFile.open(CASES["mixtral-mixed"].path)
    split = SourceFile.open(CASES["mixtral-mixed-split-experts"].path)

    assert not any("_exps" in name for name in split.tensors())
    for part in ("gate", "up", "down"):
        experts = [split.tensors()[f"blk.1.ffn_{part}.{expert}.weight"][2] for expert in range(8)]
        np.testing.assert_array_equal(np.stack(experts), merged.tensors()[f"blk.1.ffn_{part}_exps.weight"][2])


def test_divergence_is_zero_for_the_recorded_distribution_and_right_for_another() -> None:
    reference = DivergenceReference.load()
    n_vocab, n_top = 49_152, reference.top_ids.shape[2]
    logits = np.zeros((reference.window_ids.shape[1], n_vocab), np.float32)
    for row, position in enumerate(reference.positions[0]):
        logits[position] = reference.rest_logprob[0, row] - np.log(n_vocab - n_top)
        logits[position, reference.top_ids[0, row]] = reference.top_logprob[0, row]

    np.testing.assert_allclose(reference.divergence(0, logits), 0, atol=1e-6)

    position = int(reference.positions[0, 0])
    best = int(reference.top_ids[0, 0, 0])
    p_best = float(np.exp(reference.top_logprob[0, 0, 0]))
    logits[position, best] += 1  # q = p e^[best] / Z with Z = 1 + p_best (e - 1), hence KL = log Z - p_best
    expected = np.log(1 + p_best * (np.e - 1)) - p_best
    assert reference.divergence(0, logits)[0] == pytest.approx(expected, abs=1e-5)


def test_starter_reference_has_ten_conversations_of_48_steps() -> None:
    document = json.loads((COMPACT.parent / "starter_reference.json").read_text(encoding="utf-8"))

    assert len(document["cases"]) == 10
    for case in document["cases"]:
        assert len(case["greedy_ids"]) == len(case["greedy_gap"]) == 48
        assert min(case["greedy_gap"]) >= 0
