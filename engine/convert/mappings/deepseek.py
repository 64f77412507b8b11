"""DeepSeek-MoE, version 1: first layers dense, then routed experts beside shared ones; ordinary attention."""

from __future__ import annotations

from engine.convert.common_keys import SOFTMAX, basic_keys, expert_keys, heads_of, normalised_weights
from engine.convert.common_tensors import attention, experts, feed_forward, norms, router
from engine.convert.model_map import ModelMap
from engine.errors import UnsupportedModelError
from engine.gguf.value_types import ValueType

ARCHITECTURE = "deepseek"
CLASSES = ("DeepseekForCausalLM",)


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n_dense = m.config.size("first_k_dense_replace", 0, least=0)
    n = m.config.size("moe_intermediate_size")
    n_shared = m.config.size("n_shared_experts", 0, least=0)
    bias = m.config.flag("attention_bias", False)
    if m.config.size("moe_layer_freq", 1) != 1:
        raise UnsupportedModelError(f"{m.config.path}: expected moe_layer_freq = 1, found another value.")

    if m.config.get("scoring_func") not in (None, "softmax") or m.config.rope.kind != "default":
        raise UnsupportedModelError(
            f"{m.config.path}: expected the scoring_func softmax and unscaled positions, found "
            f"{m.config.get('scoring_func')!r:.40} and {m.config.rope.kind!r:.40}."
        )

    basic_keys(m)
    m.key("rope.scaling.type", "none", ValueType.STRING)
    n_experts = expert_keys(m)
    if m.config.get("scoring_func") is not None:
        m.key("expert_gating_func", SOFTMAX)
    m.key("rope.dimension_count", heads.head_dim)
    m.key("leading_dense_block_count", n_dense)
    m.key("vocab_size", m.n_vocabulary)
    m.key("expert_feed_forward_length", n)
    m.number("expert_weights_scale", m.config.number("routed_scaling_factor", 1.0))
    m.key("expert_shared_count", n_shared)
    normalised_weights(m, usual=False, unsaid=False)

    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=bias, output_bias=bias, pairs=True)
        if layer.index < n_dense:
            feed_forward(layer, m.config.size("intermediate_size"))
            continue
        router(layer, n_experts)
        experts(layer, n_experts, n)
        if n_shared:
            feed_forward(layer, n_shared * n, source="mlp.shared_experts", suffix="_shexp")
