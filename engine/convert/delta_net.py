"""What Qwen3-Next and Qwen3.5-MoE share: keys of the gated delta net, gated attention, experts, the MTP layer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from engine.convert.common_keys import Heads, expert_keys
from engine.convert.common_tensors import experts, feed_forward, query_key_norms
from engine.convert.matrices import Values
from engine.convert.model_map import Layer, ModelMap
from engine.convert.sizes import Size
from engine.errors import ModelFormatError
from engine.gguf.value_types import ValueType

_MTP_LAYER = re.compile(r"^mtp\.layers\.(\d+)\.")
ROTATED = 0.25
_INTERVAL = 4


@dataclass(frozen=True, slots=True)
class DeltaSizes:
    """The sizes of a delta-net layer; `n_groups` value heads share a key head, `width` is the convolution's."""

    n_key_heads: Size
    n_value_heads: Size
    key_dim: Size
    value_dim: Size
    width: Size

    @property
    def n_groups(self) -> int:
        return self.n_value_heads // self.n_key_heads

    @property
    def n_key(self) -> Size:
        return self.n_key_heads * self.key_dim

    @property
    def n_value(self) -> Size:
        return self.n_value_heads * self.value_dim

    @property
    def n_mixed(self) -> Size:
        return 2 * self.n_key + self.n_value


def offset_norms(values: Values) -> Values:
    """Norm weights that are published as their distance from one."""
    return values + np.float32(1)


def decay(values: Values) -> Values:
    """`A_log` -> -exp(A_log), to the nearest float32."""
    return -np.exp(values.astype(np.float64)).astype(np.float32)


def delta_sizes(m: ModelMap) -> DeltaSizes:
    """The sizes that config.json has."""
    config = m.config
    n_key_heads, n_value_heads = config.size("linear_num_key_heads"), config.size("linear_num_value_heads")
    if n_value_heads % n_key_heads:
        raise config.wrong(
            "linear_num_value_heads", f"a multiple of the {int(n_key_heads)} key heads", int(n_value_heads)
        )
    return DeltaSizes(
        n_key_heads,
        n_value_heads,
        config.size("linear_key_head_dim"),
        config.size("linear_value_head_dim"),
        config.size("linear_conv_kernel_dim"),
    )


def layer_kinds(m: ModelMap) -> list[str]:
    """`linear_attention` or `full_attention` for each layer."""
    kinds = m.config.texts("layer_types", m.n_layers)
    if kinds is None:
        interval = m.config.size("full_attention_interval", _INTERVAL)
        kinds = ["linear_attention" if (i + 1) % interval else "full_attention" for i in range(m.n_layers)]
    if not set(kinds) <= {"linear_attention", "full_attention"}:
        raise m.config.wrong("layer_types", "linear_attention or full_attention for each layer", kinds)
    return kinds


def mtp_layers(m: ModelMap) -> int:
    """How many layers that predict further tokens the checkpoint has; config.json must agree if it says so."""
    found = {int(match[1]) for name in m.checkpoint.tensors if (match := _MTP_LAYER.match(name))}
    n_found = len(found)
    stated = m.config.size("mtp_num_hidden_layers", n_found, least=0)
    if found and (found != set(range(n_found)) or stated != n_found):
        raise ModelFormatError(
            f"{m.config.path}: expected mtp_num_hidden_layers = {n_found} for the mtp layers {sorted(found)} of the "
            f"checkpoint, found {int(stated)}."
        )
    return n_found


def delta_keys(m: ModelMap, kinds: list[str], n_predict: int) -> None:
    """Sizes of the delta net, which layers have it, how much of a head is rotated."""
    sizes = delta_sizes(m)
    m.key("ssm.conv_kernel", sizes.width)
    m.key("ssm.state_size", sizes.key_dim)
    m.key("ssm.group_count", sizes.n_key_heads)
    m.key("ssm.time_step_rank", sizes.n_value_heads)
    m.key("ssm.inner_size", sizes.n_value)
    recurrent = [kind == "linear_attention" for kind in kinds] + [False] * n_predict
    m.key("attention.recurrent_layers", recurrent, ValueType.BOOL)
    m.key("full_attention_interval", m.config.size("full_attention_interval", _INTERVAL))
    head_dim = m.keys[f"{m.architecture}.attention.key_length"].value
    m.key("rope.dimension_count", int(head_dim * m.config.rope.number("partial_rotary_factor", ROTATED)))
    if n_predict:
        m.key("nextn_predict_layers", n_predict)


def mixture_keys(m: ModelMap) -> Size:
    """Numbers and sizes of the experts; gives how many there are."""
    n_experts = expert_keys(m)
    m.key("expert_feed_forward_length", m.config.size("moe_intermediate_size"))
    m.key("expert_shared_feed_forward_length", m.config.size("shared_expert_intermediate_size"))
    return n_experts


def gated_attention(layer: Layer, heads: Heads) -> None:
    """Attention whose q_proj has for each head a query and a gate."""
    m = layer.model
    layer.table(
        ("attn_q.weight", "self_attn.q_proj.weight", (2 * heads.n_query, m.hidden)),
        ("attn_k.weight", "self_attn.k_proj.weight", (heads.n_key, m.hidden)),
        ("attn_v.weight", "self_attn.v_proj.weight", (heads.n_key, m.hidden)),
        ("attn_output.weight", "self_attn.o_proj.weight", (m.hidden, heads.n_query)),
    )
    if m.config.flag("attention_bias", False):
        layer.table(
            ("attn_q.bias", "self_attn.q_proj.bias", (2 * heads.n_query,)),
            ("attn_k.bias", "self_attn.k_proj.bias", (heads.n_key,)),
            ("attn_v.bias", "self_attn.v_proj.bias", (heads.n_key,)),
            ("attn_output.bias", "self_attn.o_proj.bias", (m.hidden,)),
        )
    query_key_norms(layer, heads.head_dim, heads.head_dim, change=offset_norms)


def outer_norms(layer: Layer) -> None:
    """The norms before attention (or the delta net) and before the feed-forward part."""
    for target, source in (("attn_norm", "input_layernorm"), ("post_attention_norm", "post_attention_layernorm")):
        layer.tensor(f"{target}.weight", f"{source}.weight", (layer.model.hidden,), change=offset_norms)


def shared_and_routed(layer: Layer, n_experts: Size) -> None:
    """The layer's experts, and the shared one behind its gate."""
    m = layer.model
    experts(layer, n_experts, m.config.size("moe_intermediate_size"))
    n_shared = m.config.size("shared_expert_intermediate_size")
    feed_forward(layer, n_shared, source="mlp.shared_expert", suffix="_shexp")
    layer.tensor("ffn_gate_inp_shexp.weight", "mlp.shared_expert_gate.weight", (1, m.hidden))


def mtp_tensors(m: ModelMap, n_predict: int) -> Iterator[Layer]:
    """Each layer that predicts a further token, numbered on; what is there once goes with the first of them."""
    for index in range(n_predict):
        layer = Layer(m, m.n_layers + index, f"mtp.layers.{index}.")
        if index == 0:
            m.tensor(f"{layer.target}nextn.eh_proj.weight", "mtp.fc.weight", (m.hidden, 2 * m.hidden))
            for target, source in (
                ("enorm", "pre_fc_norm_embedding"),
                ("hnorm", "pre_fc_norm_hidden"),
                ("shared_head_norm", "norm"),
            ):
                name = f"{layer.target}nextn.{target}.weight"
                m.tensor(name, f"mtp.{source}.weight", (m.hidden,), change=offset_norms)
        yield layer
