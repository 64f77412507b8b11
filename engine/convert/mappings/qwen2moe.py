"""Qwen1.5-MoE and Qwen2-MoE: biases on Q, K and V, a shared expert behind a gate of its own."""

from __future__ import annotations

from engine.convert.common_keys import (
    basic_keys,
    every_layer_has_experts,
    expert_keys,
    heads_of,
    no_sliding_window,
    normalised_weights,
)
from engine.convert.common_tensors import attention, experts, feed_forward, norms, router
from engine.convert.model_map import ModelMap

ARCHITECTURE = "qwen2moe"
CLASSES = ("Qwen2MoeForCausalLM",)


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("moe_intermediate_size")
    n_shared = m.config.size("shared_expert_intermediate_size")
    every_layer_has_experts(m)
    no_sliding_window(m)

    basic_keys(m)
    n_experts = expert_keys(m)
    m.key("expert_feed_forward_length", n)
    m.key("expert_shared_feed_forward_length", n_shared)
    normalised_weights(m, usual=False, unsaid=False)

    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=m.config.flag("qkv_bias", True))
        router(layer, n_experts)
        experts(layer, n_experts, n)
        feed_forward(layer, n_shared, source="mlp.shared_expert", suffix="_shexp")
        layer.tensor("ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", (1, m.hidden))
