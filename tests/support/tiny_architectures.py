"""The keys and tensors of tiny models of each architecture, at any size.

keys, shapes = TINY_MODELS["glm4moe"](Sizes())
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tests.support.tiny_parts import Shapes, Sizes, Spec

_PERIOD = 4  # layers of the architectures that mix kinds of them


def _llama(s: Sizes) -> Spec:
    """Dense, with llama3's factors."""
    shapes = s.frame() | {"rope_freqs.weight": (s.head_dim // 2,)}
    for prefix in s.prefixes():
        shapes |= s.attention(prefix) | s.dense_block(prefix)
    return s.keys(), shapes


def _mixtral(s: Sizes) -> Spec:
    shapes = s.frame(output=True)
    for prefix in s.prefixes():
        shapes |= s.attention(prefix) | s.expert_block(prefix)
    return s.keys(**s.mixture), shapes


def _qwen2(s: Sizes) -> Spec:
    shapes = s.frame()
    for prefix in s.prefixes():
        shapes |= s.attention(prefix, biases="qkv") | s.dense_block(prefix)
    return s.keys(), shapes


def _qwen2moe(s: Sizes) -> Spec:
    shapes = s.frame(output=True)
    for layer, prefix in enumerate(s.prefixes()):
        shapes |= s.attention(prefix, biases="qkv") | s.usual_block(layer, prefix, shared=2 * s.expert_columns)
    return s.keys(**s.mixture, expert_shared_feed_forward_length=2 * s.expert_columns), shapes


def _qwen3(s: Sizes) -> Spec:
    shapes = s.frame()
    for prefix in s.prefixes():
        shapes |= s.attention(prefix, head_norms=True) | s.dense_block(prefix)
    return s.keys(**{"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0}), shapes


def _qwen3moe(s: Sizes) -> Spec:
    shapes = s.frame(output=True)
    for layer, prefix in enumerate(s.prefixes()):
        shapes |= s.attention(prefix, head_norms=True) | s.usual_block(layer, prefix)
    return s.keys(**s.mixture), shapes


def _smollm3(s: Sizes) -> Spec:
    shapes = s.frame()
    for prefix in s.prefixes(_PERIOD):
        shapes |= s.attention(prefix) | s.dense_block(prefix)
    return s.keys(block_count=_PERIOD), shapes


def _olmoe(s: Sizes) -> Spec:
    """With the clamp that no published model has."""
    shapes = s.frame(output=True)
    for prefix in s.prefixes():
        shapes |= s.attention(prefix, head_norms=True) | s.expert_block(prefix)
        shapes |= {
            f"{prefix}attn_q_norm.weight": (s.heads * s.head_dim,),
            f"{prefix}attn_k_norm.weight": (s.kv_heads * s.head_dim,),
        }
    return s.keys(**s.mixture, **{"attention.clamp_kqv": 0.8}), shapes


def _phi3(s: Sizes) -> Spec:
    """With longrope and a window that is shorter than a prompt."""
    shapes = s.frame(output=True)
    factors = (s.head_dim // 2,)
    shapes |= {"rope_factors_short.weight": factors, "rope_factors_long.weight": factors}
    for prefix in s.prefixes():
        shapes |= s.attention(prefix) | s.dense_block(prefix)
        for part in ("attn_q", "attn_k", "attn_v", "ffn_gate"):
            del shapes[f"{prefix}{part}.weight"]
        shapes[f"{prefix}attn_qkv.weight"] = ((s.heads + 2 * s.kv_heads) * s.head_dim, s.hidden)
        shapes[f"{prefix}ffn_up.weight"] = (2 * s.feed_forward, s.hidden)
    scaling = {"rope.scaling.attn_factor": 1.1, "rope.scaling.original_context_length": 96}
    return s.keys(**scaling, **{"attention.sliding_window": s.window + 10}), shapes


def _phimoe(s: Sizes) -> Spec:
    shapes = s.frame(output=True) | {"output.bias": (s.n_vocab,), "output_norm.bias": (s.hidden,)}
    for prefix in s.prefixes():
        shapes |= s.attention(prefix, biases="qkvo") | s.expert_block(prefix)
        shapes |= {f"{prefix}attn_norm.bias": (s.hidden,), f"{prefix}ffn_norm.bias": (s.hidden,)}
    return s.keys(**s.mixture | {"expert_used_count": 2}), shapes


def _deepseek(s: Sizes) -> Spec:
    shapes = s.frame(output=True)
    for layer, prefix in enumerate(s.prefixes()):
        block = (
            s.dense_block(prefix) if layer < s.n_dense else s.expert_block(prefix, shared=s.n_shared * s.expert_columns)
        )
        shapes |= s.attention(prefix) | block
    return s.keys(**s.mixture, **_shared(s)), shapes


def _shared(s: Sizes) -> dict[str, Any]:
    return {"expert_shared_count": s.n_shared, "leading_dense_block_count": s.n_dense}


def _glm4moe(s: Sizes) -> Spec:
    """With a further layer that only guesses tokens."""
    norm, shapes = "post_attention_norm", s.frame(output=True)
    for layer, prefix in enumerate(s.prefixes(s.layers + 1)):
        shared = s.n_shared * s.expert_columns
        shapes |= s.attention(prefix, biases="qkv")
        shapes |= (
            s.dense_block(prefix, norm)
            if layer < s.n_dense
            else s.expert_block(prefix, norm, shared=shared, has_bias=True)
        )
    more = {"nextn_predict_layers": 1, "block_count": s.layers + 1, "rope.dimension_count": s.head_dim // 2}
    return s.keys(**s.mixture | s.groups | _shared(s) | more), shapes


def _hunyuan(s: Sizes) -> Spec:
    shapes, shared = s.frame(), s.n_shared * s.expert_columns
    for prefix in s.prefixes():
        shapes |= s.attention(prefix, head_norms=True) | s.expert_block(prefix, shared=shared)
    return s.keys(**s.mixture, expert_shared_feed_forward_length=shared), shapes


def _ernie(s: Sizes) -> Spec:
    shapes, shared = s.frame(), 2 * s.n_shared * s.expert_columns
    for layer, prefix in enumerate(s.prefixes()):
        block = s.dense_block(prefix) if layer < s.n_dense else s.expert_block(prefix, shared=shared, has_bias=True)
        shapes |= s.attention(prefix) | block
    more = {"leading_dense_block_count": s.n_dense, "expert_shared_feed_forward_length": shared}
    return s.keys(**s.mixture | more), shapes


def _granitemoe(s: Sizes) -> Spec:
    shapes = s.frame()
    for prefix in s.prefixes():
        shapes |= s.attention(prefix) | s.expert_block(prefix)
    scales = {"attention.scale": 0.1, "embedding_scale": 6.0, "residual_scale": 0.4, "logit_scale": 2.0}
    return s.keys(**s.mixture | scales), shapes


def _lfm2moe(s: Sizes) -> Spec:
    shapes = s.frame() | {"token_embd_norm.weight": (s.hidden,)}
    del shapes["output_norm.weight"]
    for layer, prefix in enumerate(s.prefixes(_PERIOD)):
        if layer % 2:
            shapes |= s.attention(prefix, head_norms=True)
        else:
            shapes[f"{prefix}attn_norm.weight"] = (s.hidden,)
            shapes[f"{prefix}shortconv.conv.weight"] = (s.hidden, 3)
            shapes[f"{prefix}shortconv.in_proj.weight"] = (3 * s.hidden, s.hidden)
            shapes[f"{prefix}shortconv.out_proj.weight"] = (s.hidden, s.hidden)
        shapes |= s.dense_block(prefix) if layer < s.n_dense else s.expert_block(prefix, has_bias=True)
    more = {"attention.head_count_kv": [0, s.kv_heads, 0, s.kv_heads], "shortconv.l_cache": 3}
    return s.keys(**s.mixture | more | {"block_count": _PERIOD, "leading_dense_block_count": s.n_dense}), shapes


def _qwen3next(s: Sizes, *, is_split: bool = False) -> Spec:
    shapes, norm = s.frame(output=True), "post_attention_norm"
    n_values = s.delta_value_heads * s.delta_dim
    n_mixed = 2 * s.delta_key_heads * s.delta_dim + n_values
    for layer, prefix in enumerate(s.prefixes(_PERIOD)):
        if layer == 2:
            shapes |= s.attention(prefix, head_norms=True)
            shapes[f"{prefix}attn_q.weight"] = (2 * s.heads * s.head_dim, s.hidden)
            if s.has_biases:
                shapes[f"{prefix}attn_q.bias"] = (2 * s.heads * s.head_dim,)
        else:
            shapes[f"{prefix}attn_norm.weight"] = (s.hidden,)
            shapes[f"{prefix}attn_qkv.weight"] = (n_mixed, s.hidden)
            shapes[f"{prefix}attn_gate.weight"] = (n_values, s.hidden)
            shapes[f"{prefix}ssm_conv1d.weight"] = (n_mixed, 4)
            shapes[f"{prefix}ssm_out.weight"] = (s.hidden, n_values)
            shapes[f"{prefix}ssm_norm.weight"] = (s.delta_dim,)
            shapes |= dict.fromkeys((f"{prefix}ssm_a", f"{prefix}ssm_dt.bias"), (s.delta_value_heads,))
            if is_split:
                parts = (f"{prefix}ssm_alpha.weight", f"{prefix}ssm_beta.weight")
                shapes |= dict.fromkeys(parts, (s.delta_value_heads, s.hidden))
            else:
                shapes[f"{prefix}ssm_ba.weight"] = (2 * s.delta_value_heads, s.hidden)
        shapes |= s.usual_block(layer, prefix, norm, shared=s.expert_columns)
    more = {
        "block_count": _PERIOD,
        "rope.dimension_count": s.head_dim // 2,
        "attention.recurrent_layers": [True, True, False, True],
        "ssm.conv_kernel": 4,
        "ssm.state_size": s.delta_dim,
        "ssm.group_count": s.delta_key_heads,
        "ssm.time_step_rank": s.delta_value_heads,
        "ssm.inner_size": n_values,
    }
    return s.keys(**s.mixture | more), shapes


def _deepseek2(s: Sizes) -> Spec:
    """As V3: compressed queries, groups of experts, sigmoids; with keys and values to be absorbed."""
    shapes = s.frame(output=True)
    for layer, prefix in enumerate(s.prefixes()):
        shared = s.n_shared * s.expert_columns
        block = s.dense_block(prefix) if layer < s.n_dense else s.expert_block(prefix, shared=shared, has_bias=True)
        shapes |= _latent(s, prefix) | block
    more = {
        "attention.head_count_kv": 1,
        "attention.key_length": s.n_latent + s.n_rope,
        "attention.value_length": s.n_latent,
        "attention.key_length_mla": s.n_plain + s.n_rope,
        "attention.value_length_mla": s.n_value,
        "attention.kv_lora_rank": s.n_latent,
        "rope.dimension_count": s.n_rope,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 8.0,
        "rope.scaling.original_context_length": 64,
        "rope.scaling.yarn_log_multiplier": 0.1,
        "expert_gating_func": 2,
        "expert_weights_scale": 2.5,
    }
    rank = {"attention.q_lora_rank": s.query_rank} if s.query_rank else {}
    return s.keys(**{"expert_weights_norm": True} | s.mixture | s.groups | _shared(s) | more | rank), shapes


def _latent(s: Sizes, prefix: str) -> Shapes:
    rank, n_queries = s.query_rank, s.heads * (s.n_plain + s.n_rope)
    shapes: Shapes = {
        f"{prefix}attn_norm.weight": (s.hidden,),
        f"{prefix}attn_kv_a_mqa.weight": (s.n_latent + s.n_rope, s.hidden),
        f"{prefix}attn_kv_a_norm.weight": (s.n_latent,),
        f"{prefix}attn_k_b.weight": (s.heads, s.n_latent, s.n_plain),
        f"{prefix}attn_v_b.weight": (s.heads, s.n_value, s.n_latent),
        f"{prefix}attn_output.weight": (s.hidden, s.heads * s.n_value),
    }
    if not rank:
        return shapes | {f"{prefix}attn_q.weight": (n_queries, s.hidden)}
    return shapes | {
        f"{prefix}attn_q_a.weight": (rank, s.hidden),
        f"{prefix}attn_q_a_norm.weight": (rank,),
        f"{prefix}attn_q_b.weight": (n_queries, rank),
    }


def _gpt_oss(s: Sizes) -> Spec:
    norm, shapes = "post_attention_norm", s.frame(output=True)
    for prefix in s.prefixes():
        shapes |= s.attention(prefix, biases="qkvo") | s.expert_block(prefix, norm)
        shapes |= {f"{prefix}attn_sinks.weight": (s.heads,), f"{prefix}ffn_gate_inp.bias": (s.experts,)}
        for part, n in (("gate", s.expert_columns), ("up", s.expert_columns), ("down", s.hidden)):
            shapes[f"{prefix}ffn_{part}_exps.bias"] = (s.experts, n)
    scaling = {"rope.scaling.type": "yarn", "rope.scaling.factor": 8.0, "rope.scaling.original_context_length": 64}
    return s.keys(**s.mixture | scaling | {"attention.sliding_window": s.window}), shapes


TINY_MODELS: dict[str, Callable[[Sizes], Spec]] = {
    "deepseek": _deepseek,
    "deepseek2": _deepseek2,
    "ernie4_5-moe": _ernie,
    "glm4moe": _glm4moe,
    "gpt-oss": _gpt_oss,
    "granitemoe": _granitemoe,
    "hunyuan-moe": _hunyuan,
    "lfm2moe": _lfm2moe,
    "llama": _llama,
    "mixtral": _mixtral,
    "olmoe": _olmoe,
    "phi3": _phi3,
    "phimoe": _phimoe,
    "qwen2": _qwen2,
    "qwen2moe": _qwen2moe,
    "qwen3": _qwen3,
    "qwen35moe": functools.partial(_qwen3next, is_split=True),
    "qwen3moe": _qwen3moe,
    "qwen3next": _qwen3next,
    "smollm3": _smollm3,
}
