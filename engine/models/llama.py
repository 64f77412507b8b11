"""Llama (dense) and Mixtral, which GGUF files call by the same name: Touvron et al. 2023, Jiang et al. 2024."""

from __future__ import annotations

from engine.models.attention import Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    b.embed()
    for layer, window in enumerate(keys.windows(hyper.n_layers)):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=False, window=window))
        if hyper.n_experts:
            # Mixtral's weights are a softmax over the chosen two, which is the softmax over all, normalised
            b.mixture(layer, prefix, Router(normalise=True))
        else:
            b.feed_forward(prefix, hyper.n_feed_forward)
    b.output()
