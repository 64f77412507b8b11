"""Tiny DeepSeek-MoE (v1) models made from a seed, written as GGUF: one in floats and Q8_0, one in every other type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType, GGUFWriter
from gguf.quants import quantize

from engine.gguf import TensorType
from tests.support.gguf_copy import SourceFile
from tests.support.gguf_files import random_tensor
from tests.support.random_blocks import RANDOM_BLOCKS

N_DENSE_LAYERS = 1


@dataclass(frozen=True, slots=True)
class Recipe:
    """Sizes, and the type of each matrix: by its whole name ("blk.1.attn_q"), else by its kind ("attn_q")."""

    types: Mapping[str, Type] = field(repr=False)
    n_hidden: int = 128
    n_layers: int = 3
    n_heads: int = 4
    n_kv_heads: int = 2
    head_dim: int = 32
    n_experts: int = 8
    top_k: int = 3
    n_shared: int = 2
    dense_ff: int = 160
    expert_ff: int = 32
    output_gain: float = 3.0  # deviation of the logits, about
    seed: int = 3

    def type_of(self, name: str) -> Type:
        return self.types[name if name in self.types else name.rsplit(".", maxsplit=1)[-1]]


MIXED = Recipe(
    {
        "token_embd": Type.Q8_0,
        "output": Type.BF16,
        "blk.0.attn_q": Type.F32,
        "attn_q": Type.F16,
        "attn_k": Type.BF16,
        "attn_v": Type.Q8_0,
        "attn_output": Type.F16,
        "ffn_gate": Type.BF16,
        "ffn_up": Type.Q8_0,
        "ffn_down": Type.F16,
        "ffn_gate_inp": Type.F32,
        "ffn_gate_exps": Type.BF16,
        "ffn_up_exps": Type.Q8_0,
        "ffn_down_exps": Type.F16,
        "ffn_gate_shexp": Type.Q8_0,
        "ffn_up_shexp": Type.BF16,
        "ffn_down_shexp": Type.Q8_0,
    }
)
EVERY_CODE = Recipe(  # all types of engine/kernels/code_weights.py
    {
        "token_embd": Type.Q2_K,
        "output": Type.IQ3_S,
        "blk.0.attn_q": Type.IQ2_XXS,
        "blk.0.attn_k": Type.IQ2_XS,
        "blk.0.attn_v": Type.IQ3_XXS,
        "blk.0.attn_output": Type.TQ2_0,
        "ffn_gate": Type.Q3_K,
        "ffn_up": Type.IQ2_S,
        "ffn_down": Type.IQ4_XS,
        "blk.1.attn_q": Type.IQ1_S,
        "blk.1.attn_k": Type.IQ1_M,
        "blk.1.attn_v": Type.TQ1_0,
        "blk.1.attn_output": Type.IQ4_NL,
        "ffn_gate_inp": Type.F32,
        "ffn_gate_exps": Type.Q3_K,
        "ffn_up_exps": Type.IQ3_S,
        "ffn_down_exps": Type.MXFP4,
        "ffn_gate_shexp": Type.IQ2_S,
        "ffn_up_shexp": Type.Q2_K,
        "ffn_down_shexp": Type.IQ4_NL,
    },
    n_hidden=256,
    n_layers=2,
    head_dim=64,
    n_experts=5,
    n_shared=1,
    dense_ff=256,
    expert_ff=64,
    output_gain=1.5,
    seed=4,
)


def write_deepseek(target: Path, tokenizer_of: SourceFile, recipe: Recipe = MIXED) -> None:
    """Write the model; its tokenizer and vocabulary size are those of another GGUF."""
    random = np.random.default_rng(recipe.seed)
    n_hidden, n_heads, n_kv_heads, head_dim = recipe.n_hidden, recipe.n_heads, recipe.n_kv_heads, recipe.head_dim
    n_experts, expert_ff, shared_ff = recipe.n_experts, recipe.expert_ff, recipe.n_shared * recipe.expert_ff
    writer = GGUFWriter(target, "deepseek")
    writer.add_name("Tiny DeepSeek-MoE")
    writer.add_context_length(1024)
    writer.add_embedding_length(n_hidden)
    writer.add_block_count(recipe.n_layers)
    writer.add_feed_forward_length(recipe.dense_ff)
    writer.add_head_count(n_heads)
    writer.add_head_count_kv(n_kv_heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(head_dim)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_leading_dense_block_count(N_DENSE_LAYERS)
    writer.add_expert_count(n_experts)
    writer.add_expert_used_count(recipe.top_k)
    writer.add_expert_shared_count(recipe.n_shared)
    writer.add_expert_feed_forward_length(expert_ff)
    writer.add_expert_weights_scale(1.0)
    for name, key in tokenizer_of.reader.fields.items():
        if name.startswith("tokenizer."):
            sub_type = key.types[-1] if key.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(name, key.contents(), key.types[0], sub_type=sub_type)
    n_vocab = len(tokenizer_of.key("tokenizer.ggml.tokens"))
    writer.add_vocab_size(n_vocab)

    def add(name: str, *shape: int, gain: float = 1.0) -> None:
        """Random values whose product with a normalised vector has the deviation `gain`."""
        kind, deviation = recipe.type_of(name), gain / np.sqrt(shape[-1])
        ours = TensorType(int(kind))
        if ours in RANDOM_BLOCKS:
            data = random_tensor(random, ours, shape, deviation)
            writer.add_tensor(f"{name}.weight", data.reshape(*shape[:-1], -1), raw_dtype=kind)
            return
        values = (random.standard_normal(shape) * gain / np.sqrt(shape[-1])).astype(np.float32)
        if kind in (Type.F32, Type.F16):
            writer.add_tensor(f"{name}.weight", values.astype(np.float16 if kind == Type.F16 else np.float32))
        else:
            writer.add_tensor(f"{name}.weight", quantize(values, kind), raw_dtype=kind)

    def add_norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", (1 + 0.1 * random.standard_normal(n_hidden)).astype(np.float32))

    add("token_embd", n_vocab, n_hidden, gain=6.0)
    for layer in range(recipe.n_layers):
        blk = f"blk.{layer}"
        add_norm(f"{blk}.attn_norm")
        add(f"{blk}.attn_q", n_heads * head_dim, n_hidden, gain=1.4)
        add(f"{blk}.attn_k", n_kv_heads * head_dim, n_hidden, gain=1.4)
        add(f"{blk}.attn_v", n_kv_heads * head_dim, n_hidden)
        add(f"{blk}.attn_output", n_hidden, n_heads * head_dim, gain=2.0)
        add_norm(f"{blk}.ffn_norm")
        if layer < N_DENSE_LAYERS:
            add(f"{blk}.ffn_gate", recipe.dense_ff, n_hidden)
            add(f"{blk}.ffn_up", recipe.dense_ff, n_hidden)
            add(f"{blk}.ffn_down", n_hidden, recipe.dense_ff, gain=2.0)
            continue
        add(f"{blk}.ffn_gate_inp", n_experts, n_hidden, gain=2.0)
        add(f"{blk}.ffn_gate_exps", n_experts, expert_ff, n_hidden)
        add(f"{blk}.ffn_up_exps", n_experts, expert_ff, n_hidden)
        add(f"{blk}.ffn_down_exps", n_experts, n_hidden, expert_ff, gain=4.0)
        add(f"{blk}.ffn_gate_shexp", shared_ff, n_hidden)
        add(f"{blk}.ffn_up_shexp", shared_ff, n_hidden)
        add(f"{blk}.ffn_down_shexp", n_hidden, shared_ff, gain=2.0)
    add_norm("output_norm")
    add("output", n_vocab, n_hidden, gain=recipe.output_gain)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
