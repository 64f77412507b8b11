"""What calibration sees of a model that runs: the inputs of its matrices, expert by expert; and nothing unasked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.engine import Engine
from engine.errors import InvalidRequestError, PlanError
from engine.plan import Operation
from engine.verify import verify
from tests.engine.compact import LLAMA, MIXTRAL, MIXTURES, NAMES, OLMOE, open_model, open_small
from tests.support.tiny_models import TINY_MODELS

IDS = [int(i) for i in np.random.default_rng(5).integers(5, 200, 60)]


def observing(name: str, **changes: Any) -> Engine:
    return open_small(name, measures_inputs=True, max_batch_tokens=64, logits_rows=64, **changes)


@pytest.mark.parametrize("activations", ["int12", "float32"])
@pytest.mark.parametrize("name", [LLAMA, MIXTRAL, OLMOE])
def test_sums_are_those_of_the_inputs(name: str, activations: str) -> None:
    ending = "ffn_gate.weight" if name == LLAMA else "ffn_gate_inp.weight"
    with observing(name, keeps_inputs=ending, activations=activations) as engine:
        experts = engine.evaluate(IDS).experts
        sums, kept = engine.input_sums(), engine.kept_inputs(len(IDS))
    assert kept
    for layer, (tensor, inputs) in enumerate(kept.items()):
        np.testing.assert_allclose(sums[tensor].sums[0], (inputs.astype(float) ** 2).sum(0), rtol=1e-5)
        assert sums[tensor].counts.tolist() == [len(IDS)]
        if name == LLAMA:
            continue
        stem = tensor.removesuffix("_inp.weight")
        of_experts = sums[f"{stem}_exps.weight"]
        for expert in range(len(of_experts.counts)):
            mine = inputs[(experts[layer] == expert).any(-1)]
            assert of_experts.counts[expert] == len(mine)
            np.testing.assert_allclose(of_experts.sums[expert], (mine.astype(float) ** 2).sum(0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [*NAMES, *sorted(TINY_MODELS)])
def test_logits_do_not_change_and_every_matrix_is_seen(name: str) -> None:
    with open_small(name, max_batch_tokens=64, logits_rows=64) as engine:
        expected = engine.logits(IDS)
    with observing(name) as engine:
        np.testing.assert_array_equal(engine.logits(IDS), expected)
        sums = engine.input_sums()
        model = engine._open_model
        matrices = {
            tensor.name
            for tensor in model.reader.tensors.values()
            if len(tensor.shape) > 1
            and min(tensor.shape) > 8
            and tensor.name.endswith("weight")
            and not tensor.name.startswith(f"blk.{model.hyper.n_layers}.")  # guesses further tokens; unused
        }
    unseen = matrices - set(sums)
    assert {tensor.removeprefix("blk.").lstrip("0123456789") for tensor in unseen} <= {
        "token_embd.weight",
        ".attn_kv_b.weight",
        ".ssm_conv1d.weight",
        ".shortconv.conv.weight",
    }
    for tensor, seen in sums.items():
        assert np.isfinite(seen.sums).all(), tensor
        assert seen.counts.sum() > 0, tensor


def test_sums_grow_from_text_to_text() -> None:
    with observing(LLAMA) as engine:
        engine.evaluate(IDS[:20])
        first = engine.input_sums()["blk.1.ffn_down.weight"]
        engine.evaluate(IDS[:20])
        both = engine.input_sums()["blk.1.ffn_down.weight"]
    np.testing.assert_allclose(both.sums, 2 * first.sums, rtol=1e-6)
    assert (first.counts[0], both.counts[0]) == (20, 40)


def test_a_model_that_answers_has_nothing_of_it_in_its_plan() -> None:
    model = open_model(MIXTRAL)
    kernels = {operation.kernel for stage in model.plan.stages for operation in stage.operations}
    model.close()
    assert kernels.isdisjoint({"square_sums", "keep_rows"})


@pytest.mark.parametrize("name", [LLAMA, MIXTRAL])
def test_wrong_operands_are_refused(name: str) -> None:
    model = open_model(name, measures_inputs=True, keeps_inputs="attn_q.weight")
    try:
        observed = [
            operation
            for stage in model.plan.stages
            for operation in stage.operations
            if operation.kernel in ("square_sums", "keep_rows")
        ]
        for operation in observed:
            for operand in ("x", "sums", "counts", "out", "extent", "items"):
                if operation.operands.get(operand):
                    refuse(model, operation, operand, operation.operands[operand] + (1 << 44))
            for operand in ("x_stride", "stride"):
                if operand in operation.operands:
                    refuse(model, operation, operand, 0)
                    refuse(model, operation, operand, 1 << 30)
            if operation.operands.get("items"):
                refuse(model, operation, "sums_stride", 1 << 30)
        assert observed
    finally:
        model.close()


def refuse(model: Any, operation: Operation, operand: str, value: float) -> None:
    original, operation.operands[operand] = operation.operands[operand], value
    with pytest.raises(PlanError):
        verify(model.plan, model.memory, model.limits)
    operation.operands[operand] = original


@pytest.mark.parametrize("top_k", [1, 3])
def test_fewer_or_more_experts_can_be_asked_for(top_k: int) -> None:
    with open_small(MIXTURES[0], top_k=top_k) as engine:
        assert engine.evaluate(IDS[:8]).experts.shape[2] == top_k
        assert engine.info.top_k == top_k


@pytest.mark.parametrize("name", [LLAMA, MIXTRAL])
def test_more_experts_than_there_are_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="top_k is 9"):
        open_small(name, top_k=9)
