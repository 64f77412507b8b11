"""Qwen3-Next (Yang et al. 2025): gated delta-net layers, every fourth with gated attention."""

from __future__ import annotations

from engine.errors import ModelFormatError, UnsupportedModelError
from engine.models.attention import HeadNorms, Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router, Shared
from engine.models.recurrent import DeltaHeads


def build(b: Builder, keys: Keys, *, is_tiled: bool = False) -> None:
    """`is_tiled`: how value heads share key heads, see DeltaHeads."""
    delta = _delta_heads(keys, is_tiled=is_tiled)
    hyper, norm = b.hyper, "post_attention_norm"
    router = Router(normalise=keys.flag("expert_weights_norm", True))
    attention = Heads(neox=True, norms=HeadNorms(hyper.head_dim, hyper.head_dim), has_gate=True)
    b.embed()
    for layer, is_recurrent in enumerate(_recurrent_layers(keys, hyper.n_layers)):
        prefix = f"blk.{layer}."
        if is_recurrent:
            b.delta_net(prefix, delta)
        else:
            b.self_attention(prefix, attention)
        if b.is_dense(prefix):
            b.feed_forward(prefix, hyper.n_feed_forward, norm=norm)
            continue
        shared = Shared(b.weights.n_rows(f"{prefix}ffn_gate_shexp.weight"), has_gate=True)
        b.mixture(layer, prefix, router, shared=shared, norm=norm)
    b.output()


def _recurrent_layers(keys: Keys, n_layers: int) -> list[bool]:
    """Which layers have a delta-net; older files only say how often one has not."""
    interval = keys.integer("full_attention_interval", 4)
    return keys.flags("attention.recurrent_layers", n_layers) or [bool((i + 1) % interval) for i in range(n_layers)]


def _delta_heads(keys: Keys, *, is_tiled: bool) -> DeltaHeads:
    n_key, n_value = keys.integer("ssm.group_count"), keys.integer("ssm.time_step_rank")
    key_dim, n_inner = keys.integer("ssm.state_size"), keys.integer("ssm.inner_size")
    if n_value % n_key or n_inner % n_value:
        raise ModelFormatError(
            f"{keys.architecture}.ssm.inner_size ({n_inner}), .time_step_rank ({n_value}) and .group_count ({n_key}) "
            "should each be a multiple of the next."
        )
    for what, value, multiple in (("keys", key_dim, 16), ("values", n_inner // n_value, 32)):
        if value % multiple:
            raise UnsupportedModelError(
                f"The {what} of a delta-net head have {value} values, no multiple of {multiple}."
            )
    n_taps = keys.integer("ssm.conv_kernel", least=2)
    return DeltaHeads(n_key, n_value, key_dim, n_inner // n_value, n_taps, is_tiled)
