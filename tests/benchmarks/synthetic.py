"""Writes models of real shapes with random weights, for measuring speed where no real model can be had.

    python -m tests.benchmarks.synthetic mixtral-shape FILE.gguf

Every value is what a trained model's could be in size, so activations stay finite and routers spread the tokens; the
text means nothing. Blocks come from a random pool that is laid end to end, so that gigabytes take seconds.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter, TokenType

POOL_BLOCKS = 100_003  # a prime, so that tensors which follow one another begin elsewhere in the pool
SCALES_MEAN, NIBBLE_MIDDLE = 31.5, 7.5


@dataclass(frozen=True, slots=True)
class Shape:
    """The dimensions of a model; n_experts 0 makes it dense."""

    architecture: str
    n_layers: int
    n_hidden: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_ff: int  # of one expert, where there are experts
    n_vocab: int
    n_experts: int = 0
    top_k: int = 0
    rope_base: float = 1_000_000.0
    qk_norm: bool = False


PRESETS = {
    "mixtral-shape": Shape("llama", 4, 4096, 32, 8, 128, 14336, 32_000, n_experts=8, top_k=2),
    "qwen3moe-shape": Shape("qwen3moe", 12, 2048, 32, 4, 128, 768, 151_936, n_experts=128, top_k=8, qk_norm=True),
    "tiny-shape": Shape("qwen3moe", 2, 256, 4, 2, 64, 256, 1_024, n_experts=8, top_k=2, qk_norm=True),
}


@dataclass(frozen=True, slots=True)
class TensorPlan:
    name: str
    kind: Type
    shape: tuple[int, ...]  # (rows, inputs), with the experts in front


def tensor_plans(shape: Shape) -> list[TensorPlan]:
    """Every tensor of the model in the order in which it is written: matrices Q4_K, the output Q6_K, the rest F32."""
    q_rows, kv_rows = shape.n_heads * shape.head_dim, shape.n_kv_heads * shape.head_dim
    hidden, experts = shape.n_hidden, shape.n_experts
    plans = [TensorPlan("token_embd", Type.Q4_K, (shape.n_vocab, hidden))]
    for layer in range(shape.n_layers):
        blk = f"blk.{layer}"
        plans += [
            TensorPlan(f"{blk}.attn_norm", Type.F32, (hidden,)),
            TensorPlan(f"{blk}.attn_q", Type.Q4_K, (q_rows, hidden)),
            TensorPlan(f"{blk}.attn_k", Type.Q4_K, (kv_rows, hidden)),
            TensorPlan(f"{blk}.attn_v", Type.Q4_K, (kv_rows, hidden)),
            TensorPlan(f"{blk}.attn_output", Type.Q4_K, (hidden, q_rows)),
            TensorPlan(f"{blk}.ffn_norm", Type.F32, (hidden,)),
        ]
        if shape.qk_norm:
            plans += [TensorPlan(f"{blk}.attn_{part}_norm", Type.F32, (shape.head_dim,)) for part in "qk"]
        front, suffix = ((experts,), "_exps") if experts else ((), "")
        if experts:
            plans.append(TensorPlan(f"{blk}.ffn_gate_inp", Type.F32, (experts, hidden)))
        plans += [
            TensorPlan(f"{blk}.ffn_gate{suffix}", Type.Q4_K, (*front, shape.n_ff, hidden)),
            TensorPlan(f"{blk}.ffn_up{suffix}", Type.Q4_K, (*front, shape.n_ff, hidden)),
            TensorPlan(f"{blk}.ffn_down{suffix}", Type.Q4_K, (*front, hidden, shape.n_ff)),
        ]
    plans.append(TensorPlan("output_norm", Type.F32, (hidden,)))
    plans.append(TensorPlan("output", Type.Q6_K, (shape.n_vocab, hidden)))
    return plans


class BlockPool:
    """Random quantised blocks, dealt out one tensor after another."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.blocks = {Type.Q4_K: self._q4_k(), Type.Q6_K: self._q6_k()}
        self.next_block = 0

    def deal(self, plan: TensorPlan) -> np.ndarray:
        """Bytes of a tensor (blocks, block bytes), or its float32 values; weights have deviation 1 / sqrt(inputs)."""
        if plan.kind == Type.F32:
            if len(plan.shape) == 1:
                return np.ones(plan.shape, np.float32)
            values = self.random.standard_normal(plan.shape, np.float32)
            return values / np.float32(np.sqrt(plan.shape[-1]))
        pool = self.blocks[plan.kind]
        n_blocks = int(np.prod(plan.shape)) // 256
        set_scale(pool, plan.kind, 1 / np.sqrt(plan.shape[-1]))
        chosen = (np.arange(n_blocks) + self.next_block) % POOL_BLOCKS
        self.next_block = (self.next_block + n_blocks + 1) % POOL_BLOCKS
        return pool[chosen]

    def _q4_k(self) -> np.ndarray:
        """d, dmin (float16), 12 bytes of 6-bit scales and minima, 128 bytes of nibbles; minima equal to scales."""
        blocks = self.random.integers(0, 256, (POOL_BLOCKS, 144), np.uint8)
        blocks[:, 8:12] = blocks[:, 4:8]
        low = blocks[:, 12:16] & 0x0F
        blocks[:, 12:16] = low | (low << 4)
        return blocks

    def _q6_k(self) -> np.ndarray:
        """128 bytes of low nibbles, 64 of high pairs, 16 signed scales, d (float16)."""
        return self.random.integers(0, 256, (POOL_BLOCKS, 210), np.uint8)


def set_scale(pool: np.ndarray, kind: Type, deviation: float) -> None:
    """Give every block of the pool the float16 scale with which its values have the wanted deviation."""
    if kind == Type.Q4_K:
        scales_rms, nibbles_rms = np.sqrt((64**2 - 1) / 12 + SCALES_MEAN**2), np.sqrt((16**2 - 1) / 12)
        scale = np.float16(deviation / (scales_rms * nibbles_rms))
        pool[:, 0:2] = np.array([scale]).view(np.uint8)
        pool[:, 2:4] = np.array([np.float16(scale * NIBBLE_MIDDLE)]).view(np.uint8)
    else:
        scales_rms, values_rms = np.sqrt((256**2 - 1) / 12), np.sqrt((64**2 - 1) / 12)
        pool[:, 208:210] = np.array([np.float16(deviation / (scales_rms * values_rms))]).view(np.uint8)


def byte_symbols() -> list[str]:
    """The 256 characters that stand for bytes in GPT-2's vocabulary."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def add_keys(writer: GGUFWriter, name: str, shape: Shape) -> None:
    writer.add_name(name)
    writer.add_license("cc0-1.0")
    writer.add_context_length(32_768)
    writer.add_embedding_length(shape.n_hidden)
    writer.add_block_count(shape.n_layers)
    writer.add_feed_forward_length(shape.n_ff)
    writer.add_head_count(shape.n_heads)
    writer.add_head_count_kv(shape.n_kv_heads)
    writer.add_key_length(shape.head_dim)
    writer.add_value_length(shape.head_dim)
    writer.add_rope_dimension_count(shape.head_dim)
    writer.add_rope_freq_base(shape.rope_base)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(shape.n_vocab)
    writer.add_file_type(15)
    if shape.n_experts:
        writer.add_expert_count(shape.n_experts)
        writer.add_expert_used_count(shape.top_k)
        writer.add_expert_feed_forward_length(shape.n_ff)
    symbols = [*byte_symbols(), "Ġt", "<|end|>"]
    tokens = symbols + [f"w{index}" for index in range(shape.n_vocab - len(symbols))]
    types = [TokenType.NORMAL] * shape.n_vocab
    types[len(symbols) - 1] = TokenType.CONTROL
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges(["Ġ t"])
    writer.add_eos_token_id(len(symbols) - 1)
    writer.add_add_bos_token(False)


def write_model(shape: Shape, target: Path, *, name: str = "Synthetic", seed: int = 0) -> None:
    """Write a model of that shape; one tensor at a time is in memory."""
    pool, plans = BlockPool(seed), tensor_plans(shape)
    writer = GGUFWriter(target, shape.architecture)
    add_keys(writer, name, shape)
    block_bytes = {Type.Q4_K: 144, Type.Q6_K: 210}
    for plan in plans:
        if plan.kind == Type.F32:
            n_bytes = int(np.prod(plan.shape)) * 4
            writer.add_tensor_info(f"{plan.name}.weight", plan.shape, np.dtype(np.float32), n_bytes)
            continue
        row_bytes = plan.shape[-1] // 256 * block_bytes[plan.kind]
        stored = (*plan.shape[:-1], row_bytes)
        n_bytes = int(np.prod(stored))
        writer.add_tensor_info(f"{plan.name}.weight", stored, np.dtype(np.uint8), n_bytes, raw_dtype=plan.kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for plan in plans:
        writer.write_tensor_data(pool.deal(plan))
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("preset", choices=PRESETS)
    parser.add_argument("target", type=Path)
    arguments = parser.parse_args()
    write_model(PRESETS[arguments.preset], arguments.target, name=arguments.preset)


if __name__ == "__main__":
    main()
