"""Hunyuan-A13B (Tencent 2025): queries and keys are normalised after their rotation, one shared expert."""

from __future__ import annotations

from engine.models.attention import HeadNorms, Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router, Shared


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    n_shared = keys.integer("expert_shared_feed_forward_length", 0, least=0)
    norms = HeadNorms(hyper.head_dim, hyper.head_dim, after_rope=True)
    router = Router(normalise=keys.flag("expert_weights_norm", True))
    has_norms = b.weights.has("blk.0.attn_q_norm.weight")
    b.embed()
    for layer in range(hyper.n_layers):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=True, norms=norms if has_norms else None))
        b.mixture(layer, prefix, router, shared=Shared(n_shared) if n_shared else None)
    b.output()
