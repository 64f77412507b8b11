"""Qwen2 and Qwen2.5, dense: Yang et al. 2024. Biases on queries, keys and values."""

from __future__ import annotations

from engine.models.attention import Heads
from engine.models.builder import Builder
from engine.models.keys import Keys


def build(b: Builder, keys: Keys) -> None:
    b.embed()
    for layer, window in enumerate(keys.windows(b.hyper.n_layers)):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=True, window=window))
        b.feed_forward(prefix, b.hyper.n_feed_forward)
    b.output()
