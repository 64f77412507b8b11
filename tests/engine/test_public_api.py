"""The engine as a library (contract L2), used just as its documentation shows it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import engine as package
from tests.engine.compact import NAMES, model_path


@pytest.mark.parametrize("name", NAMES)
def test_the_documented_example_works_as_it_stands(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(model_path(name), tmp_path / "model.gguf")
    monkeypatch.chdir(tmp_path)
    printed: list[tuple[int | None, str]] = []

    from engine import Engine, EngineConfig, SamplingParams

    with Engine.open("model.gguf", EngineConfig(context_length=4096, threads=2)) as engine:
        ids = engine.tokenizer.encode("Hello")  # list[int]
        logits = engine.logits(ids)  # (n_tokens, n_vocab) float32, every position
        for delta in engine.generate(ids, SamplingParams(temperature=0.0, max_tokens=32)):
            printed.append((delta.token_id, delta.text))  # text: only whole characters
        stats = engine.stats()  # counts, times, expert calls per layer and expert

    assert all(type(token) is int for token in ids)
    assert logits.shape == (len(ids), engine.info.n_vocab)
    assert logits.dtype == np.float32
    assert printed[0][0] == int(logits[-1].argmax())
    assert 1 <= len(printed) <= 32
    assert stats.completion_tokens == len(printed)
    assert stats.expert_counts.shape == (engine.info.n_moe_layers, engine.info.n_experts)
    n_computed = 2 * len(ids) + len(printed) - 1  # for the logits, then the prompt and all but the last token
    assert stats.expert_calls == n_computed * engine.info.top_k * engine.info.n_moe_layers


def test_everything_that_is_promised_can_be_imported() -> None:
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
    with pytest.raises(AttributeError, match="Turbo"):
        package.Turbo  # noqa: B018


def test_what_an_opened_model_says_of_itself() -> None:
    from engine import Engine

    with Engine.open(model_path("mixtral-mixed")) as engine:
        info = engine.info
        assert (info.architecture, info.n_experts, info.top_k, info.n_moe_layers) == ("llama", 8, 2, info.n_layers)
        assert info.path == model_path("mixtral-mixed")
        assert info.file_bytes == info.path.stat().st_size
        assert info.type_name in ("Q4_0", "Q4_1", "Q8_0")
        assert info.n_parameters > 1_000_000
        assert engine.config.context_length <= info.training_context
        assert engine.telemetry.moe_layers == list(range(info.n_layers))
