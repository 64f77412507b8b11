"""Hyper-parameters that most architectures share, from the names of config.json to GGUF's keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.convert.model_map import ModelMap
from engine.convert.sizes import Size
from engine.errors import ContradictionError, UnsupportedModelError
from engine.gguf.value_types import ValueType

EXPERT_COUNT = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
TOP_K = ("num_experts_per_tok", "moe_k", "moe_topk")
SOFTMAX, SIGMOID = 1, 2  # the values of expert_gating_func


@dataclass(frozen=True, slots=True)
class Heads:
    """The sizes of ordinary attention."""

    n_heads: Size
    n_kv_heads: Size
    head_dim: Size

    @property
    def n_query(self) -> Size:
        return self.n_heads * self.head_dim

    @property
    def n_key(self) -> Size:
        return self.n_kv_heads * self.head_dim


def heads_of(m: ModelMap) -> Heads:
    """The numbers of heads; a head's size is `head_dim`, or what is left of the hidden size for each head."""
    n_heads = m.config.size("num_attention_heads")
    n_kv_heads = m.config.size("num_key_value_heads", n_heads)
    if m.config.get("head_dim") is not None:
        head_dim = m.config.size("head_dim")
    elif m.hidden % n_heads:
        raise m.config.wrong("hidden_size", f"a multiple of the {int(n_heads)} attention heads", int(m.hidden))
    else:
        head_dim = Size(m.hidden // n_heads, "hidden_size / num_attention_heads")
    if n_heads % n_kv_heads:
        raise m.config.wrong("num_key_value_heads", f"a divisor of the {int(n_heads)} attention heads", int(n_kv_heads))
    if head_dim % 2:
        raise m.config.wrong("head_dim", "an even number", int(head_dim))
    return Heads(n_heads, n_kv_heads, head_dim)


def basic_keys(
    m: ModelMap,
    *,
    n_blocks: int | None = None,
    feed_forward: bool = True,
    scaling: tuple[str, ...] = (),
    rotated: float | None = 1.0,
) -> None:
    """Counts, sizes, norm, rope. n_blocks: with layers that predict further tokens, where those are written.

    scaling: ways to scale positions that the table has lines for, besides linear, yarn and llama3. rotated: the share
    of a head's values that rotates where config.json does not say; None: they are no share of it, so no llama3.
    """
    check_activation(m)
    m.key("block_count", n_blocks or m.n_layers)
    m.key("context_length", m.config.size("max_position_embeddings"))
    m.key("embedding_length", m.hidden)
    if feed_forward:
        m.key("feed_forward_length", m.config.size("intermediate_size"))
    n_heads = m.config.size("num_attention_heads")
    m.key("attention.head_count", n_heads)
    m.key("attention.head_count_kv", m.config.size("num_key_value_heads", n_heads))
    m.number("attention.layer_norm_rms_epsilon", m.config.number(("rms_norm_eps", "norm_eps")))
    _rope_keys(m, ("default", "linear", "yarn", *(("llama3",) if rotated else ()), *scaling))
    if rotated and m.config.rope.kind == "llama3":
        share = m.config.rope.number("partial_rotary_factor", rotated)
        _llama3_frequencies(m, int(heads_of(m).head_dim * share))
    if m.config.get("head_dim") is not None:
        head_dim = m.config.size("head_dim")
        m.key("attention.key_length", head_dim)
        m.key("attention.value_length", head_dim)


def check_activation(m: ModelMap) -> None:
    """Raise UnsupportedModelError for a gate that is not SiLU: no GGUF architecture here can say another."""
    found = m.config.get("hidden_act")
    if found not in (None, "silu", "swish"):
        raise UnsupportedModelError(f"{m.config.path}: expected hidden_act silu, found {found!r:.40}.")


def _rope_keys(m: ModelMap, known: tuple[str, ...]) -> None:
    rope = m.config.rope
    m.number("rope.freq_base", rope.number("rope_theta", 10000.0))
    if rope.kind not in known:
        raise UnsupportedModelError(
            f"{m.config.path}: expected a rope type that a {m.architecture} file can say ({', '.join(known)}), found "
            f"{rope.kind!r:.40}. Update Colibri, or choose another model."
        )
    if rope.kind in ("linear", "yarn"):
        m.key("rope.scaling.type", rope.kind, ValueType.STRING)
        m.number("rope.scaling.factor", rope.number("factor"))
    if rope.kind == "yarn":
        original = rope.integer("original_max_position_embeddings", m.config.size("max_position_embeddings"))
        m.key("rope.scaling.original_context_length", original)
        for key, name in (
            ("yarn_ext_factor", "extrapolation_factor"),
            ("yarn_attn_factor", "attention_factor"),
            ("yarn_beta_fast", "beta_fast"),
            ("yarn_beta_slow", "beta_slow"),
        ):
            if rope.has(name):
                m.number(f"rope.scaling.{key}", rope.number(name))
        # Whether the range of corrected pairs is widened to whole ones: other programs take the usual for granted.
        is_usual = m.architecture != "gpt-oss"
        if rope.flag("truncate", True) is not is_usual:
            m.key("rope.scaling.yarn_truncate", not is_usual, ValueType.BOOL)


def _llama3_frequencies(m: ModelMap, n_rotated: int) -> None:
    """The tensor of divisors for `llama3` scaling: long waves are stretched, short ones stay (Llama 3.1's rule)."""
    rope = m.config.rope
    factor = rope.number("factor", 8.0)
    low, high = rope.number("low_freq_factor", 1.0), rope.number("high_freq_factor", 4.0)
    original = rope.number("original_max_position_embeddings", 8192)
    if factor <= 0 or not 0 < low < high:
        raise m.config.wrong("rope_scaling.low_freq_factor", "0 < low_freq_factor < high_freq_factor", low)
    frequencies = rope.number("rope_theta", 10000.0) ** -(np.arange(0, n_rotated, 2) / n_rotated)
    turns = original * frequencies / (2 * np.pi)  # within the original context
    blend = np.clip((turns - low) / (high - low), 0, 1)  # 0: stretched, 1: as it was
    m.constant("rope_freqs.weight", (1 / ((1 - blend) / factor + blend)).tolist())


def expert_count(m: ModelMap) -> Size:
    """The number of routed experts, which the user may have named."""
    n_experts = m.config.size(EXPERT_COUNT)
    wanted = m.options.expert_count
    if wanted is not None and wanted != n_experts:
        raise ContradictionError(
            f"{m.config.path}: {wanted} experts were asked for, but the checkpoint has {n_experts.described}. "
            "Leave the number out, or choose the checkpoint that has it."
        )
    return n_experts


def expert_keys(m: ModelMap, top_k: int | None = None) -> Size:
    """How many experts there are and are used for a token; gives the first."""
    n_experts = expert_count(m)
    used = m.options.top_k
    if used is None:
        used = m.config.size(TOP_K) if top_k is None else top_k
    if not 1 <= used <= n_experts:
        raise ContradictionError(
            f"{m.config.path}: expected 1 to {n_experts} experts for a token ({n_experts.described}), found {used}."
        )
    m.key("expert_count", n_experts)
    m.key("expert_used_count", int(used))
    return n_experts


def normalised_weights(m: ModelMap, *, usual: bool, unsaid: bool) -> None:
    """Whether the chosen experts' weights are made to sum to one: written where it is not usual for the architecture.

    Other programs take the usual for granted; the reference goes by `norm_topk_prob`. unsaid: what that is for the
    reference where config.json leaves it out.
    """
    found = m.config.flag("norm_topk_prob", unsaid)
    if found is not usual:
        m.key("expert_weights_norm", found, ValueType.BOOL)


def layers_with_experts(m: ModelMap) -> list[bool]:
    """Which layers are mixtures, by `decoder_sparse_step` and `mlp_only_layers`; the others are dense."""
    step, dense = m.config.size("decoder_sparse_step", 1), m.config.get("mlp_only_layers") or []
    if not isinstance(dense, list) or not all(isinstance(layer, int) for layer in dense):
        raise m.config.wrong("mlp_only_layers", "a list of layers", dense)
    return [(layer + 1) % step == 0 and layer not in dense for layer in range(m.n_layers)]


def window_keys(m: ModelMap, layers: Sequence[bool], *, in_use: bool) -> None:
    """The sliding window, where one is shorter than the context, and which `layers` have it if not all do.

    layers: those that the reference gives it where config.json has no `layer_types`. in_use: whether windows are,
    where `use_sliding_window` is left out. llama.cpp attends to everything in these architectures.
    """
    window = m.config.get("sliding_window")
    if not m.config.flag("use_sliding_window", in_use) or not isinstance(window, int):
        return
    if not 0 < window < m.config.size("max_position_embeddings"):
        return
    kinds = m.config.texts("layer_types", m.n_layers)
    has_window = list(layers) if kinds is None else [kind == "sliding_attention" for kind in kinds]
    if not any(has_window):
        return
    m.key("attention.sliding_window", window)
    if not all(has_window):
        m.key("attention.sliding_window_pattern", has_window, ValueType.BOOL)
