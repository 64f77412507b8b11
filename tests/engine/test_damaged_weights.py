"""Weights that are not numbers: the request that meets them ends with an error, the others go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGMLQuantizationType

from engine import Delta, Engine, SamplingParams
from tests.engine.compact import LLAMA, MIXTRAL, OLMOE, model_path, open_small, small_config
from tests.support.gguf_copy import SourceFile, StoredTensor, write_copy

SCALE_AT = {"Q4_0": 0, "Q4_1": 0, "Q8_0": 0, "Q4_K": 0, "Q6_K": 208}  # offset of a block's f16 scale
BAD_TOKEN, GOOD = 77, [5, 17, 200, 3, 88]
PARAMS = SamplingParams(temperature=0.0, max_tokens=8, ignore_eos=True)
NAN, INFINITE = 0x7E00, 0x7C00


def damage_row(target: Path, model: str, tensor: str, row: int | None, bits: int = NAN) -> Path:
    """A copy of `model` in which a row of `tensor` (None: each row) has a scale or value with these 16 bits."""

    def change(stored: StoredTensor) -> list[StoredTensor]:
        name, kind, data = stored
        if name == tensor:
            data = np.array(data)
            rows = data.reshape(-1, data.shape[-1])
            place = slice(None) if row is None else slice(row, row + 1)
            if kind == GGMLQuantizationType.F32:
                rows[place, 0] = np.uint16(bits).view(np.float16)
            else:
                first = SCALE_AT[kind.name]
                rows[place, first], rows[place, first + 1] = bits & 255, bits >> 8
        return [(name, kind, data)]

    write_copy(SourceFile.open(model_path(model)), target, change)
    return target


def tokens(deltas: list[Delta]) -> list[int]:
    return [delta.token_id for delta in deltas if delta.token_id is not None]


def assert_ends_with_error(deltas: list[Delta]) -> None:
    assert deltas[-1].finish_reason == "error"
    assert deltas[-1].token_id is None
    assert "not finite" in deltas[-1].text
    assert not tokens(deltas)


@pytest.mark.parametrize("bits", [NAN, INFINITE])
@pytest.mark.parametrize(
    ("model", "tensor"),
    [
        (LLAMA, "blk.0.attn_q.weight"),
        (LLAMA, "blk.0.attn_v.weight"),
        (LLAMA, "blk.1.ffn_down.weight"),
        (LLAMA, "output_norm.weight"),
        (OLMOE, "blk.0.attn_k_norm.weight"),
        (MIXTRAL, "blk.0.ffn_gate_inp.weight"),
        (MIXTRAL, "blk.1.ffn_up_exps.weight"),
        (MIXTRAL, "blk.1.ffn_down_exps.weight"),
        (MIXTRAL, "output.weight"),
    ],
)
def test_damage_in_any_part_ends_the_request_with_an_error(tmp_path: Path, model: str, tensor: str, bits: int) -> None:
    path = damage_row(tmp_path / "damaged.gguf", model, tensor, None, bits)
    with Engine.open(path, small_config()) as engine:
        for _ in range(2):  # the engine stays usable, and reused keys and values are no better
            assert_ends_with_error(list(engine.generate([*GOOD, *range(40)], PARAMS)))
        assert not engine.has_work
        assert engine.stats().kv_used_tokens == 0


@pytest.mark.parametrize("model", [LLAMA, OLMOE])
def test_a_damaged_token_hurts_only_the_conversation_that_has_it(tmp_path: Path, model: str) -> None:
    with open_small(model) as engine:
        expected = tokens(list(engine.generate(GOOD, PARAMS)))
    source = SourceFile.open(model_path(model))
    untied = (lambda stored: [stored]) if "output.weight" in source.tensors() else add_output_copy
    write_copy(source, tmp_path / "untied.gguf", untied)
    path = damage_embedding(tmp_path / "untied.gguf", tmp_path / "damaged.gguf")
    with Engine.open(path, small_config()) as engine:
        good, bad = engine.add(GOOD, PARAMS), engine.add([*GOOD[:3], BAD_TOKEN, *GOOD], PARAMS)
        answers: dict[int, list[Delta]] = {good: [], bad: []}
        while engine.has_work:
            for delta in engine.step():
                answers[delta.request_id].append(delta)
        assert_ends_with_error(answers[bad])
        assert tokens(answers[good]) == expected
        assert tokens(list(engine.generate(GOOD, PARAMS))) == expected  # also in pages that held what is not a number


def add_output_copy(stored: StoredTensor) -> list[StoredTensor]:
    """A tied output made a tensor of its own, so that damage to an embedding row does not reach the logits."""
    name, kind, data = stored
    return [stored, ("output.weight", kind, data)] if name == "token_embd.weight" else [stored]


def damage_embedding(source: Path, target: Path) -> Path:
    def change(stored: StoredTensor) -> list[StoredTensor]:
        name, kind, data = stored
        if name == "token_embd.weight":
            data = np.array(data)
            first = SCALE_AT[kind.name]
            data[BAD_TOKEN, first], data[BAD_TOKEN, first + 1] = NAN & 255, NAN >> 8
        return [(name, kind, data)]

    write_copy(SourceFile.open(source), target, change)
    return target


CHOICES: dict[str, Callable[[], SamplingParams]] = {
    "greedy": lambda: SamplingParams(temperature=0.0),
    "sorted": lambda: SamplingParams(seed=1),
    "heap": lambda: SamplingParams(seed=1, top_k=0),
    "penalised": lambda: SamplingParams(seed=1, repetition_penalty=1.3),
}


@pytest.mark.parametrize("choice", CHOICES)
def test_no_way_of_sampling_takes_a_token_from_what_is_no_number(tmp_path: Path, choice: str) -> None:
    path = damage_row(tmp_path / "damaged.gguf", MIXTRAL, "output.weight", 3)
    with Engine.open(path, small_config()) as engine:
        assert np.isnan(engine.logits(GOOD)[:, 3]).all()
        assert np.isfinite(np.delete(engine.logits(GOOD), 3, 1)).all()
        assert_ends_with_error(list(engine.generate(GOOD, CHOICES[choice]())))
