"""What the Phi models share: their keys, and the long and short factors of their rotary positions."""

from __future__ import annotations

import math

from engine.convert.common_keys import check_activation
from engine.convert.model_map import ModelMap
from engine.convert.sizes import Size
from engine.errors import UnsupportedModelError


def rotated_dim(m: ModelMap, head_dim: int) -> int:
    """How much of a head is rotated."""
    return int(m.config.rope.number("partial_rotary_factor", 1.0) * head_dim)


def phi_keys(m: ModelMap, head_dim: Size) -> None:
    """Counts, sizes, norm, rope and window of Phi-3 and Phi-3.5-MoE."""
    config, rope = m.config, m.config.rope
    check_activation(m)
    m.key("block_count", m.n_layers)
    m.key("context_length", config.size("max_position_embeddings"))
    m.key("embedding_length", m.hidden)
    m.key("feed_forward_length", config.size("intermediate_size"))
    m.key("attention.head_count", config.size("num_attention_heads"))
    m.key("attention.head_count_kv", config.size("num_key_value_heads", config.size("num_attention_heads")))
    m.number("attention.layer_norm_rms_epsilon", config.number("rms_norm_eps"))
    m.key("attention.sliding_window", config.size("sliding_window", 0, least=0))
    original = rope.integer("original_max_position_embeddings", config.size("max_position_embeddings"))
    m.key("rope.scaling.original_context_length", original)
    m.key("rope.dimension_count", rotated_dim(m, head_dim))
    m.number("rope.freq_base", rope.number("rope_theta", 10000.0))


def longrope_factors(m: ModelMap) -> None:
    """The two tensors of divisors, and by how much attention is sharpened (Ding et al. 2024, LongRoPE)."""
    rope = m.config.rope
    if rope.kind == "default":
        return
    if rope.kind != "longrope":
        raise UnsupportedModelError(f"{m.config.path}: expected the rope type longrope, found {rope.kind!r:.40}.")
    n_factors = m.keys[f"{m.architecture}.rope.dimension_count"].value // 2
    m.constant("rope_factors_long.weight", rope.numbers("long_factor", n_factors))
    m.constant("rope_factors_short.weight", rope.numbers("short_factor", n_factors))
    original = m.keys[f"{m.architecture}.rope.scaling.original_context_length"].value
    scale = m.config.size("max_position_embeddings") / original
    usual = math.sqrt(1 + math.log(scale) / math.log(original)) if scale > 1 else 1.0
    short, long = rope.number("short_mscale", usual), rope.number("long_mscale", usual)
    if short != long:
        raise UnsupportedModelError(
            f"{m.config.path}: expected equal short_mscale and long_mscale in rope_scaling, found {short} and {long}, "
            "which GGUF cannot say."
        )
    m.number("rope.scaling.attn_factor", short)
