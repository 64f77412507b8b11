"""Qwen1.5-MoE and Qwen2-MoE: weights straight from the softmax over all experts, a shared expert behind a gate."""

from __future__ import annotations

from engine.models.attention import Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router, Shared


def build(b: Builder, keys: Keys) -> None:
    router = Router(normalise=keys.flag("expert_weights_norm", False))
    b.embed()
    for layer, window in enumerate(keys.windows(b.hyper.n_layers)):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=True, window=window))
        if b.is_dense(prefix):
            b.feed_forward(prefix, b.hyper.n_feed_forward)
            continue
        shared = Shared(b.weights.n_rows(f"{prefix}ffn_gate_shexp.weight"), has_gate=True)
        b.mixture(layer, prefix, router, shared=shared)
    b.output()
