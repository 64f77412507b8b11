"""Older files of Qwen3-Next, whose projections lie in one tensor head by head, mean the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine import Engine, EngineConfig
from engine.gguf import GGUFReader, GGUFWriter
from tests.support.tiny_models import TINY, tiny_model

CONFIG = EngineConfig(context_length=128)


def write_old_layout(target: Path) -> Path:
    """The tiny qwen3next with ssm_in instead of attn_qkv and attn_gate."""
    with GGUFReader.open(tiny_model("qwen3next")) as reader:
        writer = GGUFWriter(target)
        for key, value in reader.metadata.items():
            if key != "general.alignment":
                writer.add(key, list(value) if isinstance(value, list | tuple) else value)
        for tensor in reader.tensors.values():
            rows = np.array(reader.data(tensor.name)).reshape(tensor.shape[0], -1)
            if tensor.name.endswith("attn_qkv.weight"):
                gate = reader.data(tensor.name.replace("qkv", "gate"))
                n_keys, n_values = TINY.delta_key_heads * TINY.delta_dim, TINY.delta_value_heads * TINY.delta_dim
                parts = [*np.split(rows, [n_keys, 2 * n_keys]), np.array(gate).reshape(n_values, -1)]
                by_head = [part.reshape(TINY.delta_key_heads, -1, rows.shape[1]) for part in parts]
                both = np.concatenate(by_head, axis=1).reshape(-1)
                shape = (tensor.shape[0] + n_values, tensor.shape[1])
                writer.add_tensor(tensor.name.replace("attn_qkv", "ssm_in"), tensor.type, shape, both)
            elif not tensor.name.endswith("attn_gate.weight"):
                writer.add_tensor(tensor.name, tensor.type, tensor.shape, rows.reshape(-1))
        writer.write()
    return target


def test_both_layouts_give_the_same_bits(tmp_path: Path) -> None:
    ids = np.random.default_rng(1).integers(0, 600, 75).tolist()
    with Engine.open(tiny_model("qwen3next"), CONFIG) as engine:
        expected = engine.logits(ids)
    with Engine.open(write_old_layout(tmp_path / "old.gguf"), CONFIG) as engine:
        np.testing.assert_array_equal(engine.logits(ids), expected)


def test_states_are_counted_with_the_cache() -> None:
    with Engine.open(tiny_model("qwen3next"), CONFIG) as engine:
        n_mixed = 2 * TINY.delta_key_heads * TINY.delta_dim + TINY.delta_value_heads * TINY.delta_dim
        state_bytes = 3 * 4 * (3 * n_mixed + TINY.delta_value_heads * TINY.delta_dim * TINY.delta_dim)
        assert engine.memory.kv_bytes > 2 * CONFIG.max_sequences * state_bytes
