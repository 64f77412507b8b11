"""A tiny DeepSeek-MoE (v1) model made from a seed, written as GGUF in a mixture of tensor types."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFValueType, GGUFWriter
from gguf.quants import quantize

from tests.support.gguf_copy import SourceFile

SEED = 3
N_HIDDEN, N_LAYERS, N_DENSE_LAYERS = 128, 3, 1
N_HEADS, N_KV_HEADS, HEAD_DIM = 4, 2, 32
N_EXPERTS, TOP_K, N_SHARED = 8, 3, 2
DENSE_FF, EXPERT_FF = 160, 32


def write_deepseek(target: Path, tokenizer_of: SourceFile, seed: int = SEED) -> None:
    """Write the model; its tokenizer and vocabulary size are those of another GGUF."""
    random = np.random.default_rng(seed)
    writer = GGUFWriter(target, "deepseek")
    writer.add_name("Tiny DeepSeek-MoE")
    writer.add_context_length(1024)
    writer.add_embedding_length(N_HIDDEN)
    writer.add_block_count(N_LAYERS)
    writer.add_feed_forward_length(DENSE_FF)
    writer.add_head_count(N_HEADS)
    writer.add_head_count_kv(N_KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_leading_dense_block_count(N_DENSE_LAYERS)
    writer.add_expert_count(N_EXPERTS)
    writer.add_expert_used_count(TOP_K)
    writer.add_expert_shared_count(N_SHARED)
    writer.add_expert_feed_forward_length(EXPERT_FF)
    writer.add_expert_weights_scale(1.0)
    for name, field in tokenizer_of.reader.fields.items():
        if name.startswith("tokenizer."):
            sub_type = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=sub_type)
    n_vocab = len(tokenizer_of.key("tokenizer.ggml.tokens"))
    writer.add_vocab_size(n_vocab)

    def add(name: str, kind: Type, *shape: int, gain: float = 1.0) -> None:
        """Normal values whose product with a normalised vector has the deviation `gain`."""
        values = (random.standard_normal(shape) * gain / np.sqrt(shape[-1])).astype(np.float32)
        if kind in (Type.F32, Type.F16):
            writer.add_tensor(f"{name}.weight", values.astype(np.float16 if kind == Type.F16 else np.float32))
        else:
            writer.add_tensor(f"{name}.weight", quantize(values, kind), raw_dtype=kind)

    def add_norm(name: str) -> None:
        writer.add_tensor(f"{name}.weight", (1 + 0.1 * random.standard_normal(N_HIDDEN)).astype(np.float32))

    add("token_embd", Type.Q8_0, n_vocab, N_HIDDEN, gain=6.0)
    for layer in range(N_LAYERS):
        blk = f"blk.{layer}"
        add_norm(f"{blk}.attn_norm")
        add(f"{blk}.attn_q", Type.F32 if layer == 0 else Type.F16, N_HEADS * HEAD_DIM, N_HIDDEN, gain=1.4)
        add(f"{blk}.attn_k", Type.BF16, N_KV_HEADS * HEAD_DIM, N_HIDDEN, gain=1.4)
        add(f"{blk}.attn_v", Type.Q8_0, N_KV_HEADS * HEAD_DIM, N_HIDDEN)
        add(f"{blk}.attn_output", Type.F16, N_HIDDEN, N_HEADS * HEAD_DIM, gain=2.0)
        add_norm(f"{blk}.ffn_norm")
        if layer < N_DENSE_LAYERS:
            add(f"{blk}.ffn_gate", Type.BF16, DENSE_FF, N_HIDDEN)
            add(f"{blk}.ffn_up", Type.Q8_0, DENSE_FF, N_HIDDEN)
            add(f"{blk}.ffn_down", Type.F16, N_HIDDEN, DENSE_FF, gain=2.0)
            continue
        add(f"{blk}.ffn_gate_inp", Type.F32, N_EXPERTS, N_HIDDEN, gain=2.0)
        add(f"{blk}.ffn_gate_exps", Type.BF16, N_EXPERTS, EXPERT_FF, N_HIDDEN)
        add(f"{blk}.ffn_up_exps", Type.Q8_0, N_EXPERTS, EXPERT_FF, N_HIDDEN)
        add(f"{blk}.ffn_down_exps", Type.F16, N_EXPERTS, N_HIDDEN, EXPERT_FF, gain=4.0)
        add(f"{blk}.ffn_gate_shexp", Type.Q8_0, N_SHARED * EXPERT_FF, N_HIDDEN)
        add(f"{blk}.ffn_up_shexp", Type.BF16, N_SHARED * EXPERT_FF, N_HIDDEN)
        add(f"{blk}.ffn_down_shexp", Type.Q8_0, N_HIDDEN, N_SHARED * EXPERT_FF, gain=2.0)
    add_norm("output_norm")
    add("output", Type.BF16, n_vocab, N_HIDDEN, gain=3.0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
