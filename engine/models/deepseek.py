"""DeepSeek-MoE, version 1 (Dai et al. 2024): first layers dense, then routed experts beside shared ones."""

from __future__ import annotations

from engine.models.attention import Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router, Shared


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    n_dense = keys.integer("leading_dense_block_count", 0, least=0)
    n_shared = keys.integer("expert_shared_count", 0, least=0) * hyper.n_expert_feed_forward
    scale = keys.number("expert_weights_scale", 1.0) or 1.0  # some files write 0 for none
    router = Router(normalise=keys.flag("expert_weights_norm", False), scale=scale)
    b.embed()
    for layer in range(hyper.n_layers):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=False))
        if layer < n_dense:
            b.feed_forward(prefix, hyper.n_feed_forward)
        else:
            b.mixture(layer, prefix, router, shared=Shared(n_shared) if n_shared else None)
    b.output()
