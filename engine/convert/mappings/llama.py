"""Llama, Mistral and Mixtral: rotated values lie side by side in GGUF; Mixtral has experts w1 (gate), w3 (up), w2."""

from __future__ import annotations

from engine.convert.common_keys import (
    basic_keys,
    expert_keys,
    heads_of,
    window_keys,
)
from engine.convert.common_tensors import attention, experts, feed_forward, norms, router
from engine.convert.model_map import ModelMap

ARCHITECTURE = "llama"
CLASSES = ("LlamaForCausalLM", "MistralForCausalLM", "MixtralForCausalLM")


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("intermediate_size")
    bias = m.config.flag("attention_bias", False)
    has_experts = m.config.architecture == "MixtralForCausalLM"

    basic_keys(m)
    if m.config.architecture != "LlamaForCausalLM":  # which never looks at it
        window_keys(m, [True] * m.n_layers, in_use=True)
    m.key("vocab_size", m.n_vocabulary)
    m.key("rope.dimension_count", heads.head_dim)
    n_experts = expert_keys(m) if has_experts else None

    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=bias, output_bias=bias, pairs=True)
        if n_experts is None:
            feed_forward(layer, n)
            continue
        router(layer, n_experts, "block_sparse_moe.gate.weight")
        experts(layer, n_experts, n, source="block_sparse_moe.experts", names=("w1", "w3", "w2"))
