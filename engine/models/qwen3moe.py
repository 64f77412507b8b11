"""Qwen3-MoE: each head's queries and keys are normalised, and so are the weights of the chosen experts."""

from __future__ import annotations

from engine.models.attention import HeadNorms, Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router


def build(b: Builder, keys: Keys) -> None:
    router = Router(normalise=keys.flag("expert_weights_norm", True))
    norms = HeadNorms(b.hyper.head_dim, b.hyper.head_dim)
    b.embed()
    for layer, window in enumerate(keys.windows(b.hyper.n_layers)):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, Heads(neox=True, norms=norms, window=window))
        if b.is_dense(prefix):
            b.feed_forward(prefix, b.hyper.n_feed_forward)
        else:
            b.mixture(layer, prefix, router)
    b.output()
