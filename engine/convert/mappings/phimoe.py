"""Phi-3.5-MoE: layer norms with biases, a bias on the output, experts w1 (gate), w3 (up), w2 (down)."""

from __future__ import annotations

from engine.convert.common_keys import expert_keys, heads_of
from engine.convert.common_tensors import attention, experts, norms, router
from engine.convert.longrope import longrope_factors, phi_keys
from engine.convert.model_map import ModelMap

ARCHITECTURE = "phimoe"
CLASSES = ("PhiMoEForCausalLM", "PhimoeForCausalLM")


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("intermediate_size")
    bias = m.config.flag("attention_bias", False)

    phi_keys(m, heads.head_dim)
    n_experts = expert_keys(m)

    longrope_factors(m)
    m.embeddings()
    m.tensor("output_norm.bias", "model.norm.bias", (m.hidden,))
    if m.config.flag("lm_head_bias", False):
        m.tensor("output.bias", "lm_head.bias", (m.n_vocabulary,))
    for layer in m.layers():
        norms(layer)
        layer.table(
            ("attn_norm.bias", "input_layernorm.bias", (m.hidden,)),
            ("ffn_norm.bias", "post_attention_layernorm.bias", (m.hidden,)),
        )
        attention(layer, heads, bias=bias, output_bias=bias)
        router(layer, n_experts, "block_sparse_moe.gate.weight")
        experts(layer, n_experts, n, source="block_sparse_moe.experts", names=("w1", "w3", "w2"))
