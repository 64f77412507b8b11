"""A model beside its source: no difference to itself, a measured one to a coarser copy, figures that can be checked."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from engine import Engine
from engine.convert.calibrate import passages
from engine.convert.proof import Proof, compare, proof_of, store
from engine.errors import ModelFormatError
from engine.gguf import GGUFReader, GGUFWriter, TensorType, dequantise
from tests.engine.compact import LLAMA, MIXTRAL, OLMOE, QWEN3_MOE, model_path

TEXTS = {"birds": "The hummingbird hovers before the flower and drinks. " * 20}


def with_noise(source: Path, target: Path, noise: float) -> Path:
    """A copy of a model in F32 with noise on its matrices; routers and norms stay."""
    rng = np.random.default_rng(0)
    with GGUFReader.open(source) as reader:
        writer = GGUFWriter(target)
        for key, encoded in reader.encoded_keys().items():
            if key != "general.alignment":
                writer.add_encoded(key, encoded)
        for name, tensor in reader.tensors.items():
            values = dequantise(reader.data(name), tensor.type, tensor.shape)
            if len(tensor.shape) > 1 and "gate_inp" not in name:
                values *= 1 + noise * rng.standard_normal(values.shape, np.float32)
            writer.add_tensor(name, TensorType.F32, tensor.shape, values)
        return writer.write()


@pytest.fixture(scope="module", params=[LLAMA, MIXTRAL, OLMOE])
def noisy(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A model, and copies of it with a little and with much noise."""
    source, folder = model_path(request.param), tmp_path_factory.mktemp("noisy")
    return source, *(with_noise(source, folder / f"{noise}.gguf", noise) for noise in (0.003, 0.1))


def test_a_model_does_not_differ_from_itself() -> None:
    proof = compare(model_path(MIXTRAL), model_path(MIXTRAL), TEXTS, n_most=1, passage_tokens=64)
    assert proof.divergence == proof.divergence_99 == 0
    assert proof.perplexity == proof.source_perplexity
    assert proof.top_agreement == 1
    assert proof.route_agreement == (1, 1)
    assert proof.n_tokens == 64


def test_more_noise_shows_as_more_divergence(noisy: tuple[Path, Path, Path]) -> None:
    source, little, much = noisy
    near, far = (compare(source, copy, TEXTS, n_most=2, passage_tokens=64) for copy in (little, much))
    assert 0 < near.divergence < far.divergence / 10
    assert near.divergence <= near.divergence_99
    assert near.top_agreement >= far.top_agreement
    assert np.mean(near.route_agreement or [1]) >= np.mean(far.route_agreement or [1])


def test_figures_are_those_that_the_logits_give(noisy: tuple[Path, Path, Path]) -> None:
    source, _, much = noisy
    proof = compare(source, much, TEXTS, n_most=1, passage_tokens=64)
    with Engine.open(source) as engine:
        (ids,) = passages(engine.tokenizer, TEXTS, n_tokens=64, n_most=1)
        p = engine.evaluate(ids)
    with Engine.open(much) as engine:
        q = engine.evaluate(ids)
    log_p, log_q = (x.logits - np.log(np.exp(x.logits.astype(np.float64)).sum(-1, keepdims=True)) for x in (p, q))
    assert proof.divergence == pytest.approx((np.exp(log_p) * (log_p - log_q)).sum(-1).mean(), rel=0.02)
    assert proof.perplexity == pytest.approx(np.exp(-log_q[np.arange(63), ids[1:]].mean()), rel=1e-2)
    assert proof.top_agreement == pytest.approx((p.logits.argmax(-1) == q.logits.argmax(-1)).mean(), abs=0.04)
    for layer, share in enumerate(proof.route_agreement):
        common = [len(set(a) & set(b)) / len(a) for a, b in zip(p.experts[layer], q.experts[layer], strict=True)]
        assert share == pytest.approx(np.mean(common), abs=0.04)


def test_models_of_other_vocabularies_are_refused() -> None:
    other = model_path(QWEN3_MOE)
    with pytest.raises(ModelFormatError, match="no two files of one model"):
        compare(model_path(LLAMA), other, TEXTS)


PROOF = Proof("source.gguf", "sample", 2048, 12.5, 12.75, 0.015625, 0.125, 0.96875, (0.5, 1.0))


@pytest.mark.parametrize("routes", [(), (0.5, 1.0)])
def test_a_proof_is_kept_in_the_models_file(tmp_path: Path, routes: tuple[float, ...]) -> None:
    path = Path(shutil.copy(model_path(LLAMA), tmp_path / "model.gguf"))
    store(PROOF, path)
    kept = Proof(**{**{name: getattr(PROOF, name) for name in Proof.__slots__}, "route_agreement": routes})
    store(kept, path)
    with GGUFReader.open(path) as reader, GGUFReader.open(model_path(LLAMA)) as original:
        assert proof_of(reader.metadata) == kept
        assert proof_of(original.metadata) is None
        assert reader.metadata["colibri.proof.sentence"] == kept.sentence
        assert {n: reader.data(n).tobytes() for n in reader.tensors} == {
            n: original.data(n).tobytes() for n in original.tensors
        }


def test_the_sentence_says_what_was_found() -> None:
    assert PROOF.sentence == (
        "On 2,048 tokens of text it prefers the same next token as its source at 96.9 % of the positions, its routers "
        "choose the same experts in 75.0 % of all cases, and its perplexity is 12.750 instead of 12.500 "
        "(divergence 0.016 nats)."
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"perplexity": "12"},
        {"divergence": float("nan")},
        {"divergence": -1.0},
        {"top_agreement": 1.5},
        {"tokens": "many"},
        {"source": 3},
        {"route_agreement": np.array([2.0])},
    ],
)
def test_figures_that_cannot_be_are_no_proof(changes: dict[str, object]) -> None:
    keys = PROOF.keys()
    assert proof_of(keys) == PROOF
    assert proof_of(keys | {f"colibri.proof.{name}": value for name, value in changes.items()}) is None
