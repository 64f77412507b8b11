"""Every kind of quantised conversion opens and generates, and what it generates is what its values mean."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from engine import Engine, EngineConfig, SamplingParams
from engine.convert import ConversionOptions, Mixture, planned, write_gguf
from engine.gguf import TensorType
from tests.support.checkpoints import checkpoint_case

FIXTURES = os.environ.get("COLIBRI_FIXTURES")
SHARED = sorted(path.parent for path in Path(FIXTURES).glob("*/config.json")) if FIXTURES else []
MADE = ("llama", "qwen3_moe", "gpt_oss")
FLOAT = EngineConfig(context_length=128, max_batch_tokens=64, activations="float32", kv_type="f32")
USUAL = EngineConfig(context_length=128, max_batch_tokens=64)
GREEDY = SamplingParams(temperature=0.0, max_tokens=12, ignore_eos=True)
PROMPT = [11, 87, 203, 45, 318, 77, 129, 402, 251, 33]
LIMIT = 2e-3  # of the logits' largest: what another order of summation makes
SURE_GAP = 5e-3  # of the same, between the two likeliest tokens


@pytest.mark.parametrize("mixture", Mixture, ids=lambda mixture: mixture.name)
@pytest.mark.parametrize("folder", [*MADE, *SHARED], ids=str)
def test_a_quantised_conversion_generates_what_its_values_mean(
    folder: Path | str, mixture: Mixture, tmp_path: Path
) -> None:
    source = folder if isinstance(folder, Path) else checkpoint_case(folder).write(tmp_path)
    quantised, expanded = tmp_path / "quantised.gguf", tmp_path / "expanded.gguf"
    with planned(source, ConversionOptions(mixture=mixture)) as plan:
        write_gguf(plan, quantised)
    with planned(quantised, ConversionOptions(type=TensorType.F32)) as plan:
        write_gguf(plan, expanded)

    with Engine.open(quantised, FLOAT) as engine:
        tokens = [delta.token_id for delta in engine.generate(PROMPT, GREEDY) if delta.token_id is not None]
        found = engine.evaluate(PROMPT + tokens)
    with Engine.open(expanded, FLOAT) as engine:
        expected = engine.evaluate(PROMPT + tokens)
    assert len(tokens) == GREEDY.max_tokens
    scale = np.abs(expected.logits).max()
    near_ties = (found.experts != expected.experts).any((0, 2)) if expected.experts.size else np.zeros(22, bool)
    same = ~np.maximum.accumulate(near_ties)  # after a router's near tie other experts have been at work
    assert same[: len(PROMPT)].any()
    np.testing.assert_allclose(found.logits[same], expected.logits[same], rtol=0, atol=LIMIT * scale)
    first, second = np.sort(expected.logits, -1)[:, -1], np.sort(expected.logits, -1)[:, -2]
    sure = same & (first - second > SURE_GAP * scale)
    for place, token in enumerate(tokens, len(PROMPT) - 1):
        assert token == expected.logits[place].argmax() or not sure[place]

    with Engine.open(quantised, USUAL) as engine:  # as a chat opens it, with rounded activations
        answer = [delta for delta in engine.generate(PROMPT, GREEDY) if delta.token_id is not None]
        assert len(answer) == GREEDY.max_tokens
