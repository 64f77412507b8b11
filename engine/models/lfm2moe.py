"""LFM2-MoE (Liquid AI 2025): most layers are gated short convolutions, some attend."""

from __future__ import annotations

from engine.models.attention import HeadNorms, Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router

_EPSILON = 1e-6  # of the weights' sum


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    n_dense = keys.integer("leading_dense_block_count", 0, least=0)
    n_taps = keys.integer("shortconv.l_cache", least=2)
    n_kv_heads = keys.integers("attention.head_count_kv", hyper.n_layers, least=0)  # 0: a convolution
    norms = HeadNorms(hyper.head_dim, hyper.head_dim)
    router = Router(
        scoring="sigmoid",
        normalise=keys.flag("expert_weights_norm", True),
        scale=keys.number("expert_weights_scale", 1.0),
        epsilon=_EPSILON,
    )
    b.embed()
    for layer, n in enumerate(n_kv_heads):
        prefix = f"blk.{layer}."
        if n:
            b.self_attention(prefix, Heads(neox=True, norms=norms, n_kv_heads=n))
        else:
            b.short_convolution(prefix, n_taps)
        if layer < n_dense:
            b.feed_forward(prefix, hyper.n_feed_forward)
        else:
            b.mixture(layer, prefix, router)
    b.output(norm="token_embd_norm.weight" if b.weights.has("token_embd_norm.weight") else "output_norm.weight")
