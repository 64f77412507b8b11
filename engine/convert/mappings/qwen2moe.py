"""Qwen1.5-MoE and Qwen2-MoE: biases on Q, K and V, a shared expert behind a gate of its own."""

from __future__ import annotations

from engine.convert.common_keys import (
    basic_keys,
    expert_keys,
    heads_of,
    layers_with_experts,
    normalised_weights,
    window_keys,
)
from engine.convert.common_tensors import attention, experts, feed_forward, norms, router
from engine.convert.model_map import ModelMap

ARCHITECTURE = "qwen2moe"
CLASSES = ("Qwen2MoeForCausalLM",)


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("moe_intermediate_size")
    n_shared = m.config.size("shared_expert_intermediate_size")
    has_experts = layers_with_experts(m)

    basic_keys(m)
    last = m.config.size("max_window_layers", 28, least=0)
    window_keys(m, [layer % 2 == 0 and layer < last for layer in range(m.n_layers)], in_use=False)
    n_experts = expert_keys(m)
    m.key("expert_feed_forward_length", n)
    m.key("expert_shared_feed_forward_length", n_shared)
    normalised_weights(m, usual=False, unsaid=False)

    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=m.config.flag("qkv_bias", True))
        if not has_experts[layer.index]:
            feed_forward(layer, m.config.size("intermediate_size"))
            continue
        router(layer, n_experts)
        experts(layer, n_experts, n)
        feed_forward(layer, n_shared, source="mlp.shared_expert", suffix="_shexp")
        layer.tensor("ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", (1, m.hidden))
