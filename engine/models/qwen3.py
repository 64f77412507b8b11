"""Qwen3, dense: Yang et al. 2025. Each head's queries and keys are normalised."""

from __future__ import annotations

from engine.models.attention import HeadNorms, Heads
from engine.models.builder import Builder
from engine.models.keys import Keys


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    norms = HeadNorms(hyper.head_dim, hyper.head_dim)
    b.embed()
    for layer, window in enumerate(keys.windows(hyper.n_layers)):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=True, norms=norms, window=window))
        b.feed_forward(prefix, hyper.n_feed_forward)
    b.output()
