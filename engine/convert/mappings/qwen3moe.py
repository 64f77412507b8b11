"""Qwen3-MoE: norms on each head's queries and keys, experts in every layer."""

from __future__ import annotations

from engine.convert.common_keys import (
    basic_keys,
    expert_keys,
    heads_of,
    layers_with_experts,
    normalised_weights,
    window_keys,
)
from engine.convert.common_tensors import attention, experts, feed_forward, norms, query_key_norms, router
from engine.convert.model_map import ModelMap

ARCHITECTURE = "qwen3moe"
CLASSES = ("Qwen3MoeForCausalLM",)


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("moe_intermediate_size")
    has_experts = layers_with_experts(m)

    basic_keys(m)
    window_keys(m, [True] * m.n_layers, in_use=False)
    n_experts = expert_keys(m)
    m.key("expert_feed_forward_length", n)
    normalised_weights(m, usual=True, unsaid=False)

    bias = m.config.flag("attention_bias", False)
    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=bias, output_bias=bias)
        query_key_norms(layer, heads.head_dim, heads.head_dim)
        if not has_experts[layer.index]:
            feed_forward(layer, m.config.size("intermediate_size"))
            continue
        router(layer, n_experts)
        experts(layer, n_experts, n)
