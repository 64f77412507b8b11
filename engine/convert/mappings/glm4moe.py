"""GLM-4.5 and GLM-4.6: first layers dense, sigmoid routing with a bias, half of each head rotated, MTP layers."""

from __future__ import annotations

from engine.convert.common_keys import SIGMOID, basic_keys, expert_keys, heads_of
from engine.convert.common_tensors import attention, experts, feed_forward, norms, query_key_norms, router
from engine.convert.model_map import ModelMap
from engine.convert.sizes import Size
from engine.gguf.value_types import ValueType

ARCHITECTURE = "glm4moe"
CLASSES = ("Glm4MoeForCausalLM",)


def describe(m: ModelMap) -> None:
    config = m.config
    heads = heads_of(m)
    n_dense = config.size("first_k_dense_replace", 1, least=0)
    n = config.size("moe_intermediate_size")
    n_shared = config.size("n_shared_experts", 1, least=0)
    n_predict = config.size("num_nextn_predict_layers", 0, least=0)
    if not any(name.startswith(f"model.layers.{m.n_layers}.") for name in m.checkpoint.tensors):
        n_predict = Size(0, "no such layer in the checkpoint")  # fine-tuned ones often leave them out
    has_head_norms = config.flag("use_qk_norm", False)

    basic_keys(m, n_blocks=m.n_layers + n_predict, rotated=0.5)
    n_experts = expert_keys(m)
    m.key("expert_group_count", config.size("n_group", 1))
    m.key("expert_group_used_count", config.size("topk_group", 1))
    m.key("rope.dimension_count", int(int(heads.head_dim) * config.rope.number("partial_rotary_factor", 0.5)))
    m.key("expert_feed_forward_length", n)
    m.key("expert_shared_count", n_shared)
    m.key("leading_dense_block_count", n_dense)
    m.key("expert_gating_func", SIGMOID)
    m.number("expert_weights_scale", config.number("routed_scaling_factor", 1.0))
    m.key("expert_weights_norm", config.flag("norm_topk_prob", True), ValueType.BOOL)
    if config.get("num_nextn_predict_layers") is not None:
        m.key("nextn_predict_layers", n_predict)

    m.embeddings()
    for layer in m.layers(m.n_layers + n_predict):
        norms(layer, after_attention="post_attention_norm.weight")
        attention(layer, heads, bias=config.flag("attention_bias", False))
        if has_head_norms:
            query_key_norms(layer, heads.head_dim, heads.head_dim)
        if layer.index < n_dense:
            feed_forward(layer, config.size("intermediate_size"))
            continue
        router(layer, n_experts)
        layer.tensor("exp_probs_b.bias", "mlp.gate.e_score_correction_bias", (n_experts,))
        experts(layer, n_experts, n)
        if n_shared:
            feed_forward(layer, n_shared * n, source="mlp.shared_experts", suffix="_shexp")
        if layer.index < m.n_layers:
            continue
        table = (m.n_vocabulary, m.hidden)  # a layer that predicts one token further
        layer.table(
            ("nextn.eh_proj.weight", "eh_proj.weight", (m.hidden, 2 * m.hidden)),
            ("nextn.enorm.weight", "enorm.weight", (m.hidden,)),
            ("nextn.hnorm.weight", "hnorm.weight", (m.hidden,)),
            ("nextn.shared_head_norm.weight", "shared_head.norm.weight", (m.hidden,)),
        )
        for target, source in (("embed_tokens", "embed_tokens"), ("shared_head_head", "shared_head.head")):
            if layer.has(f"{source}.weight"):
                layer.tensor(f"nextn.{target}.weight", f"{source}.weight", table)
