"""Models of sizes that nobody published compute what a plain float64 evaluation of the same file does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Engine, EngineConfig
from engine.errors import UnsupportedModelError
from engine.gguf import TensorType
from tests.engine.test_hostile_models import rewritten
from tests.reference.numpy_decoder import NumpyDecoder
from tests.support.tiny_models import TINY_MODELS, Sizes, write_tiny_model

LIMIT = 1e-3
FLOATS = {"activations": "float32", "kv_type": "f32"}
TYPES = (TensorType.F32, TensorType.F16, TensorType.BF16, TensorType.Q8_0, TensorType.Q4_0)
SCALINGS: tuple[dict[str, Any] | None, ...] = (
    None,
    {"type": "linear", "factor": 2.5},
    {"type": "yarn", "factor": 4.0, "original_context_length": 100},
    {"type": "yarn", "factor": 16.0, "original_context_length": 64, "attn_factor": 1.1},
)
# Those whose published code has no way to leave the weights of the chosen as they are, or to divide them.
FIXED_WEIGHTS = ("granitemoe", "gpt-oss", "mixtral", "phimoe")
NO_BIASES = ("deepseek2", "phi3")
# Those of whose layers or experts sixteen values are taken at a time: biases of experts, convolutions, layer norms.
WHOLE_LAYERS, WHOLE_EXPERTS = ("gpt-oss", "lfm2moe", "phimoe"), ("gpt-oss",)


@st.composite
def sizes(draw: st.DrawFn, name: str) -> Sizes:
    """Odd numbers of heads and experts, widths that are no powers of two, every flag either way."""

    def one_of(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    kv_heads, n_experts, key_heads = one_of(1, 2, 3, 5), one_of(3, 4, 6, 8, 12, 20, 33), one_of(1, 2, 3)
    return Sizes(
        layers=one_of(1, 2, 3),
        hidden=one_of(32, 48, 80, 96, 160, 224, *(() if name in WHOLE_LAYERS else (36, 100, 172))),
        heads=kv_heads * one_of(1, 2, 3, 7),
        kv_heads=kv_heads,
        head_dim=one_of(4, 8, 16, 20, 24, 32, 48, 64, 80, 100, 120, 128),
        feed_forward=one_of(16, 48, 64, 160, 172, 352),
        expert_columns=one_of(16, 32, 48, 96, *(() if name in WHOLE_EXPERTS else (20, 36))),
        experts=n_experts,
        top_k=draw(st.integers(1, min(n_experts, 6))) if n_experts % 4 else one_of(1, 2),
        n_shared=one_of(0, 1, 2),
        n_dense=one_of(0, 1, 2),
        n_latent=one_of(16, 32, 80, 128),
        n_rope=one_of(16, 32, 64),
        n_plain=one_of(16, 32, 48, 128),
        n_value=one_of(16, 32, 48, 128),
        query_rank=one_of(0, 32, 48, 64),
        delta_key_heads=key_heads,
        delta_value_heads=key_heads * one_of(1, 2, 3),
        delta_dim=one_of(32, 64, 128),
        window=one_of(1, 5, 31, 32, 33, 64, 400),
        slides=one_of("", "all", "first"),
        is_mixed=one_of(False, True),
        has_output=one_of(None, False, True),
        has_biases=None if name in NO_BIASES else one_of(None, False, True),
        normalises=None if name in FIXED_WEIGHTS else one_of(None, False, True),
        scaling=one_of(*SCALINGS),
    )


@pytest.mark.parametrize("name", sorted(TINY_MODELS))
@settings(max_examples=8)
@given(data=st.data())
def test_any_size_and_flag_computes_what_the_file_means(tmp_path: Path, name: str, data: st.DataObject) -> None:
    shape, type = data.draw(sizes(name)), data.draw(st.sampled_from(TYPES))
    path = write_tiny_model(tmp_path / "model.gguf", name, shape, type)
    ids = np.random.default_rng(1).integers(0, shape.n_vocab, data.draw(st.sampled_from([1, 5, 40, 75]))).tolist()
    decoder = NumpyDecoder(path)
    expected, routes = decoder.forward(ids)

    with Engine.open(path, EngineConfig(context_length=128, max_batch_tokens=64, **FLOATS)) as engine:
        found = engine.evaluate(ids)

    # where a router's choice is nearly even, either is right, and what follows may differ
    is_sure = np.logical_and.accumulate(decoder.least_margin > 1e-4)
    if routes is not None:
        np.testing.assert_array_equal(np.sort(found.experts[:, is_sure]), np.sort(routes.idx[:, is_sure]))
    np.testing.assert_allclose(found.logits[is_sure], expected[is_sure], rtol=LIMIT, atol=LIMIT)


@pytest.mark.parametrize("name", sorted(TINY_MODELS))
def test_rounded_activations_change_little_whatever_the_widths(tmp_path: Path, name: str) -> None:
    shape = Sizes(hidden=80, head_dim=48, kv_heads=3, heads=6, feed_forward=80, expert_columns=48, experts=5, top_k=2)
    path = write_tiny_model(tmp_path / "model.gguf", name, shape, TensorType.F16)
    ids = np.random.default_rng(1).integers(0, shape.n_vocab, 60).tolist()
    expected, _ = NumpyDecoder(path).forward(ids)

    with Engine.open(path, EngineConfig(context_length=128, max_batch_tokens=64)) as engine:
        found = engine.logits(ids)

    assert np.median(np.abs(found - expected).max(-1)) < 0.02 * expected.std()


@pytest.mark.parametrize(
    ("name", "changes", "what"),
    [
        ("mixtral", {"hidden": 70}, "embedding length of this model: 70; a multiple of 4"),
        ("mixtral", {"head_dim": 10, "heads": 3, "kv_heads": 1}, "values of all heads of this model: 30; a multiple"),
        ("mixtral", {"feed_forward": 42}, "feed-forward length of this model: 42; a multiple of 4"),
        ("mixtral", {"expert_columns": 42}, "feed-forward length of the experts of this model: 42"),
        ("phimoe", {"hidden": 72}, "embedding length of this model: 72; its layer norms need a multiple of 16"),
        ("lfm2moe", {"hidden": 72}, r"shortconv\.conv\.weight has 72 channels; a multiple of 16"),
        ("gpt-oss", {"expert_columns": 36}, r"ffn_gate_exps\.bias have 36 values; a multiple of 16"),
        ("qwen3next", {"delta_dim": 16}, "values of a delta-net head have 16 values, no multiple of 32"),
    ],
)
def test_a_width_that_kernels_cannot_take_is_named(
    tmp_path: Path, name: str, changes: dict[str, int], what: str
) -> None:
    path = write_tiny_model(tmp_path / "model.gguf", name, Sizes(**changes), TensorType.F16)

    with pytest.raises(UnsupportedModelError, match=what):
        Engine.open(path).close()


def test_a_tensor_that_would_be_left_out_is_refused_by_name(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "model.gguf", "phi3", Sizes(has_biases=True))

    with pytest.raises(UnsupportedModelError, match=r"knows no use for .*blk\.0\.attn_q\.bias"):
        Engine.open(path).close()


def test_an_unknown_architecture_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    path = rewritten(tmp_path / "model.gguf", "mixtral", {"general.architecture": "mamba9"})

    with pytest.raises(UnsupportedModelError, match=r"'mamba9' is not known.*deepseek2.*qwen3moe.*smollm3"):
        Engine.open(path).close()
