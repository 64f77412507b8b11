"""OLMoE: norms on the queries and keys of all heads at once."""

from __future__ import annotations

from engine.convert.common_keys import basic_keys, expert_keys, heads_of, normalised_weights
from engine.convert.common_tensors import attention, experts, norms, query_key_norms, router
from engine.convert.model_map import ModelMap

ARCHITECTURE = "olmoe"
CLASSES = ("OlmoeForCausalLM",)


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("intermediate_size")

    basic_keys(m)
    n_experts = expert_keys(m)
    normalised_weights(m, usual=False, unsaid=False)
    if m.config.get("clip_qkv") is not None:
        m.number("attention.clamp_kqv", m.config.number("clip_qkv"))

    bias = m.config.flag("attention_bias", False)
    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=bias, output_bias=bias)
        query_key_norms(layer, heads.n_query, heads.n_key)
        router(layer, n_experts)
        experts(layer, n_experts, n)
