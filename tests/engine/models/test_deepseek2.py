"""Older files of DeepSeek-V2, whose keys and values are not yet absorbed, mean the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine import Engine, EngineConfig
from engine.gguf import GGUFReader, GGUFWriter, TensorType, dequantise
from tests.support.tiny_models import TINY, tiny_model

OLD_KEYS = {
    "deepseek2.attention.head_count_kv": TINY.heads,
    "deepseek2.attention.key_length": TINY.n_plain + TINY.n_rope,
    "deepseek2.attention.value_length": TINY.n_value,
}
FLOATS = EngineConfig(context_length=128, activations="float32", kv_type="f32")


def write_old_layout(target: Path) -> Path:
    """The tiny deepseek2 with attn_kv_b, each head's key and value together, instead of attn_k_b and attn_v_b."""
    with GGUFReader.open(tiny_model("deepseek2")) as reader:
        writer = GGUFWriter(target)
        for key, value in {**reader.metadata, **OLD_KEYS}.items():
            if not key.endswith("_mla") and key != "general.alignment":
                writer.add(key, list(value) if isinstance(value, list | tuple) else value)
        for tensor in reader.tensors.values():
            data = reader.data(tensor.name)
            if "attn_k_b" in tensor.name:
                values = reader.tensors[tensor.name.replace("k_b", "v_b")]
                k = dequantise(data, tensor.type, tensor.shape).transpose(0, 2, 1)
                v = dequantise(reader.data(values.name), values.type, values.shape)
                both = np.concatenate([k, v], axis=1).reshape(-1, TINY.n_latent)
                data = np.ascontiguousarray(both, np.float32).view(np.uint8).reshape(-1)
                writer.add_tensor(tensor.name.replace("k_b", "kv_b"), TensorType.F32, both.shape, data)
            elif "attn_v_b" not in tensor.name:
                writer.add_tensor(tensor.name, tensor.type, tensor.shape, data)
        writer.write()
    return target


def test_both_layouts_give_the_same_logits(tmp_path: Path) -> None:
    ids = np.random.default_rng(1).integers(0, 600, 75).tolist()
    with Engine.open(tiny_model("deepseek2"), FLOATS) as engine:
        expected = engine.evaluate(ids)
        kv_bytes = engine.memory.kv_bytes
    with Engine.open(write_old_layout(tmp_path / "old.gguf"), FLOATS) as engine:
        found = engine.evaluate(ids)
        assert engine.memory.kv_bytes == kv_bytes
    np.testing.assert_allclose(found.logits, expected.logits, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(found.experts, expected.experts)


def test_the_cache_holds_a_latent_and_a_rotated_key_for_each_position() -> None:
    config = EngineConfig(context_length=128, kv_pool_tokens=256)
    with Engine.open(tiny_model("deepseek2"), config) as engine:
        assert engine.memory.kv_bytes == 256 * engine.info.n_layers * (TINY.n_latent + TINY.n_rope) * 2
