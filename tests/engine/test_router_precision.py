"""Routers of another precision than the file's: the same as if the file had it, and how many choices it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType, quants

from engine import Engine, EngineConfig
from engine.errors import InvalidRequestError
from engine.experts.router_precision import measure_router_precision
from tests.engine.compact import LLAMA, MIXTRAL, OLMOE, QWEN3_MOE, model_path, small_config
from tests.support.gguf_copy import SourceFile, StoredTensor, write_copy

IDS = [int(token) for token in np.random.default_rng(5).integers(3, 250, 100)]
STORED = {"bf16": GGMLQuantizationType.BF16, "fp16": GGMLQuantizationType.F16}
TEXT = "Nothing is so firmly believed as what we least know. " * 8


def logits(path: Path, precision: str | None) -> np.ndarray:
    with Engine.open(path, small_config(router_precision=precision)) as engine:
        return engine.logits(IDS)


def with_routers(
    change: Callable[[np.ndarray], np.ndarray], source: Path, target: Path, kind: GGMLQuantizationType
) -> Path:
    """A copy of a model with float32 routers, changed and stored in type `kind` by the gguf package."""

    def changed(tensor: StoredTensor) -> Iterable[StoredTensor]:
        if not tensor[0].endswith("ffn_gate_inp.weight"):
            return [tensor]
        return [(tensor[0], kind, quants.quantize(change(tensor[2]).astype(np.float32), kind))]

    write_copy(SourceFile.open(source), target, changed)
    return target


def nearly_alike(values: np.ndarray) -> np.ndarray:
    """Rows that differ by less than what bf16 rounds away: many choices hang on the rounding."""
    return values[:1] + values / 300


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("name", [MIXTRAL, OLMOE, QWEN3_MOE])
def test_a_precision_chosen_at_opening_equals_a_file_that_has_it(name: str, precision: str, tmp_path: Path) -> None:
    fine = with_routers(nearly_alike, model_path(name), tmp_path / "fine.gguf", GGMLQuantizationType.F32)
    rounded = with_routers(lambda values: values, fine, tmp_path / "rounded.gguf", STORED[precision])

    ours = logits(fine, precision)

    np.testing.assert_array_equal(ours, logits(rounded, None))
    assert (ours != logits(fine, "fp32")).any()


def test_fp32_expands_exactly_what_a_bf16_file_says(tmp_path: Path) -> None:
    rounded = with_routers(nearly_alike, model_path(OLMOE), tmp_path / "rounded.gguf", GGMLQuantizationType.BF16)

    np.testing.assert_allclose(logits(rounded, "fp32"), logits(rounded, None), rtol=0, atol=1e-4)


def test_values_that_fp16_cannot_hold_are_refused_with_what_to_choose(tmp_path: Path) -> None:
    path = model_path(MIXTRAL)
    huge = with_routers(lambda values: values * 1e9, path, tmp_path / "huge.gguf", GGMLQuantizationType.F32)

    with pytest.raises(InvalidRequestError, match=r"ffn_gate_inp\.weight .*fp16.*choose bf16 or fp32"):
        logits(huge, "fp16")


def test_an_unknown_precision_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequestError, match="router_precision must be one of fp32, bf16, fp16, not 'int8'"):
        EngineConfig(router_precision="int8")


def test_the_report_counts_what_differs_from_fp32(tmp_path: Path) -> None:
    path = with_routers(nearly_alike, model_path(OLMOE), tmp_path / "fine.gguf", GGMLQuantizationType.F32)
    config = small_config()
    choices = {}
    for precision in ("fp32", "bf16", "fp16"):
        with Engine.open(path, small_config(router_precision=precision)) as engine:
            ids = engine.tokenizer.encode(TEXT)[:120]
            choices[precision] = engine.evaluate(ids).experts

    report = measure_router_precision(path, TEXT, config, most_tokens=120)

    assert report.n_tokens == len(ids) and report.top_k == 4 and report.n_experts == 16
    assert [difference.precision for difference in report.differences] == ["bf16", "fp16"]
    for difference in report.differences:
        pairs = [
            [len(set(ours) - set(theirs)) for ours, theirs in zip(layer.tolist(), reference.tolist(), strict=True)]
            for layer, reference in zip(choices[difference.precision], choices["fp32"], strict=True)
        ]
        assert difference.of_choices == pytest.approx(np.mean(pairs) / 4)
        assert difference.by_layer == pytest.approx(np.mean(pairs, axis=1) / 4)
        assert difference.of_tokens == pytest.approx(np.mean(np.array(pairs) > 0))
    assert report.differences[0].of_choices > 0


def test_a_dense_model_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="dense model"):
        measure_router_precision(model_path(LLAMA), TEXT, small_config())
