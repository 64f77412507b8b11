"""What few published configurations say: windows, dense layers among sparse ones, llama3's scaling, odd widths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine import Engine, EngineConfig
from engine.convert import Checkpoint, ConversionOptions, plan_conversion, write_gguf
from engine.gguf import GGUFReader, TensorType
from tests.support.variants import DATA, N_POSITIONS, VARIANTS, Variant

REFERENCE = EngineConfig(context_length=128, max_batch_tokens=64, activations="float32", kv_type="f32")
LIMIT = 1e-3


def converted(variant: Variant, tmp_path: Path) -> Path:
    with Checkpoint.open(variant.write(tmp_path)) as checkpoint:
        plan = plan_conversion(checkpoint, ConversionOptions(type=TensorType.F32))
        return write_gguf(plan, tmp_path / "model.gguf")


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_a_variant_computes_what_its_publisher_s_code_does(variant: Variant, tmp_path: Path) -> None:
    path = converted(variant, tmp_path)

    with Engine.open(path, REFERENCE) as engine:
        found = engine.logits(variant.ids)

    with np.load(DATA) as recorded:
        expected = recorded[variant.name]
    np.testing.assert_allclose(found[-N_POSITIONS:], expected, rtol=LIMIT, atol=LIMIT * expected.std())


def test_a_window_is_a_key_and_its_layers_are_named_where_not_all_have_it(tmp_path: Path) -> None:
    variants = {variant.name: variant for variant in VARIANTS}

    with GGUFReader.open(converted(variants["mixtral_window"], tmp_path / "all")) as reader:
        assert reader.metadata["llama.attention.sliding_window"] == 24
        assert "llama.attention.sliding_window_pattern" not in reader.metadata
    with GGUFReader.open(converted(variants["qwen2_window"], tmp_path / "some")) as reader:
        assert reader.metadata["qwen2.attention.sliding_window"] == 24
        assert list(reader.metadata["qwen2.attention.sliding_window_pattern"]) == [False, True]
