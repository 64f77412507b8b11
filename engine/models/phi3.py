"""Phi-3 and Phi-4, dense (Abdin et al. 2024): fused projections, long contexts by longrope, a sliding window."""

from __future__ import annotations

from engine.models.attention import Heads
from engine.models.builder import Builder
from engine.models.keys import Keys


def build(b: Builder, keys: Keys) -> None:
    heads = Heads(neox=True, is_fused=True, window=keys.integer("attention.sliding_window", 0, least=0))
    b.embed()
    for layer in range(b.hyper.n_layers):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, heads)
        b.feed_forward(prefix, b.hyper.n_feed_forward, is_fused=True)
    b.output()
