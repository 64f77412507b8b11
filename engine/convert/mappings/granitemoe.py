"""Granite-MoE: four multipliers; experts in one tensor with the gate's rows first; GGUF's llama order of Q and K."""

from __future__ import annotations

from engine.convert.common_keys import basic_keys, expert_keys, heads_of
from engine.convert.common_tensors import attention, fused_experts, norms, router
from engine.convert.matrices import Picked
from engine.convert.model_map import ModelMap
from engine.convert.permutations import row_range

ARCHITECTURE = "granitemoe"
CLASSES = ("GraniteMoeForCausalLM", "GraniteMoeSharedForCausalLM")


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    n = m.config.size("intermediate_size")
    n_shared = m.config.size("shared_intermediate_size", 0, least=0)
    bias = m.config.flag("attention_bias", False)

    basic_keys(m)
    n_experts = expert_keys(m)
    m.key("vocab_size", m.n_vocabulary)
    m.key("rope.dimension_count", heads.head_dim)
    m.number("attention.scale", m.config.number("attention_multiplier"))
    m.number("embedding_scale", m.config.number("embedding_multiplier"))
    m.number("residual_scale", m.config.number("residual_multiplier"))
    m.number("logit_scale", m.config.number("logits_scaling"))
    if n_shared:
        m.key("expert_shared_feed_forward_length", n_shared)

    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=bias, output_bias=bias, pairs=True)
        router(layer, n_experts, "block_sparse_moe.router.layer.weight")
        fused_experts(
            layer, n_experts, n, "block_sparse_moe.input_linear.weight", "block_sparse_moe.output_linear.weight"
        )
        if n_shared:
            source = f"{layer.source}shared_mlp.input_linear.weight"
            both = m.take(source, (2 * n_shared, m.hidden))
            for target, first in (("ffn_gate_shexp.weight", 0), ("ffn_up_shexp.weight", int(n_shared))):
                part = Picked(both, row_range(1, 2 * n_shared, first, first + n_shared))
                m.add(layer.target + target, (n_shared, m.hidden), part, (source,))
            layer.tensor("ffn_down_shexp.weight", "shared_mlp.output_linear.weight", (m.hidden, n_shared))
