"""DeepSeek-V2, V2-Lite, V3 and Kimi-K2: latent attention, written with the keys' and values' expansion apart.

`kv_b_proj` (heads x (nope + v), rank) is cut into `attn_k_b` (heads, rank, nope), which is transposed so that it can be
applied to the queries, and `attn_v_b` (heads, v, rank). Attention over the latent is then that of one key-value head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from engine.convert.common_keys import SIGMOID, SOFTMAX, basic_keys, expert_keys
from engine.convert.common_tensors import experts, feed_forward, norms, router
from engine.convert.matrices import Picked, Transposed
from engine.convert.model_map import Layer, ModelMap
from engine.convert.permutations import rotary_pairs, row_range
from engine.convert.sizes import Size
from engine.errors import UnsupportedModelError
from engine.gguf.value_types import ValueType

ARCHITECTURE = "deepseek2"
CLASSES = ("DeepseekV2ForCausalLM", "DeepseekV3ForCausalLM")


@dataclass(frozen=True, slots=True)
class _Usual:
    """What the reference takes where config.json leaves it out."""

    n_dense: int
    n_shared: int
    n_group: int
    n_group_used: int
    weights_scale: float
    weights_norm: bool


_V2 = _Usual(n_dense=0, n_shared=2, n_group=1, n_group_used=1, weights_scale=1.0, weights_norm=False)
_V3 = _Usual(n_dense=3, n_shared=1, n_group=8, n_group_used=4, weights_scale=2.5, weights_norm=True)
_GATING = {"softmax": SOFTMAX, "sigmoid": SIGMOID}


def describe(m: ModelMap) -> None:
    config = m.config
    usual = _V3 if _is_v3(m) else _V2
    n_dense = config.size("first_k_dense_replace", usual.n_dense, least=0)
    n = config.size("moe_intermediate_size")
    n_shared = config.size("n_shared_experts", usual.n_shared, least=0)
    sigmoid = _gating(m) == SIGMOID
    # "greedy" looks at all experts, whatever the groups are.
    is_greedy = config.get("topk_method") == "greedy"
    n_group = Size(1, "topk_method greedy") if is_greedy else config.size("n_group", usual.n_group)
    n_group_used = n_group if n_group == 1 else config.size("topk_group", usual.n_group_used)

    basic_keys(m, rotated=None)
    m.key("attention.head_count_kv", 1)
    n_experts = expert_keys(m)
    if n_experts % n_group or not n_group_used <= n_group:
        raise config.wrong("n_group", f"a divisor of the {int(n_experts)} experts, from topk_group on", int(n_group))
    m.key("expert_group_count", n_group)
    m.key("expert_group_used_count", n_group_used)
    m.key("expert_gating_func", SIGMOID if sigmoid else SOFTMAX)
    _attention_keys(m)
    m.key("leading_dense_block_count", n_dense)
    m.key("vocab_size", m.n_vocabulary)
    m.key("expert_feed_forward_length", n)
    m.key("expert_shared_count", n_shared)
    m.number("expert_weights_scale", config.number("routed_scaling_factor", usual.weights_scale))
    if usual is _V3 and config.flag("norm_topk_prob", usual.weights_norm):  # V2's reference never looks at it
        m.key("expert_weights_norm", True, ValueType.BOOL)

    m.embeddings()
    for layer in m.layers():
        norms(layer)
        _attention(layer)
        if layer.index < n_dense:
            feed_forward(layer, config.size("intermediate_size"))
            continue
        router(layer, n_experts)
        if sigmoid and config.get("topk_method") in (None, "noaux_tc"):
            layer.tensor("exp_probs_b.bias", "mlp.gate.e_score_correction_bias", (n_experts,))
        experts(layer, n_experts, n)
        if n_shared:
            feed_forward(layer, n_shared * n, source="mlp.shared_experts", suffix="_shexp")
    # Layers that predict further tokens are numbered on; the reference does not use them.
    n_predict = config.size("num_nextn_predict_layers", 0, least=0)
    m.ignore(*(f"model.layers.{m.n_layers + index}.*" for index in range(n_predict)))


def _is_v3(m: ModelMap) -> bool:
    return m.config.architecture == "DeepseekV3ForCausalLM"


def _gating(m: ModelMap) -> int:
    name = m.config.get("scoring_func") or ("sigmoid" if _is_v3(m) else "softmax")
    if name not in _GATING or m.config.size("moe_layer_freq", 1) != 1:
        raise UnsupportedModelError(
            f"{m.config.path}: expected the scoring_func softmax or sigmoid and moe_layer_freq 1, found {name!r:.40} "
            f"and {m.config.get('moe_layer_freq')}."
        )
    return _GATING[name]


def _attention_keys(m: ModelMap) -> None:
    config, rope = m.config, m.config.rope
    rank, rotated = config.size("kv_lora_rank"), config.size("qk_rope_head_dim")
    m.key("attention.key_length", rank + rotated)
    m.key("attention.value_length", rank)
    if config.get("q_lora_rank") is not None:
        m.key("attention.q_lora_rank", config.size("q_lora_rank"))
    m.key("attention.kv_lora_rank", rank)
    m.key("attention.key_length_mla", config.size("qk_nope_head_dim") + rotated)
    m.key("attention.value_length_mla", config.size("v_head_dim"))
    m.key("rope.dimension_count", rotated)
    if rope.has("mscale_all_dim"):
        m.number("rope.scaling.yarn_log_multiplier", 0.1 * rope.number("mscale_all_dim"))
        if rope.number("mscale", 1.0) != rope.number("mscale_all_dim"):
            raise UnsupportedModelError(
                f"{config.path}: expected rope_scaling with mscale equal to mscale_all_dim, found "
                f"{rope.number('mscale', 1.0)} and {rope.number('mscale_all_dim')}, which GGUF cannot say."
            )


def _attention(layer: Layer) -> None:
    m, config = layer.model, layer.model.config
    n_heads, rank = config.size("num_attention_heads"), config.size("kv_lora_rank")
    nope, rotated = config.size("qk_nope_head_dim"), config.size("qk_rope_head_dim")
    v = config.size("v_head_dim")
    q_rows = kv_rows = None
    if not config.flag("rope_interleave", True):  # a variant with the halves of a rotation apart
        q_rows, kv_rows = _paired(n_heads, nope, rotated), _paired(1, rank, rotated)
    n_query = n_heads * (nope + rotated)
    if config.get("q_lora_rank") is None:
        layer.tensor("attn_q.weight", "self_attn.q_proj.weight", (n_query, m.hidden), rows=q_rows)
    else:
        q_rank = config.size("q_lora_rank")
        layer.table(
            ("attn_q_a.weight", "self_attn.q_a_proj.weight", (q_rank, m.hidden)),
            ("attn_q_a_norm.weight", "self_attn.q_a_layernorm.weight", (q_rank,)),
        )
        layer.tensor("attn_q_b.weight", "self_attn.q_b_proj.weight", (n_query, q_rank), rows=q_rows)
    latent = (rank + rotated, m.hidden)
    layer.tensor("attn_kv_a_mqa.weight", "self_attn.kv_a_proj_with_mqa.weight", latent, rows=kv_rows)
    layer.table(
        ("attn_kv_a_norm.weight", "self_attn.kv_a_layernorm.weight", (rank,)),
        ("attn_output.weight", "self_attn.o_proj.weight", (m.hidden, n_heads * v)),
    )
    source = f"{layer.source}self_attn.kv_b_proj.weight"
    both = m.take(source, (n_heads * (nope + v), rank))
    keys = Picked(both, row_range(n_heads, nope + v, 0, nope))
    values = Picked(both, row_range(n_heads, nope + v, nope, nope + v))
    m.add(f"{layer.target}attn_k_b.weight", (n_heads, rank, nope), Transposed(keys, nope), (source,))
    m.add(f"{layer.target}attn_v_b.weight", (n_heads, v, rank), values, (source,))


def _paired(n_heads: int, before: int, rotated: int) -> npt.NDArray[np.int64]:
    """Rows of heads of `before` rows that stay and `rotated` ones whose halves are brought side by side."""
    head = np.concatenate((np.arange(before), before + rotary_pairs(1, int(rotated))))
    return (np.arange(int(n_heads))[:, np.newaxis] * (int(before) + int(rotated)) + head).reshape(-1)
