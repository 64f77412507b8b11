"""Phi-3.5-MoE (Abdin et al. 2024): layer norms with biases, two experts chosen by the sparse mixer, longrope."""

from __future__ import annotations

from engine.errors import UnsupportedModelError
from engine.models.attention import Heads
from engine.models.builder import Builder
from engine.models.keys import Keys
from engine.models.mixture import Router


def build(b: Builder, keys: Keys) -> None:
    hyper = b.hyper
    if hyper.top_k != 2:
        raise UnsupportedModelError(
            f"PhiMoE's router chooses two experts, but this model's would choose {hyper.top_k}."
        )
    heads = Heads(neox=True, window=keys.integer("attention.sliding_window", 0, least=0))
    b.has_layer_norms = True
    b.embed()
    for layer in range(hyper.n_layers):
        prefix = f"blk.{layer}."
        b.self_attention(prefix, heads)
        b.mixture(layer, prefix, Router(scoring="sparse"))
    b.output()
