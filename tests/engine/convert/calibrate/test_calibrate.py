"""Calibration from a text to importance weights, on small models."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from engine import Engine
from engine.convert.calibrate import calibrate, passages, write_importance
from engine.convert.likelihood import log_probabilities, of_tokens
from engine.convert.proof import compare
from engine.errors import InvalidRequestError
from engine.gguf import GGUFReader
from engine.gguf.amend import amend
from tests.engine.compact import LLAMA, MIXTRAL, QWEN3_MOE, model_path

TEXTS = {"one": "The hummingbird hovers before the flower. " * 30, "two": "x = [i * i for i in range(10)]\n" * 30}


@pytest.mark.parametrize("name", [LLAMA, MIXTRAL, QWEN3_MOE])
def test_every_matrix_gets_weights_that_fit_it(name: str) -> None:
    told: list[tuple[int, int]] = []
    importance = calibrate(
        model_path(name), TEXTS, n_most=3, passage_tokens=64, progress=lambda done, n: told.append((done, n))
    )
    assert told == [(done, 6) for done in range(1, 7)]  # each passage through the layers, then the output
    assert importance.perplexity is not None
    assert importance.perplexity > 1
    with GGUFReader.open(model_path(name)) as reader:
        for tensor in reader.tensors.values():
            weights = importance.of(tensor.name, tensor.shape[-1]) if len(tensor.shape) > 1 else None
            if weights is None:
                assert len(tensor.shape) == 1 or tensor.name == "token_embd.weight"
                continue
            assert weights.shape == (tensor.shape[0] if len(tensor.shape) == 3 else 1, tensor.shape[-1])
            assert (weights > 0).all()


def test_experts_that_do_not_fit_into_memory_give_the_same_sums() -> None:
    path = model_path(MIXTRAL)
    with GGUFReader.open(path) as reader:
        slab_bytes = sum(
            tensor.n_bytes for tensor in reader.tensors.values() if "blk.0" in tensor.name and "exps" in tensor.name
        )
    whole = calibrate(path, TEXTS, n_most=1, passage_tokens=64)
    streamed = calibrate(path, TEXTS, n_most=1, passage_tokens=64, expert_cache_bytes=slab_bytes + slab_bytes // 2)
    for name, inputs in whole.tensors.items():
        np.testing.assert_allclose(streamed.tensors[name].sums, inputs.sums, rtol=1e-6)
        np.testing.assert_array_equal(streamed.tensors[name].counts, inputs.counts)


def test_passages_fit_a_model_of_a_short_context(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = Path(shutil.copy(model_path(LLAMA), tmp_path_factory.mktemp("short") / "model.gguf"))
    amend(path, {"llama.context_length": 100})
    importance = calibrate(path, TEXTS, n_most=2)
    assert importance.chunk_tokens == 99
    assert importance.tensors["blk.0.attn_q.weight"].counts.tolist() == [198]
    assert compare(path, path, TEXTS, n_most=2).n_tokens == 198


def test_the_same_text_gives_the_same_bytes(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("same")
    files = [
        write_importance(calibrate(model_path(LLAMA), TEXTS, n_most=2, passage_tokens=64), folder / f"{i}.gguf")
        for i in range(2)
    ]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_passages_come_from_all_texts_in_turn() -> None:
    with Engine.open(model_path(LLAMA)) as engine:
        tokenizer = engine.tokenizer
        found = passages(tokenizer, TEXTS, n_tokens=64)
        assert all(len(passage) <= 64 for passage in found)
        assert "hummingbird" in tokenizer.decode(found[0])
        assert "range" in tokenizer.decode(found[1])
        assert passages(tokenizer, TEXTS, n_tokens=64, n_most=2) == found[:2]
        with pytest.raises(InvalidRequestError, match="longer text"):
            passages(tokenizer, {"short": "Hi."})


def test_likelihoods_are_those_of_the_tokens_that_came() -> None:
    logits = np.random.default_rng(0).standard_normal((5, 11), np.float32) * 9
    ids = [1, 3, 5, 7, 9]
    p = np.exp(logits.astype(float)) / np.exp(logits.astype(float)).sum(-1, keepdims=True)
    np.testing.assert_allclose(of_tokens(log_probabilities(logits), ids), np.log(p[range(4), ids[1:]]), rtol=1e-5)
    np.testing.assert_allclose(np.exp(log_probabilities(logits)).sum(-1), 1, rtol=1e-5)
