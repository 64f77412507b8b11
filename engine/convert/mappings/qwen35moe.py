"""Qwen3.5-MoE: as Qwen3-Next, with q, k, v, z, a and b in matrices of their own, and rotary positions in sections.

GGUF wants the value heads in another order: first the first value head of every key head, then the second ones.
"""

from __future__ import annotations

import numpy as np

from engine.convert.common_keys import basic_keys, heads_of
from engine.convert.common_tensors import router
from engine.convert.delta_net import (
    ROTATED,
    decay,
    delta_keys,
    delta_sizes,
    gated_attention,
    layer_kinds,
    mixture_keys,
    mtp_layers,
    mtp_tensors,
    offset_norms,
    outer_norms,
    shared_and_routed,
)
from engine.convert.model_map import Layer, ModelMap
from engine.convert.permutations import tiled_value_heads
from engine.gguf.value_types import ValueType

ARCHITECTURE = "qwen35moe"
CLASSES = ("Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM")

_SECTIONS = [11, 11, 10]  # of the published models


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    kinds = layer_kinds(m)
    n_predict = mtp_layers(m)

    basic_keys(m, n_blocks=m.n_layers + n_predict, feed_forward=False, rotated=ROTATED)
    n_experts = mixture_keys(m)
    sections = [*(m.config.rope.integers("mrope_section") or _SECTIONS), 0, 0, 0, 0][:4]
    m.key("rope.dimension_sections", sections, ValueType.INT32)
    delta_keys(m, kinds, n_predict)

    m.embeddings(norm_change=offset_norms)
    for layer in (*m.layers(), *mtp_tensors(m, n_predict)):
        if layer.index < m.n_layers and kinds[layer.index] == "linear_attention":
            _delta_net(layer)
        else:
            gated_attention(layer, heads)
        router(layer, n_experts)
        outer_norms(layer)
        shared_and_routed(layer, n_experts)


def _delta_net(layer: Layer) -> None:
    m, sizes = layer.model, delta_sizes(layer.model)
    values = tiled_value_heads(sizes.n_key_heads, sizes.n_value_heads, sizes.value_dim)
    single = tiled_value_heads(sizes.n_key_heads, sizes.n_value_heads, 1)
    n_query_key = int(2 * sizes.n_key)
    mixed = np.concatenate((np.arange(n_query_key), n_query_key + values))
    kernel = (sizes.n_mixed, 1, sizes.width)
    square = (m.hidden, sizes.n_value)
    by_head = (sizes.n_value_heads, m.hidden)
    layer.tensor("attn_qkv.weight", "linear_attn.in_proj_qkv.weight", (sizes.n_mixed, m.hidden), rows=mixed)
    layer.tensor("attn_gate.weight", "linear_attn.in_proj_z.weight", (sizes.n_value, m.hidden), rows=values)
    layer.tensor("ssm_alpha.weight", "linear_attn.in_proj_a.weight", by_head, rows=single)
    layer.tensor("ssm_beta.weight", "linear_attn.in_proj_b.weight", by_head, rows=single)
    layer.tensor(
        "ssm_conv1d.weight", "linear_attn.conv1d.weight", kernel, as_shape=(sizes.n_mixed, sizes.width), rows=mixed
    )
    layer.tensor("ssm_a", "linear_attn.A_log", (sizes.n_value_heads,), rows=single, change=decay)
    layer.tensor("ssm_dt.bias", "linear_attn.dt_bias", (sizes.n_value_heads,), rows=single)
    layer.tensor("ssm_norm.weight", "linear_attn.norm.weight", (sizes.value_dim,))
    layer.tensor("ssm_out.weight", "linear_attn.out_proj.weight", square, change=lambda rows: rows[:, values])
