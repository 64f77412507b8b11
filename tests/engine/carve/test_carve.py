"""A carved model computes what the dense one does with all experts, loses with fewer, and is a file like others."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest

from engine import Engine, EngineConfig
from engine.carve import Carving, Loss, check_dense, loss_keys, losses_of, measure, observe, write_carved
from engine.convert import ConversionOptions, Mixture, planned, write_gguf
from engine.engine import Evaluation
from engine.errors import InvalidRequestError, UnsupportedModelError
from engine.gguf import GGUFReader, dequantise
from engine.gguf.amend import amend
from tests.engine.compact import LLAMA, MIXTRAL, QWEN3_MOE, model_path
from tests.support.checkpoints import checkpoint_case
from tests.support.dense_model import write_dense_model

TEXTS = {"one": "The hummingbird hovers before the flower and drinks. " * 60}
CARVING = Carving(n_experts=8, n_shared=2, n_dense_layers=1)  # 512 neurons: experts of 64
IDS = [int(i) for i in np.random.default_rng(2).integers(5, 200, 40)]
EXACT = EngineConfig(context_length=128, activations="float32", kv_type="f32")


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dense_model(tmp_path_factory.mktemp("dense"))


@pytest.fixture(scope="module")
def carved(dense: Path) -> Path:
    return write_carved(dense, dense.parent / "moe.gguf", observe(dense, TEXTS, n_most=1), CARVING)


def test_with_all_experts_logits_are_the_dense_models(dense: Path, carved: Path) -> None:
    with Engine.open(dense, EXACT) as engine:
        expected = engine.logits(IDS)
    with Engine.open(carved, EXACT) as engine:
        assert (engine.info.n_moe_layers, engine.info.n_experts, engine.info.top_k) == (1, 6, 6)
        found = engine.evaluate(IDS)
    np.testing.assert_allclose(found.logits, expected, atol=0.02 * expected.std())
    np.testing.assert_allclose(found.expert_weights, 1, atol=0.01)


def test_experts_hold_the_dense_models_rows_and_columns(dense: Path, carved: Path) -> None:
    with GGUFReader.open(dense) as source, GGUFReader.open(carved) as moe:

        def of(reader: GGUFReader, name: str) -> np.ndarray:
            tensor = reader.tensors[name]
            return dequantise(reader.data(name), tensor.type, tensor.shape)

        for part, axis in (("gate", 0), ("up", 0), ("down", 1)):
            whole = of(source, f"blk.1.ffn_{part}.weight")
            experts, shared = of(moe, f"blk.1.ffn_{part}_exps.weight"), of(moe, f"blk.1.ffn_{part}_shexp.weight")
            pieces = np.concatenate([shared, *experts], axis)
            order = {row.tobytes(): i for i, row in enumerate(np.moveaxis(pieces, axis, 0))}
            if part != "down":  # those columns are rounded to F16
                assert {row.tobytes() for row in np.moveaxis(whole, axis, 0)} == set(order)
            np.testing.assert_allclose(np.sort(pieces, axis), np.sort(whole, axis), rtol=1e-3, atol=1e-6)
        assert "blk.0.ffn_gate.weight" in moe.tensors
        assert "output.weight" in moe.tensors


def test_the_gguf_package_reads_it_with_its_keys(carved: Path) -> None:
    fields = gguf.GGUFReader(carved).fields
    expected = {
        "general.architecture": "deepseek",
        "deepseek.leading_dense_block_count": 1,
        "deepseek.expert_count": 6,
        "deepseek.expert_used_count": 6,
        "deepseek.expert_shared_count": 2,
        "deepseek.expert_feed_forward_length": 64,
        "deepseek.expert_weights_scale": 6.0,
        "deepseek.embedding_length": 256,
        "deepseek.feed_forward_length": 512,
    }
    assert {key: fields[key].contents() for key in expected} == expected
    assert not [key for key in fields if key.startswith("llama.")]


def test_fewer_experts_lose_more(dense: Path, carved: Path) -> None:
    told: list[float] = []
    losses = list(measure(dense, carved, TEXTS, (6, 5, 1), n_shared=2, n_most=1, progress=told.append))
    assert told == [1, 2, 3]
    assert [loss.feed_forward_share for loss in losses] == [1, 7 / 8, 3 / 8]
    all_of_them, one_less, one = losses
    assert 0 <= all_of_them.divergence < one_less.divergence < one.divergence
    assert all_of_them.perplexity == pytest.approx(all_of_them.source_perplexity, rel=0.02)
    keys = loss_keys(losses, 6)
    assert keys["colibri.carve.is_demonstration"] is all_of_them.is_demonstration
    assert keys["colibri.carve.top_k"] == [6, 5, 1]


def test_the_dense_model_reads_each_passage_once_for_all_numbers_of_experts(
    dense: Path, carved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, evaluate = list[tuple[str, int]](), Engine.evaluate

    def note(engine: Engine, ids: list[int]) -> Evaluation:
        read.append((engine.info.path.name, hash(tuple(ids))))
        return evaluate(engine, ids)

    monkeypatch.setattr(Engine, "evaluate", note)
    together = list(measure(dense, carved, TEXTS, (6, 5), n_shared=2, n_most=2))
    of_dense = [passage for name, passage in read if name == dense.name]
    assert len(of_dense) == len(set(of_dense)) and len(read) == 3 * len(of_dense)
    assert together[1] == next(measure(dense, carved, TEXTS, (5,), n_shared=2, n_most=2))


def test_the_table_is_read_from_a_file_as_it_was_measured(carved: Path, tmp_path: Path) -> None:
    table = (Loss(6, 1.0, 10.5, 10.25, 0.0, 1.0), Loss(3, 0.625, 14.0, 10.25, 0.5, 0.75))
    path = tmp_path / "moe.gguf"
    path.write_bytes(carved.read_bytes())
    amend(path, loss_keys(table, 3))
    with GGUFReader.open(path) as reader:
        assert losses_of(reader.metadata) == table
        assert reader.metadata["colibri.carve.is_demonstration"] is True


@pytest.mark.parametrize(
    "damage",
    [
        {"colibri.carve.perplexity": np.array([1.0], np.float32)},
        {"colibri.carve.divergence": np.array([np.nan, 0.0], np.float32)},
        {"colibri.carve.top_agreement": "high"},
        {"colibri.carve.source_perplexity": -1.0},
    ],
)
def test_a_table_whose_figures_cannot_be_counts_as_none(damage: dict[str, object]) -> None:
    table = (Loss(6, 1.0, 10.5, 10.25, 0.0, 1.0), Loss(3, 0.625, 14.0, 10.25, 0.5, 0.75))
    keys = {**loss_keys(table, 3), "colibri.carve.top_k": np.array([6, 3], np.int32)}
    assert losses_of(keys) == table
    assert losses_of({**keys, **damage}) == () and losses_of({}) == ()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"n_experts": 7}, "Possible are 2, 4, 8, 16"),
        ({"n_experts": 8, "n_shared": 7}, "1 to 6 may be shared"),
        ({"n_experts": 8, "n_shared": 0}, "not 0"),
        ({"n_dense_layers": 2}, "0 to 1 may stay dense"),
        ({"n_experts": 8, "n_shared": 2, "top_k": 7}, "1 to 6 routed experts"),
    ],
)
def test_what_cannot_be_cut_is_refused_with_what_can(changes: dict[str, int], says: str) -> None:
    with pytest.raises(InvalidRequestError, match=says):
        Carving(**{"n_dense_layers": 0, **changes}).check(512, 2)


@pytest.mark.parametrize("name", [MIXTRAL, QWEN3_MOE, LLAMA])
def test_a_model_that_the_layout_cannot_hold_is_refused(name: str) -> None:
    with GGUFReader.open(model_path(name)) as reader, pytest.raises(UnsupportedModelError, match="dense model"):
        check_dense(reader)


@pytest.mark.parametrize("name", ["qwen2", "qwen3"])
def test_models_with_biases_or_head_norms_become_glm4moe(name: str, tmp_path: Path) -> None:
    with planned(checkpoint_case(name).write(tmp_path), ConversionOptions(mixture=Mixture.Q8_0)) as plan:
        dense = write_gguf(plan, tmp_path / "dense.gguf")
    carved = write_carved(dense, tmp_path / "moe.gguf", observe(dense, TEXTS, n_most=1), CARVING)
    with Engine.open(dense, EXACT) as engine:
        expected = engine.logits(IDS)
    with Engine.open(carved, EXACT) as engine:
        found = engine.evaluate(IDS)
    np.testing.assert_allclose(found.logits, expected, atol=0.02 * expected.std())
    np.testing.assert_allclose(found.expert_weights, 1, atol=0.01)
    fields, tensors = gguf.GGUFReader(carved).fields, {tensor.name for tensor in gguf.GGUFReader(carved).tensors}
    assert fields["general.architecture"].contents() == "glm4moe"
    assert fields["glm4moe.expert_weights_scale"].contents() == 2
    assert {"blk.1.exp_probs_b.bias", "blk.0.attn_q.bias", "blk.0.post_attention_norm.weight"} <= tensors
    assert not any("ffn_norm" in tensor for tensor in tensors)


@pytest.mark.parametrize(
    ("name", "words"), [("smollm3", "without positions"), ("phi3", "fused"), ("mixtral", "experts")]
)
def test_what_no_layout_holds_is_refused_with_its_reason(name: str, words: str, tmp_path: Path) -> None:
    with planned(checkpoint_case(name).write(tmp_path, weights=False)) as plan:
        path = write_gguf(plan, tmp_path / "dense.gguf")
    with GGUFReader.open(path) as reader, pytest.raises(UnsupportedModelError, match=words):
        check_dense(reader)
