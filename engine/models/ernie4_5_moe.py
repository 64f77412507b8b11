"""ERNIE 4.5 (Baidu 2025): some layers dense, the choice of experts corrected by a bias."""

from __future__ import annotations

from engine.models.attention import Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router, Shared

_EPSILON = 1e-12  # of the weights' sum


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    n_dense = keys.integer("leading_dense_block_count", 0, least=0)
    interval = keys.integer("interleave_moe_layer_step", 1)
    n_shared = keys.integer("expert_shared_feed_forward_length", 0, least=0)
    router = Router(normalise=keys.flag("expert_weights_norm", True), epsilon=_EPSILON)
    b.embed()
    for layer in range(hyper.n_layers):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=False))
        if layer < n_dense or (layer + 1) % interval:
            b.feed_forward(prefix, hyper.n_feed_forward)
        else:
            b.mixture(layer, prefix, router, shared=Shared(n_shared) if n_shared else None)
    b.output()
