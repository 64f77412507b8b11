"""ERNIE 4.5 MoE: first layers dense, softmax routing with a bias, shared experts, rotated values side by side."""

from __future__ import annotations

from engine.convert.common_keys import basic_keys, expert_keys, heads_of
from engine.convert.common_tensors import attention, experts, feed_forward, norms, router
from engine.convert.model_map import ModelMap
from engine.errors import UnsupportedModelError

ARCHITECTURE = "ernie4_5-moe"
CLASSES = ("Ernie4_5_MoeForCausalLM", "Ernie4_5_MoEForCausalLM")


def describe(m: ModelMap) -> None:
    config = m.config
    heads = heads_of(m)
    n = config.size("moe_intermediate_size")
    n_shared = config.size("moe_num_shared_experts", 0, least=0)
    n_dense = config.size("moe_layer_start_index", 0, least=0)
    interval = config.size("moe_layer_interval", 1)
    end = config.get("moe_layer_end_index")
    last = m.n_layers - 1 if end in (None, -1) else config.size("moe_layer_end_index", least=0)
    if any((index + 1) % interval == 0 for index in range(last + 1, m.n_layers)):
        raise UnsupportedModelError(
            f"{config.path}: expected experts in every moe_layer_interval-th layer up to the last, found "
            f"moe_layer_end_index = {int(last)} of {m.n_layers} layers. GGUF cannot say so of this architecture."
        )

    basic_keys(m)
    n_experts = expert_keys(m)
    m.key("interleave_moe_layer_step", interval)
    m.key("leading_dense_block_count", n_dense)
    m.key("expert_feed_forward_length", n)
    m.key("expert_shared_count", n_shared)
    if n_shared:
        m.key("expert_shared_feed_forward_length", n_shared * n)

    bias = config.flag("use_bias", False)
    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=bias, output_bias=bias, pairs=False)
        if layer.index < n_dense or (layer.index + 1) % interval:
            feed_forward(layer, config.size("intermediate_size"))
            continue
        router(layer, n_experts)
        layer.tensor("exp_probs_b.bias", "mlp.moe_statics.e_score_correction_bias", (1, n_experts))
        experts(layer, n_experts, n)
        if n_shared:
            feed_forward(layer, n_shared * n, source="mlp.shared_experts", suffix="_shexp")
    m.ignore("model.mtp_*")
