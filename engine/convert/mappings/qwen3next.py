"""Qwen3-Next: gated delta-net layers between layers of gated attention, experts with a gated shared one, MTP layer.

Norms are published as an offset from one, save that within the delta net. `in_proj_qkvz` holds for each key head its
q, k, v and z rows; GGUF has q, k and v of all heads in `attn_qkv` and z in `attn_gate`.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from engine.convert.common_keys import basic_keys, heads_of, layers_with_experts, normalised_weights
from engine.convert.common_tensors import feed_forward, router
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
from engine.convert.matrices import Picked
from engine.convert.model_map import Layer, ModelMap
from engine.convert.permutations import row_range

ARCHITECTURE = "qwen3next"
CLASSES = ("Qwen3NextForCausalLM",)


def describe(m: ModelMap) -> None:
    heads = heads_of(m)
    kinds = layer_kinds(m)
    n_predict = mtp_layers(m)
    has_experts = layers_with_experts(m) + [True] * n_predict

    basic_keys(m, n_blocks=m.n_layers + n_predict, rotated=ROTATED)
    n_experts = mixture_keys(m)
    normalised_weights(m, usual=True, unsaid=True)
    delta_keys(m, kinds, n_predict)

    m.embeddings(norm_change=offset_norms)
    for layer in (*m.layers(), *mtp_tensors(m, n_predict)):
        if layer.index < m.n_layers and kinds[layer.index] == "linear_attention":
            _delta_net(layer)
        else:
            gated_attention(layer, heads)
        outer_norms(layer)
        if has_experts[layer.index]:
            router(layer, n_experts)
            shared_and_routed(layer, n_experts)
        else:
            feed_forward(layer, m.config.size("intermediate_size"))


def _delta_net(layer: Layer) -> None:
    m, sizes = layer.model, delta_sizes(layer.model)
    head_rows = 2 * sizes.key_dim + 2 * sizes.n_groups * sizes.value_dim
    source = f"{layer.source}linear_attn.in_proj_qkvz.weight"
    whole = m.take(source, (sizes.n_key_heads * head_rows, m.hidden))
    bounds = np.cumsum(
        [0, sizes.key_dim, sizes.key_dim, sizes.n_groups * sizes.value_dim, sizes.n_groups * sizes.value_dim]
    )
    q, k, v, z = (row_range(sizes.n_key_heads, head_rows, int(first), int(last)) for first, last in pairwise(bounds))
    m.add(
        f"{layer.target}attn_qkv.weight", (sizes.n_mixed, m.hidden), Picked(whole, np.concatenate((q, k, v))), (source,)
    )
    m.add(f"{layer.target}attn_gate.weight", (sizes.n_value, m.hidden), Picked(whole, z), (source,))
    kernel = (sizes.n_mixed, 1, sizes.width)
    layer.tensor("ssm_conv1d.weight", "linear_attn.conv1d.weight", kernel, as_shape=(sizes.n_mixed, sizes.width))
    layer.tensor("ssm_a", "linear_attn.A_log", (sizes.n_value_heads,), change=decay)
    layer.table(
        ("ssm_ba.weight", "linear_attn.in_proj_ba.weight", (2 * sizes.n_value_heads, m.hidden)),
        ("ssm_dt.bias", "linear_attn.dt_bias", (sizes.n_value_heads,)),
        ("ssm_norm.weight", "linear_attn.norm.weight", (sizes.value_dim,)),
        ("ssm_out.weight", "linear_attn.out_proj.weight", (m.hidden, sizes.n_value)),
    )
