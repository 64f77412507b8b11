"""LFM2-MoE: short convolutions in most layers, attention in some, first layers dense, sigmoid routing with a bias."""

from __future__ import annotations

from engine.convert.common_keys import SIGMOID, basic_keys, expert_keys, heads_of, normalised_weights
from engine.convert.common_tensors import attention, experts, feed_forward, query_key_norms, router
from engine.convert.model_map import ModelMap
from engine.errors import UnsupportedModelError
from engine.gguf.value_types import ValueType

ARCHITECTURE = "lfm2moe"
CLASSES = ("Lfm2MoeForCausalLM",)

_NAMES = ("w1", "w3", "w2")  # gate, up, down


def describe(m: ModelMap) -> None:
    config = m.config
    heads = heads_of(m)
    kinds = config.texts("layer_types", m.n_layers)
    if kinds is None or not set(kinds) <= {"conv", "full_attention"}:
        raise config.wrong("layer_types", "conv or full_attention for each layer", kinds)
    if config.flag("conv_bias", False):
        raise UnsupportedModelError(f"{config.path}: expected short convolutions without bias, found conv_bias = true.")
    n = config.size("moe_intermediate_size")
    n_dense = config.size("num_dense_layers", 0, least=0)
    width = config.size("conv_L_cache")

    basic_keys(m)
    kv_heads = [int(heads.n_kv_heads) if kind == "full_attention" else 0 for kind in kinds]
    m.key("attention.head_count_kv", kv_heads, ValueType.INT32)
    n_experts = expert_keys(m)
    m.key("expert_feed_forward_length", n)
    m.key("leading_dense_block_count", n_dense)
    m.key("expert_gating_func", SIGMOID)
    m.key("vocab_size", m.n_vocabulary)
    m.key("shortconv.l_cache", width)
    normalised_weights(m, usual=True, unsaid=True)
    if (scale := config.number("routed_scaling_factor", 1.0)) != 1.0:
        m.number("expert_weights_scale", scale)

    m.embeddings(final_norm=False)
    m.tensor("token_embd_norm.weight", "model.embedding_norm.weight", (m.hidden,))
    for layer in m.layers():
        layer.table(
            ("attn_norm.weight", "operator_norm.weight", (m.hidden,)),
            ("ffn_norm.weight", "ffn_norm.weight", (m.hidden,)),
        )
        if kinds[layer.index] == "conv":
            layer.table(
                ("shortconv.in_proj.weight", "conv.in_proj.weight", (3 * m.hidden, m.hidden)),
                ("shortconv.out_proj.weight", "conv.out_proj.weight", (m.hidden, m.hidden)),
            )
            kernel = (m.hidden, 1, width)
            layer.tensor("shortconv.conv.weight", "conv.conv.weight", kernel, as_shape=(m.hidden, width))
        else:
            attention(layer, heads, out="out_proj")
            query_key_norms(layer, heads.head_dim, heads.head_dim, source="self_attn.{}_layernorm.weight")
        if layer.index < n_dense:
            feed_forward(layer, config.size("intermediate_size"), source="feed_forward", names=_NAMES)
            continue
        router(layer, n_experts, "feed_forward.gate.weight")
        if config.flag("use_expert_bias", True):
            layer.tensor("exp_probs_b.bias", "feed_forward.expert_bias", (n_experts,))
        experts(layer, n_experts, n, source="feed_forward.experts", names=_NAMES)
