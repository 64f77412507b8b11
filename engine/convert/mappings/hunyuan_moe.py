"""Hunyuan-A13B: a shared expert beside the routed ones, norms on each head after the rotation, a stretched base.

The published model stretches its rotary base once for all lengths ("dynamic" with `alpha`): base * alpha^(d / (d - 2)).
"""

from __future__ import annotations

from engine.convert.common_keys import basic_keys, expert_keys, heads_of
from engine.convert.common_tensors import attention, experts, feed_forward, norms, query_key_norms, router
from engine.convert.model_map import ModelMap
from engine.gguf.value_types import ValueType

ARCHITECTURE = "hunyuan-moe"
CLASSES = ("HunYuanMoEV1ForCausalLM",)

_LONG_ALPHA, _LONG_CONTEXT = 1000.0, 256 * 1024  # this alpha is for this context, says the model's technical report


def describe(m: ModelMap) -> None:
    config = m.config
    heads = heads_of(m)
    n = config.same_size("moe_intermediate_size", m.n_layers)
    n_shared = config.same_size("num_shared_expert", m.n_layers)
    n_shared_rows = n_shared * config.size("intermediate_size")

    basic_keys(m, scaling=("dynamic",))
    n_experts = expert_keys(m, top_k=config.same_size("moe_topk", m.n_layers))
    m.key("expert_shared_feed_forward_length", n_shared_rows)
    m.key("expert_feed_forward_length", n)
    m.key("expert_shared_count", n_shared)
    _stretched_base(m, heads.head_dim)

    bias = config.flag("attention_bias", False)
    m.embeddings()
    for layer in m.layers():
        norms(layer)
        attention(layer, heads, bias=bias, output_bias=bias)
        has_norms = layer.has("self_attn.query_layernorm.weight")  # the reference uses them whatever use_qk_norm says
        if has_norms or config.flag("use_qk_norm", True):
            query_key_norms(layer, heads.head_dim, heads.head_dim, source="self_attn.{}_layernorm.weight")
        router(layer, n_experts, "mlp.gate.wg.weight")
        experts(layer, n_experts, n)
        feed_forward(layer, n_shared_rows, source="mlp.shared_mlp", suffix="_shexp")


def _stretched_base(m: ModelMap, head_dim: int) -> None:
    rope = m.config.rope
    if rope.kind != "dynamic":
        return
    alpha = rope.number("alpha")
    context = _LONG_CONTEXT if alpha == _LONG_ALPHA else int(m.config.size("max_position_embeddings"))
    m.number("rope.freq_base", rope.number("rope_theta", 10000.0) * alpha ** (head_dim / (head_dim - 2)))
    m.key("rope.scaling.type", "none", ValueType.STRING)
    m.number("rope.scaling.factor", 1.0)
    m.key("rope.scaling.original_context_length", context)
    m.key("context_length", context)
